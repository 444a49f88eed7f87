"""Every figure that pgbench prints is kept, and is the one that a plain reading finds."""

import re

from runs.tools import registry
from tests.each import over
from tests.unit.tools.pgbench.samples import all_samples
from tests.unit.tools.pgbench.test_samples import counted_right, expected_status
from tests.unit.tools.reading import figures

ADAPTER = registry.find("pgbench")
N = r"(-?[0-9.]+)"
LINES = {
    rf"^number of transactions actually processed: {N}": "transactions",
    rf"^number of failed transactions: {N}": "failed_transactions",
    rf"^number of serialization failures: {N}": "serialization_failures",
    rf"^number of deadlock failures: {N}": "deadlock_failures",
    rf"^number of other failures: {N}": "other_failures",
    rf"^number of transactions retried: {N}": "retried_transactions",
    rf"^total number of retries: {N}": "retries",
    rf"^number of transactions skipped: {N}": "skipped_transactions",
    rf"latency limit: {N}": "late_transactions",
    rf"^latency average(?: =|:) {N} ms": "latency_average",
    rf"^latency stddev(?: =|:) {N} ms": "latency_stddev",
    rf"^rate limit schedule lag: avg {N}": "schedule_lag_average",
    rf"^rate limit schedule lag: avg [0-9.]+ \(max {N}": "schedule_lag_max",
    rf"^initial connection time = {N}": "initial_connection_time",
    rf"^average connection time = {N}": "connection_time_average",
    rf"^tps = {N} \((?:excl|without|including reconn)": "tps",
    rf"^tps = {N} \((?:including)": "tps_including_connections",
}
SCRIPT_LINES = {
    rf"^ - [0-9]+ transactions .*tps = {N}": "tps",
    rf"^ - number of transactions actually processed: [0-9]+ \(tps = {N}": "tps",
    rf"^ - latency average = {N} ms": "latency_average",
    rf"^ - latency stddev = {N} ms": "latency_stddev",
    rf"^ - number of failed transactions: {N}": "failed_transactions",
    rf"^ - number of serialization failures: {N}": "serialization_failures",
    rf"^ - number of deadlock failures: {N}": "deadlock_failures",
    rf"^ - number of other failures: {N}": "other_failures",
    rf"^ - number of transactions retried: {N}": "retried_transactions",
    rf"^ - total number of retries: {N}": "retries",
    rf"^ - number of transactions skipped: {N}": "skipped_transactions",
}
SCRIPT = re.compile(r"^SQL script (\d+): ")
TABLE = re.compile(r"^(?: - )?statement latencies in milliseconds( and failures|, failures and)?")
ROW = re.compile(r"^\s+([0-9.]+)\s+(?:([0-9]+)\s+)?(?:([0-9]+)\s+)?")


def read_plainly(text):
    """The figures by metric, and for the rows of -r their numbers in order."""
    found, rows, script, columns = {}, [], 0, None
    several = (
        len(
            set(SCRIPT.findall(text.replace("\n", "\n\n")))
            | set(re.findall(SCRIPT.pattern, text, re.MULTILINE))
        )
        > 1
    )
    for line in text.splitlines():
        if header := SCRIPT.match(line):
            script = int(header[1])
        for pattern, metric in (SCRIPT_LINES if line.startswith(" - ") else LINES).items():
            if (match := re.search(pattern, line)) and (several or not line.startswith(" - ")):
                name = f"script_{script}_{metric}" if line.startswith(" - ") else metric
                found[name] = float(match[1])
        if header := TABLE.match(line):
            columns = {None: 0, " and failures": 1}.get(header[1], 2)
        elif columns is not None and (row := ROW.match(line)):
            rows.append([float(value) for value in row.groups()[: columns + 1] if value])
    return found, rows


@over([each for each in all_samples() if expected_status(each) == "complete"])
def test_every_printed_figure_is_kept(sample):
    reading = ADAPTER.read(
        {"stdout": sample.stdout, "stderr": sample.stderr, "exit_status": str(sample.exit_status)}
    )
    kept = figures(reading)
    expected, rows = read_plainly(sample.stdout)
    if not counted_right(sample) or (
        "schedule_lag_average" in expected and "skipped" in sample.stdout
    ):
        # Put right where the version counts skipped transactions among the others; a note says so.
        corrected = ("tps", "transactions", "schedule_lag_average", "tps_including_connections")
        expected = {name: value for name, value in expected.items() if not name.endswith(corrected)}

    assert {name: kept.get(name) for name in expected} == expected
    for index, metric in enumerate(("latency", "failures", "retries")):
        found = [
            value.value
            for value in reading.measurements
            if re.fullmatch(rf"statement_\d+_\d+_?.*_{metric}", value.metric)
        ]
        printed = [row[index] for row in rows if len(row) > index]
        # Commands of scripts that never ran are printed as 0.000 ms, and have no latency.
        assert [each for each in printed if each or index] == [
            each for each in found if each or index
        ]


@over([each for each in all_samples() if expected_status(each) == "complete"])
def test_nothing_of_a_summary_is_unread(sample):
    reading = ADAPTER.read({"stdout": sample.stdout, "exit_status": str(sample.exit_status)})

    assert reading.unknown_lines == ()
