"""go-tpc's raw output of `go-tpc tpcc run`, in any of its output formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from runs.tools import metrics
from runs.tools.adapter import (
    Files,
    MetricValue,
    Reading,
    Reason,
    SeriesReading,
    Status,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.go_tpc.lines import Operation, Report, read_report
from runs.tools.metrics import Metric
from runs.tools.series import Point, regular
from runs.tools.text import LONGEST_MESSAGE, lines_of, output_of, shown, slug, text_named
from runs.wording import gettext_noop as _

_TPMC = Metric("tpmc", _("New orders per minute"), "tpmC", "higher")
_TPM = Metric("tpm", _("Transactions per minute"), "tpm", "higher")
_EFFICIENCY = Metric("efficiency", _("Share of the rate that TPC-C allows"), "%", "neutral")
_ERROR_SUFFIX = "_ERR"


@dataclass(frozen=True)
class GoTpcAdapter:
    """Reads go-tpc's TPC-C runs: --output plain, table and json."""

    name: str = "go_tpc"
    title: str = "go-tpc"
    takes: tuple[TakenFile, ...] = (
        TakenFile("stdout", _("What go-tpc tpcc run printed"), required=True),
        TakenFile("stderr", _("Standard error")),
    )

    def read(self, files: Files) -> Reading:
        """Read a run. Raises UnreadableOutput where nothing in it is go-tpc's."""
        lines = lines_of(output_of(files))
        report = read_report((*lines.whole, *lines_of(text_named(files, "stderr")).all), lines.cut)
        if not report.known_lines:
            raise UnreadableOutput(
                "not_go_tpc_output",
                "No line of the output is go-tpc's.",
                "Send all that go-tpc tpcc run printed, unchanged.",
            )
        reasons = tuple(_reasons(report))
        status = _status(reasons)
        return Reading(
            status=status,
            tool_name=self.name,
            reasons=reasons,
            measurements=() if status == "failed" else tuple(_measurements(report)),
            series=() if report.repeated else tuple(_series(report)),
            levels=_levels(report) if status != "failed" else {},
            unknown_lines=shown(report.unknown_lines),
        )


def _reasons(report: Report) -> Iterator[Reason]:
    if report.errors:
        yield Reason("tool_error", report.errors[0][:LONGEST_MESSAGE])
    if report.repeated or len(report.results) > 1:
        yield Reason("several_results", "The output holds more than one run: send each by itself.")
    elif not report.results:
        yield Reason("no_result", "The output ends without tpmC: it is no whole run of tpcc.")
    elif not report.results[0].get("tpmc"):
        yield Reason("nothing_processed", "No new order was processed.")
    elif "NEW_ORDER" not in report.summary:
        yield Reason("cut", "The summary of the operations is missing.")


def _status(reasons: tuple[Reason, ...]) -> Status:
    codes = {reason.code for reason in reasons}
    if codes & {"no_result", "several_results", "nothing_processed"}:
        return "failed"
    return "partial" if codes else "finished"


def _measurements(report: Report) -> Iterator[MetricValue]:
    result = report.results[0]
    yield from _TPMC.of(result["tpmc"])
    yield from _TPM.of(result.get("tpmtotal"))
    yield from _EFFICIENCY.of(result.get("efficiency"))
    errors = 0.0
    for operation in report.summary.values():
        if operation.name.endswith(_ERROR_SUFFIX):
            errors += operation.values["count"]
        else:
            yield from _of_operation(operation)
    yield from metrics.ERRORS.of(errors)


def _of_operation(operation: Operation) -> Iterator[MetricValue]:
    for metric, column in (
        (metrics.TRANSACTIONS, "count"),
        (_TPM, "tpm"),
        (metrics.LATENCY_AVERAGE, "avg(ms)"),
        *((metrics.latency_percentile(p), f"{p}th(ms)") for p in ("50", "90", "95", "99", "99.9")),
        (metrics.LATENCY_MAXIMUM, "max(ms)"),
    ):
        yield from metric.part(operation.name).of(operation.values[column])


def _series(report: Report) -> Iterator[SeriesReading]:
    """Yield transactions a minute of each operation that was in every interval.

    The tool prints no time. An interval is as long as its longest operation took, and one in which
    an operation did nothing has no line, so that others cannot be placed.
    """
    rounds = max((len(found) for found in report.current.values()), default=0)
    if not rounds:
        return
    everything = chain.from_iterable(report.current.values())
    interval = float(round(max(operation.values["takes(s)"] for operation in everything)))
    for name, found in report.current.items():
        if len(found) == rounds and not name.endswith(_ERROR_SUFFIX):
            points: list[Point] = [
                (interval * place, operation.values["tpm"])
                for place, operation in enumerate(found, start=1)
            ]
            yield from regular(f"{slug(name)}_tpm", "tpm", points, interval=interval)


def _levels(report: Report) -> dict[str, int | float | str]:
    """Return how long the run took; the tool prints none of its other options."""
    takes = [operation.values["takes(s)"] for operation in report.summary.values()]
    return {"duration": max(takes)} if takes else {}


ADAPTER = GoTpcAdapter()
