"""Every figure and series that the code names is declared once, in one unit of a quantity."""

import pytest

from runs.scenarios import registry as scenarios
from runs.tools import known_metrics, monitors, reader, registry
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import metric_of
from tests.unit.tools.pgbench.samples import all_samples
from tests.unit.tools.reading import samples

EVERY = {**known_metrics.METRICS, **known_metrics.UNSHARED_METRICS}
# Their names are the users' own.
FREE = {"lines"}


def texts_of(tool):
    if tool == "pgbench":
        return [{"stdout": run.stdout, **run.logs} for run in all_samples()]
    return [{"stdout": text} for text in samples(tool).values()]


def declared(name):
    """The quantity of a name, or of what it is a part or a kind of."""
    words = name.split("_")
    whole = (EVERY.get("_".join(words[at:])) for at in range(len(words)))
    if found := next((each for each in whole if each), None):
        return found
    kinds = (
        each for each in known_metrics.FAMILIES if name.startswith(f"{each.name}_")
    )
    return next(kinds, None)


def undeclared(named):
    for name, unit, direction in named:
        found = declared(name)
        if found is None or (found.unit, direction or found.direction) != (
            unit,
            found.direction,
        ):
            yield name, unit, direction


@pytest.mark.parametrize(
    "tool", [each.name for each in registry.every() if each.name not in FREE]
)
def test_what_an_adapter_names_is_declared(tool):
    wrong = set()
    for files in texts_of(tool):
        try:
            reading = reader.read(registry.find(tool), files)
        except UnreadableOutput:
            continue
        # A part of a run may be neutral: the whole is judged.
        named = [
            (
                each.metric,
                each.unit,
                "" if each.direction == "neutral" else each.direction,
            )
            for each in reading.measurements
        ]
        wrong |= set(
            undeclared([*named, *((s.name, s.unit, "") for s in reading.series)])
        )
    own_units = {"google_benchmark": {"", "1/s"}, "go_test": {"rows/op", "q/s"}}
    counters = {each for each in wrong if each[1] in own_units.get(tool, ())}

    assert wrong == counters


@pytest.mark.parametrize("monitor", ["vmstat", "iostat", "sar", "mpstat", "pidstat"])
def test_what_a_monitor_names_is_declared(monitor):
    for text in samples(monitor).values():
        for each in monitors.read({monitor: text})[0]:
            assert metric_of(each.name).unit == each.unit


def test_what_scenarios_name_is_declared():
    for name, metric in scenarios.metrics().items():
        assert metric is EVERY[name] or metric == EVERY[name]


def test_each_is_of_a_quantity():
    for each in EVERY.values():
        assert each.quantity


def test_a_name_is_declared_once():
    with pytest.raises(ValueError, match="tps is declared twice"):
        known_metrics._metric("tps", "", "ms", "lower")
