"""What holds for every text: no exception, no wrong number out of a cut one, linear time."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.tools import registry
from runs.tools.pgbench import PgbenchResult, parse
from runs.tools.pgbench.result import Figures
from tests.each import examples, over
from tests.unit.timing import cpu_seconds
from tests.unit.tools.pgbench.samples import Sample, all_samples, sample
from tests.unit.tools.pgbench.test_adapter import counted_right, expected_status
from tests.unit.tools.reading import figures

SAMPLES = [sample for sample in all_samples() if sample.stdout]
# One of each shape of output: each is cut at every byte.
SHAPES = [
    "9.3.25/a_tpcb_r",
    "9.5.25/g_rate50_limit20",
    "9.5.25/g_two_scripts_old",
    "9.6.23/g_two_scripts_rate_limit",
    "9.6.23/g_rate_overload_limit",
    "9.6.23/g_weight0",
    "12.13/g_two_scripts_rate_limit",
    "12.13/e_t100",
    "15.16/g_maxtries_two_scripts",
    "15.16/j_connect_S_r",
    "18.6/g_maxtries_two_scripts",
    "18.6/g_two_scripts_rate_limit",
]
TPS = re.compile(
    r"^tps = \S+ \((?:excluding|without|including reconn)[^()\n]*\)$", re.MULTILINE
)
FRAGMENTS = sorted({line for sample in SAMPLES for line in sample.stdout.split("\n")})


def read(stdout: str, run: Sample) -> PgbenchResult:
    return parse(stdout, run.stderr, exit_status=run.exit_status)


def assert_no_wrong_number(cut: PgbenchResult, full: PgbenchResult) -> None:
    flags = {"scripts", "statements", "latency_is_measured"}
    for name in vars(Figures()).keys() - flags:
        assert getattr(cut, name) in (None, getattr(full, name)), name
    for script, original in zip(cut.scripts, full.scripts, strict=False):
        for name, value in vars(script).items():
            assert value in (None, getattr(original, name)), name
    for row, original in zip(cut.statements, full.statements, strict=False):
        assert row == original


def assert_cut_is_safe(run: Sample, length: int, full: PgbenchResult) -> None:
    text = run.stdout.encode()[:length].decode(errors="replace")
    cut = read(text, run)
    if not TPS.search(text):
        assert cut.status == "failed"
    assert_no_wrong_number(cut, full)


@pytest.mark.parametrize("name", SHAPES)
def test_a_cut_at_any_byte_gives_no_wrong_number(name):
    run = sample(name)
    full = read(run.stdout, run)
    assert full.status == "complete"

    for length in range(len(run.stdout.encode())):
        assert_cut_is_safe(run, length, full)


@given(st.sampled_from(SAMPLES), st.floats(0, 1, exclude_max=True))
@settings(max_examples=examples(500), deadline=None)
def test_a_cut_of_any_sample_gives_no_wrong_number(run, share):
    full = read(run.stdout, run)

    assert_cut_is_safe(run, int(len(run.stdout.encode()) * share), full)


@given(st.sampled_from(SAMPLES), st.floats(0, 1))
@settings(max_examples=examples(300), deadline=None)
def test_cut_messages_give_no_wrong_progress(run, share):
    full = parse(run.stdout, run.stderr, exit_status=None)
    cut = parse(
        run.stdout, run.stderr[: int(len(run.stderr) * share)], exit_status=None
    )

    for point, original in zip(cut.progress, full.progress, strict=False):
        for name, value in vars(point).items():
            assert value in (None, getattr(original, name)), name


@given(st.text(), st.text(), st.none() | st.integers())
@settings(max_examples=examples(100))
def test_any_text_is_a_failed_run(stdout, stderr, exit_status):
    result = parse(stdout, stderr, exit_status=exit_status)

    assert result.status == "failed"
    assert result.tps is None
    assert result.problems


@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=40),
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=10),
    st.sampled_from([None, 0, 1, 2, 130, -9]),
)
@settings(max_examples=examples(500), deadline=None)
def test_no_mixture_of_lines_raises(stdout, stderr, exit_status):
    result = parse("\n".join(stdout), "\n".join(stderr), exit_status=exit_status)

    assert (result.tps is None) == (result.status == "failed")


@given(st.text(alphabet="0123456789.-+eE naif#IND()%/:\t\n", max_size=200))
@settings(max_examples=examples(100))
def test_no_number_raises(number):
    text = sample("18.6/a_tpcb_r").stdout
    for old in ("5676", "scaling factor: 1", "duration: 5"):
        text = text.replace(old, old.rpartition(" ")[0] + number)

    assert parse(text, f"progress: {number} s, {number} tps", exit_status=0).status in {
        "complete",
        "partial",
        "failed",
    }


@pytest.mark.parametrize(
    "unit",
    [
        "progress: 1.0 s, 2.0 tps, lat 1.000 ms stddev 1.000",
        "progress: ",
        "client 1 ",
        "connection to database ",
        "1",
        " 1.000 ",
        " - 1 transactions (",
        "pgbench (1.1 (",
        "\n",
        "a\n",
        "statement latencies in milliseconds:\n\t0.1\t",
    ],
)
def test_the_time_grows_no_faster_than_the_text(unit):
    def seconds(size: int, *, tries: int) -> float:
        text = unit * (size // len(unit))
        return cpu_seconds(lambda: parse(text, text, exit_status=0), tries=tries)

    # Ten times the text: quadratic time would be a hundred times as much, and minutes here.
    assert seconds(500_000, tries=1) < 40 * max(seconds(50_000, tries=3), 0.005)


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
TABLE = re.compile(
    r"^(?: - )?statement latencies in milliseconds( and failures|, failures and)?"
)
ROW = re.compile(r"^\s+([0-9.]+)\s+(?:([0-9]+)\s+)?(?:([0-9]+)\s+)?")


def read_plainly(text):
    """The figures by metric, and for the rows of -r their numbers in order."""
    found = {}
    rows = []
    script = 0
    columns = None
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
        for pattern, metric in (
            SCRIPT_LINES if line.startswith(" - ") else LINES
        ).items():
            if (match := re.search(pattern, line)) and (
                several or not line.startswith(" - ")
            ):
                name = f"script_{script}_{metric}" if line.startswith(" - ") else metric
                found[name] = float(match[1])
        if header := TABLE.match(line):
            columns = {None: 0, " and failures": 1}.get(header[1], 2)
        elif columns is not None and (row := ROW.match(line)):
            rows.append(
                [float(value) for value in row.groups()[: columns + 1] if value]
            )
    return found, rows


@over([each for each in all_samples() if expected_status(each) == "complete"])
def test_every_printed_figure_is_kept(sample):
    reading = ADAPTER.read(
        {
            "stdout": sample.stdout,
            "stderr": sample.stderr,
            "exit_status": str(sample.exit_status),
        }
    )
    kept = figures(reading)
    expected, rows = read_plainly(sample.stdout)
    if not counted_right(sample) or (
        "schedule_lag_average" in expected and "skipped" in sample.stdout
    ):
        # Put right where the version counts skipped transactions among the others; a note says so.
        corrected = (
            "tps",
            "transactions",
            "schedule_lag_average",
            "tps_including_connections",
        )
        expected = {
            name: value
            for name, value in expected.items()
            if not name.endswith(corrected)
        }

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
    reading = ADAPTER.read(
        {"stdout": sample.stdout, "exit_status": str(sample.exit_status)}
    )

    assert reading.unknown_lines == ()
