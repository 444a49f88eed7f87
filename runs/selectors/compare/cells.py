"""Two cells side by side: every metric of both, their runs, and how they differ."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.analysis.inference import Inference
from runs.analysis.summary import Summary
from runs.models import Cell, CellSummary, Environment, HardwareProfile, Metric, Run
from runs.postgresql_settings import units
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader
from runs.selectors.campaigns.metrics import by_use, summary_of
from runs.selectors.compare import cell_runs, judging, series_cells
from runs.selectors.compare import series as series_selectors
from runs.selectors.compare.cell_runs import CellRuns
from runs.selectors.compare.judging import Judge
from runs.selectors.compare.series import Loaded, Series, SeriesCell
from runs.selectors.compare.series_keys import SeriesKey, level_text
from runs.selectors.compare.series_labels import Wording, labels

HARDWARE = (
    *("name", "cpu_model", "sockets", "cores", "threads"),
    *("memory_bytes", "virtualization"),
)
ENVIRONMENT = ("os_name", "kernel", "architecture")
# Where a cluster is and what it is called does not affect its speed.
PLACES = frozenset(
    {
        *("cluster_name", "config_file", "data_directory", "data_directory_mode"),
        *("event_source", "external_pid_file", "hba_file", "ident_file", "log_directory"),
        *("log_filename", "log_file_mode", "port", "server_version", "server_version_num"),
        *("unix_socket_directories", "unix_socket_directory", "unix_socket_permissions"),
    }
)


@dataclass(frozen=True)
class Difference:
    """A fact in which series differ, with its value for each of them; None is unknown.

    `kind` is hardware, environment, software, settings, parameters, treatment or design.
    """

    kind: str
    name: str
    values: tuple[Any, ...]


def differences(loaded: Loaded) -> tuple[Difference, ...]:
    """Everything in which the series differ besides their levels."""
    series = loaded.series
    return (
        *_of_rows("hardware", HARDWARE, series, lambda each: _hardware(loaded, each)),
        *_of_rows("environment", ENVIRONMENT, series, lambda each: _environments(loaded, each)),
        *_told("software", "server", (_listed(each.runs.servers) for each in series)),
        *_told("software", "tool", (_listed(each.runs.tools) for each in series)),
        *_settings(loaded),
        *_parameters(series),
        *_treatments(series),
        *_told("design", "topology", (_named(each.campaign.topology) for each in series)),
        *_told("design", "repeats", (each.campaign.known_repeats for each in series)),
    )


def _of_rows(
    kind: str,
    names: Iterable[str],
    series: Sequence[Series],
    rows_of: Callable[[Series], Sequence[HardwareProfile | Environment]],
) -> list[Difference]:
    found = []
    for name in names:
        values = (
            _listed(dict.fromkeys(_known(getattr(row, name)) for row in rows_of(each)))
            for each in series
        )
        found += _told(kind, name, values)
    return found


def _hardware(loaded: Loaded, each: Series) -> list[HardwareProfile]:
    return [loaded.hardware[key] for key in _all(each, "hardware")]


def _environments(loaded: Loaded, each: Series) -> list[Environment]:
    return [loaded.environments[key] for key in _all(each, "environment")]


def _all(each: Series, kind: str) -> list[int]:
    return sorted({key for cell in each.cells for key in getattr(cell.runs, kind)})


def _settings(loaded: Loaded) -> list[Difference]:
    """Settings that all known servers have; nobody chose to omit one that a version lacks."""
    known = [[loaded.settings[key] for key in _all(each, "settings")] for each in loaded.series]
    snapshots = [snapshot for of_series in known for snapshot in of_series]
    if not snapshots:
        return []
    common = set.intersection(*(set(snapshot) for snapshot in snapshots)) - PLACES
    found = []
    for name in sorted(common):
        # Most of some 350 settings are equal: compare the stored values before formatting them.
        if any(each[name] != snapshots[0][name] for each in snapshots):
            values = (
                _listed(dict.fromkeys(_spelled(snapshot[name]) for snapshot in of_series))
                for of_series in known
            )
            found += _told("settings", name, values)
    return found


def _parameters(series: Sequence[Series]) -> list[Difference]:
    names = dict.fromkeys(name for each in series for name in each.campaign.parameters)
    found = []
    for name in names:
        values = (each.campaign.parameters.get(name) for each in series)
        found += _told("parameters", name, values)
    return found


def _treatments(series: Sequence[Series]) -> list[Difference]:
    """What was done to the machines of some series only: for the others "no" is known."""
    names = dict.fromkeys(name for each in series for name in each.campaign.treatment)
    found = []
    for name in names:
        values = (_said(each.campaign.treatment.get(name)) for each in series)
        found += _told("treatment", name, values)
    return found


def _said(value: Any) -> str:
    return "no" if value is None else "yes" if value is True else str(value)


def _told(kind: str, name: str, values: Iterable[Any]) -> list[Difference]:
    """The difference, if the known values differ."""
    listed = tuple(values)
    known = {str(value) for value in listed if value is not None}
    return [Difference(kind, name, listed)] if len(known) > 1 else []


def _spelled(entry: Mapping[str, Any]) -> str:
    """A setting with its unit as people write it: 16384 of 8kB is 128MB."""
    text, unit = str(entry.get("setting", "")), entry.get("unit")
    if not unit:
        return text
    try:
        return units.spelled(float(text), unit, "18")
    except (ValueError, KeyError):
        return f"{text} {unit}"


def _known(value: Any) -> Any:
    return None if value == "" else value


def _listed(values: Iterable[Any]) -> Any:
    """One value as it is, several in one text; None if unknown."""
    known = [value for value in values if value is not None]
    if len(known) == 1:
        return known[0]
    return ", ".join(str(value) for value in known) or None


def _named(row: Any) -> str | None:
    return str(row) if row else None


# Nobody reads more runs of a cell than this on a page.
MOST_RUNS = 200


@dataclass(frozen=True)
class MetricRow:
    """A metric of both cells; b against a."""

    metric: Metric
    a: Summary
    b: Summary
    comparison: Inference


@dataclass(frozen=True)
class Side:
    """A cell with its label and its runs, repeat by repeat."""

    cell: Cell
    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class ComparedCells:
    """A and B. `rows` are the metrics with a better direction first; judged as everywhere."""

    a: Side
    b: Side
    rows: tuple[MetricRow, ...]
    differences: tuple[Difference, ...]


def compared_cells(
    a: int,
    b: int,
    *,
    reader: Reader,
    ignore: Collection[str] = (),
    effect: float = 0.03,
    wording: Wording | None = None,
) -> ComparedCells:
    """Compare two cells by their keys. Raises Cell.DoesNotExist. At most sixteen queries.

    `ignore` has the codes of differences that do not prevent the comparison.
    """
    shown = projects.visible(Cell.objects.filter(pk__in={a, b}), to=reader)
    related = shown.select_related("campaign__scenario", "campaign__topology", "revision")
    cells = {cell.pk: cell for cell in related}
    if a not in cells or b not in cells:
        raise Cell.DoesNotExist
    found = cell_runs.of_cells(cells)
    summaries = _summaries(cells)
    judge = judging.of_cells(cells, runs=found)
    rows = _rows(summaries[a], summaries[b], judge, (a, b), ignore, effect)
    loaded = _loaded([cells[a], cells[b]], found, rows)
    names = labels(loaded, wording)
    runs = _runs(cells)
    return ComparedCells(
        a=Side(cells[a], names[0], runs[a]),
        b=Side(cells[b], names[-1], runs[b]),
        rows=rows,
        differences=differences(loaded),
    )


def _summaries(cells: Collection[int]) -> dict[int, dict[Metric, Summary]]:
    found: dict[int, dict[Metric, Summary]] = {cell: {} for cell in cells}
    for row in CellSummary.objects.filter(cell__in=cells).select_related("metric"):
        found[row.cell_id][row.metric] = summary_of(row)
    return found


def _rows(
    of_a: Mapping[Metric, Summary],
    of_b: Mapping[Metric, Summary],
    judge: Judge,
    pair: tuple[int, int],
    ignore: Collection[str],
    effect: float,
) -> tuple[MetricRow, ...]:
    common = by_use(metric for metric in of_a if metric in of_b)
    return tuple(
        MetricRow(
            metric,
            of_a[metric],
            of_b[metric],
            judge.judge([pair], metric, effect=effect, ignore=ignore)[0],
        )
        for metric in common
    )


def _runs(cells: Collection[int]) -> dict[int, tuple[Run, ...]]:
    found: dict[int, list[Run]] = {cell: [] for cell in cells}
    listed = Run.objects.filter(cell__in=cells).defer("plan").order_by("repeat")
    for run in listed[: 2 * MOST_RUNS]:
        found[run.cell_id].append(run)
    return {cell: tuple(runs) for cell, runs in found.items()}


def _loaded(
    cells: Sequence[Cell], runs: Mapping[int, CellRuns], rows: Sequence[MetricRow]
) -> Loaded:
    """Both cells as series of one point each, so that the same code names and compares them."""
    series = []
    for cell, side in zip(cells, ("a", "b"), strict=True):
        levels = series_cells.levels_of(cell)
        fixed = tuple((name, level_text(level)) for name, level in levels.items())
        summary = getattr(rows[0], side) if rows else Summary(0, 0, 0, 0, 0)
        point = SeriesCell(cell.pk, None, levels, summary, runs.get(cell.pk, CellRuns()))
        version = str(levels.get(series_cells.VERSION, ""))
        key = SeriesKey(cell.campaign.slug, fixed)
        series.append(Series(key, cell.campaign, version, levels, (point,)))
    return Loaded(series=tuple(series), **series_selectors.conditions_of(series))
