"""Each tool through the door: what it prints, sent six times, to the exit status of a CI job."""

import re
from datetime import timedelta
from fractions import Fraction

import pytest
from django.utils import timezone

from runs.models import Run
from runs.tools import registry, units
from runs.workloads.services import scenarios
from tests.api.upload_bodies import run
from tests.history_points import sha
from tests.unit.tools.pgbench.samples import sample as pgbench_sample
from tests.unit.tools.reading import sample

pytestmark = pytest.mark.django_db

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
# Of each tool: a text, what it prints of a clock, and its main figure with which way is better.
TOOLS = {
    "pgbench": (None, r"initial connection time = #", r"\btps = #", "higher"),
    "sysbench": (
        "oltp_read_write.txt",
        r"total time: +#",
        r"transactions: +\d+ +\(#",
        "higher",
    ),
    "go_tpc": (
        "tpcc_run_plain.txt",
        r"NEW_ORDER - Takes\(s\): #",
        r"tpmC: #",
        "higher",
    ),
    "benchbase": (
        "tpcc.summary.json",
        r'"Elapsed Time \(nanoseconds\)": #',
        r'put \(requests/second\)": #',
        "higher",
    ),
    "hammerdb": ("timed.log", None, r"achieved # NOPM", "higher"),
    "fio": (
        "seqwrite_json.txt",
        r'"(?:job_)?runtime" : #',
        r'"bw_bytes" : #',
        "higher",
    ),
    "pg_test_fsync": ("default.txt", None, r"fdatasync +# ops/sec", "higher"),
    "pg_test_timing": ("default.txt", None, r"overhead: # n", "lower"),
    "hyperfine": ("two.json", None, r'"median": #', "lower"),
    "google_benchmark": ("plain.json", r'"load_avg": \[#', r'"real_time": #', "lower"),
    "pytest_benchmark": ("three.json", r'"total": #', r'"median": #', "lower"),
    "go_test": (
        "uuid_1.6.0.txt",
        None,
        r"(?m:^BenchmarkUUID_New-2\s+\d+\s+# ns)",
        "lower",
    ),
    "lines": ("three.txt", None, r"tps=#", "higher"),
}


def scaled(text, pattern, by):
    """The text with the number of a pattern, #, multiplied as the tool would print it."""

    def printed(match):
        number = match["number"]
        places = len(number.partition(".")[2])
        product = f"{float(number) * by:.{places}f}"
        begin, end = (place - match.start() for place in match.span("number"))
        return match[0][:begin] + product + match[0][end:]

    made, count = re.subn(pattern.replace("#", f"(?P<number>{NUMBER})"), printed, text)
    assert count, pattern
    return made


def text_of(tool):
    name = TOOLS[tool][0]
    return (
        pgbench_sample("18.6/a_tpcb").stdout
        if name is None
        else sample(tool, name).decode()
    )


@pytest.fixture
def gate(client, bearer, get):
    """Send three runs of a base and three of a head, and ask what a job would."""

    def asked(tool, change):
        _name, clock, figure, _direction = TOOLS[tool]
        start = timezone.now() - timedelta(hours=1)
        for number in range(6):
            by = (1 + number % 3 / 1000) * (change if number > 2 else 1)
            text = scaled(text_of(tool), figure, by)
            if clock:
                text = scaled(text, clock, 1 + number / 1000)
            body = {
                "campaign": f"{tool}-{change < 1 or change > 1}",
                "scenario": "door",
                "tool": tool,
                "job": "one",  # between two nobody knows yet what they scatter by
                "postgresql": {"version": "16.4" if tool == "benchbase" else "18.6"},
                "started_at": (start + timedelta(minutes=number)).isoformat(),
                "revision": {"sha": sha(1 if number < 3 else 2), "ref": "main"},
                "raw": text,
            }
            answer = client.post(
                "/api/v1/uploads/", body, "application/json", headers=bearer
            )
            assert answer.status_code == 201, answer.content
            assert answer.json()["state"] == "finished", answer.json()
        return get(
            "compare/",
            campaign=body["campaign"],
            base=f"revision:{sha(1)}",
            head=f"revision:{sha(2)}",
        )

    return asked


def test_the_list_has_every_tool():
    assert set(TOOLS) == {each.name for each in registry.every()}


@pytest.mark.parametrize("tool", TOOLS)
def test_three_repeats_of_two_commits_pass_or_fail_by_their_figures(gate, tool):
    scenarios.sync()
    slower = 0.8 if TOOLS[tool][3] == "higher" else 1.25

    same, worse = gate(tool, 1), gate(tool, slower)

    assert (same["overall"], same["exit_code"]) == ("same", 0)
    assert (worse["overall"], worse["exit_code"]) == ("slower", 1)


@pytest.mark.parametrize(
    ("unit", "value", "stored"),
    [("us", 150.0, 0.15), ("s", 0.002, 2.0), ("ms", 3.5, 3.5), ("µs", 7.0, 0.007)],
)
def test_a_figure_in_another_unit_of_its_quantity_is_converted(
    client, bearer, unit, value, stored
):
    scenarios.sync()
    figure = {"metric": "latency_average", "value": value, "unit": unit}
    values = {"name": "latency_average", "unit": unit, "values": [value, None]}

    answer = client.post(
        "/api/v1/uploads/",
        run(measurements=[figure], series=[values]),
        "application/json",
        headers=bearer,
    )

    assert answer.status_code == 201, answer.content
    assert Run.objects.get().measurements.get().value == stored
    series = Run.objects.get().series.get()
    assert (series.unit, series.values) == ("ms", [pytest.approx(stored), None])


@pytest.mark.parametrize(
    ("given", "wanted", "by"),
    [
        ("MiB/s", "MB/s", Fraction(1048576, 1000000)),
        ("kB", "KiB", Fraction(1000, 1024)),
        ("requests/s", "tps", 1),
        ("tpm", "tps", Fraction(1, 60)),
        ("ms", "MB", None),
        ("MB", "MB/s", None),
        ("", "ms", None),
        ("errors", "errors/s", None),
    ],
)
def test_units_of_one_quantity_have_a_factor(given, wanted, by):
    assert units.factor(given, wanted) == by
