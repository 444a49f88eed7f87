"""Transaction logs (-l) against a plain reading of the same lines."""

import os
import random
import subprocess
from collections import Counter
from shutil import which

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.tools.pgbench import histogram, transaction_log
from runs.tools.pgbench.command import Log
from runs.tools.pgbench.histogram import Histogram, read_histogram
from runs.tools.pgbench.logs import read_aggregated_log
from runs.tools.pgbench.transaction_log import (
    OUTCOMES,
    read_columns,
    read_transaction_log,
)
from tests.each import check_each, over
from tests.unit.tools.pgbench.samples import Sample, recorded_logs, samples_with_log

START = 1_795_209_656
LOGS = recorded_logs(aggregated=False)


def read_plainly(text: bytes) -> tuple[list[int], list[int], Counter[str]]:
    """Latencies, ends, and outcomes, line by line."""
    latencies, ends, outcomes = [], [], Counter()
    for line in text.decode().splitlines():
        _, _, time, _, seconds, microseconds, *_ = line.split(" ")
        if time.isdigit():
            latencies.append(int(time))
            ends.append(int(seconds) * 1_000_000 + int(microseconds))
        else:
            outcomes[time] += 1
    return latencies, ends, outcomes


@over(LOGS)
def test_a_recorded_log_is_read_as_line_by_line(recorded):
    text = recorded.text
    latencies, ends, outcomes = read_plainly(text)

    columns = read_columns(text)

    assert columns
    assert columns.latency.tolist() == latencies
    assert columns.end.tolist() == ends
    assert columns.untimed == outcomes.total()


def test_there_are_logs_with_every_outcome_and_width():
    outcomes, widths = Counter(), set()
    for recorded in LOGS:
        outcomes += read_plainly(recorded.text)[2]
        widths.add(recorded.text.partition(b"\n")[0].count(b" ") + 1)

    assert set(outcomes) >= {"skipped", "failed", "serialization"}
    assert widths == {6, 7}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 99_999),
            st.integers(0, 10**12),
            st.integers(0, 10**10),
            st.integers(0, 999_999),
        ),
        min_size=1,
    ),
    st.sampled_from(["", " 12", " 12 0"]),
)
@settings(deadline=None)
def test_numbers_of_any_length_are_read_exactly(rows, more):
    lines = [f"{c} 7 {t} 0 {s} {us}{more}\n" for c, t, s, us in rows]

    columns = read_columns("".join(lines).encode())

    assert columns
    assert columns.latency.tolist() == [t for _, t, _, _ in rows]
    assert columns.end.tolist() == [s * 1_000_000 + us for _, _, s, us in rows]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"0 1 5311 0 1795209656\n",
        b"0 1 5311 0 1795209656 502128 1 2 3\n",
        b"0 1 5311 0 1795209656 502128",
        b"0 1 skipper 0 1795209656 502128\n",
        b"0 1 -5 0 1795209656 502128\n",
        b"0 1 5.5 0 1795209656 502128\n",
        b"0 1  0 1795209656 502128\n",
        b"0\t1\t5311\t0\t1795209656\t502128\n",
        b"0 1 5311 0 1795209656 5021289\n",
        b"0 1 5311 0 179520965600 502128\n",
        b"0 x 5311 0 1795209656 502128\n",
        b"0 1 5311 0 1795209656 502128\n0 1 5311 0 1795209656\n",
    ],
)
def test_other_lines_are_not_taken_for_transactions(line):
    assert read_columns(line) is None


def log_of(count: int, seed: int = 1) -> tuple[bytes, list[int]]:
    """Two clients, 100 transactions a second; latencies to 3 s."""
    rng = random.Random(seed)
    latencies = [min(int(rng.lognormvariate(8, 2)), 3_000_000) for _ in range(count)]
    lines = []
    for number, latency in enumerate(latencies):
        seconds, microseconds = divmod(
            START * 1_000_000 + 10_000 * (number + 1), 1_000_000
        )
        lines.append(f"{number % 2} {number} {latency} 0 {seconds} {microseconds}\n")
    return "".join(lines).encode(), latencies


@pytest.mark.parametrize("block", [64, 1000, 1 << 18])
def test_percentiles_are_those_of_all_transactions(monkeypatch, block):
    monkeypatch.setattr(transaction_log, "BLOCK_BYTES", block)
    text, latencies = log_of(3000)
    latencies.sort()

    log = read_transaction_log({"log": text})

    assert log.lines == log.latencies.count == 3000
    for percent in (50, 90, 99, 99.9):
        exact = latencies[round(percent * 30) - 1]
        assert log.latencies.percentile(percent) == pytest.approx(exact, rel=0.001)
    assert log.latencies.maximum == latencies[-1]


def test_latencies_below_a_second_are_exact():
    text, latencies = log_of(3000)
    short = sorted(latencies)[1499]
    assert short < 1_000_000

    assert read_transaction_log({"log": text}).latencies.percentile(50) == short


def test_each_second_counts_the_transactions_that_ended_in_it():
    text, latencies = log_of(1050)

    log = read_transaction_log({"log": text})

    assert log.whole_seconds == 10
    assert log.per_second.transactions[1:10].tolist() == [100] * 9
    assert log.per_second.latency_sum[: log.per_second.transactions.size].sum() == sum(
        latencies
    )


def test_threads_logs_count_together():
    first, _ = log_of(500, seed=1)
    second, _ = log_of(500, seed=2)

    log = read_transaction_log({"log": first, "log.1": second})

    assert log.lines == 1000
    assert log.per_second.transactions[1] == 200


def test_a_strange_line_is_reported_and_its_neighbours_are_kept():
    text, _ = log_of(500)
    lines = text.splitlines(keepends=True)
    lines.insert(100, b"Segmentation fault\n")
    lines.insert(300, b"0 12 13\n")

    log = read_transaction_log({"log": b"".join(lines)})

    assert log.lines == 500
    assert log.unknown_lines == ["Segmentation fault", "0 12 13"]


def test_a_last_line_that_may_be_cut_is_not_counted():
    text, _ = log_of(500)

    log = read_transaction_log({"log": text[:-3]})

    assert log.lines == 499
    assert len(log.unknown_lines) == 1


def test_windows_line_ends_are_read():
    text, _ = log_of(100)

    assert read_transaction_log({"log": text.replace(b"\n", b"\r\n")}).lines == 100


def test_impossible_times_are_counted_as_misplaced():
    text, _ = log_of(100)

    log = read_transaction_log(
        {"log": text + b"0 1 50 0 9795209656 1\n0 1 50 0 12 1\n"}
    )

    assert (log.lines, log.misplaced) == (102, 2)
    assert log.per_second.transactions.size < 100


def test_transactions_without_a_time_are_counted_by_their_words():
    lines = [f"0 1 {word} 0 {START} 5\n" for word in OUTCOMES]

    log = read_transaction_log({"log": "".join(lines).encode()})

    assert log.lines == len(OUTCOMES)
    assert log.unknown_lines == []
    assert log.latencies.count == 0
    assert log.latencies.percentile(50) is None


AGGREGATED_LOGS = recorded_logs(aggregated=True)
FIRST_SECOND = 1_795_209_660


def interval_of(line: str):
    return read_aggregated_log({"log": f"{FIRST_SECOND} {line}\n".encode()}).intervals[
        FIRST_SECOND
    ]


@over(AGGREGATED_LOGS)
def test_a_recorded_log_is_known_line_by_line(recorded):
    log = read_aggregated_log({"log": recorded.text})

    assert log.unknown_lines == []
    assert len(log.intervals) == len(recorded.text.splitlines())
    assert log.writers == 1
    for found in log.intervals.values():
        average = found.latency_sum / found.transactions
        assert 100 < average <= found.latency_maximum


def test_the_widths_of_the_versions_are_there():
    widths = {log.text.split(b"\n")[0].count(b" ") + 1 for log in AGGREGATED_LOGS}

    assert widths == {6, 10, 11, 15}


@pytest.mark.parametrize(
    ("line", "transactions", "skipped", "failed"),
    [
        ("609 1545562 7381877960 331 17524", 609, 0, 0),
        ("34 98069 507145167 654 10745 3090 542282 22 580", 34, 0, 0),
        (
            "4881 6035294 52986385442 1538 102542 4044857 10934149853 992 3000 3366",
            1515,
            3366,
            0,
        ),
        (
            "618 3712529 33933402299 1996 36089 1717404 4804445312 1113 3000 4467 0 0 0 0",
            618,
            4467,
            0,
        ),
        ("66 298701 2251583913 308 15416 0 0 0 0 0 21 28 2 1", 66, 0, 3),
        ("66 298701 2251583913 308 15416 0 0 0 0 0 21 28 2 1 4", 66, 0, 7),
    ],
)
def test_skipped_transactions_are_not_counted_whatever_the_version(
    line, transactions, skipped, failed
):
    found = interval_of(line)

    assert (found.transactions, found.skipped, found.failed) == (
        transactions,
        skipped,
        failed,
    )


def test_threads_are_added_up():
    line = f"{FIRST_SECOND} 100 1000 20000 5 50\n".encode()
    other = f"{FIRST_SECOND} 200 4000 90000 2 70\n".encode()

    log = read_aggregated_log({"log": line, "log.1": other})

    found = log.intervals[FIRST_SECOND]
    assert (found.transactions, found.latency_sum, found.latency_maximum) == (
        300,
        5000,
        70,
    )
    assert log.writers == 2


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "1795209660 1 2 3 4",
        "1795209660 1 2 3 4 5 6 7",
        "0 1 5311 0 1795209656 502128",
    ],
)
def test_other_lines_are_reported(line):
    log = read_aggregated_log({"log": f"{line}\n".encode()})

    assert log.intervals == {}
    assert log.unknown_lines == [line]


def test_a_last_line_that_may_be_cut_is_reported():
    log = read_aggregated_log(
        {"log": f"{FIRST_SECOND} 609 1545562 7381877960 331 17".encode()}
    )

    assert log.intervals == {}
    assert len(log.unknown_lines) == 1


# Latencies counted by awk where the logs lie, against the exact reading of the same logs.


PERCENTS = (50, 90, 95, 99, 99.9)
TRANSACTIONS = [
    run
    for run in samples_with_log()
    if "aggregate" not in run.case
    and any(name.startswith("pgbench_log.") for name in run.logs)
]
# Those that this machine has, of the kinds that targets have; one at least is its awk.
AWKS = tuple(
    name for name in ("awk", "mawk", "gawk", "busybox", "original-awk") if which(name)
)


def counted(folder, **environment) -> Histogram:
    done = subprocess.run(
        histogram.count(Log(str(folder))),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C"} | environment,
    )
    assert done.stderr == ""
    return read_histogram(done.stdout)


def exact(folder):
    logs = folder.glob("pgbench_log.*")
    return read_transaction_log(
        {path.name: path.read_bytes() for path in logs}
    ).latencies


def write_log(folder, latencies, name="pgbench_log.1"):
    lines = [
        f"0 {n} {latency} 0 1795209656 {n}\n" for n, latency in enumerate(latencies, 1)
    ]
    (folder / name).write_text("".join(lines))


def test_recorded_logs_of_every_version_have_the_percentiles_of_an_exact_reading(
    tmp_path,
):
    def check(run: Sample) -> None:
        folder = tmp_path / run.name
        folder.mkdir(parents=True)
        for name, text in run.logs.items():
            (folder / name).write_bytes(text)
        found, truth = counted(folder), exact(folder)
        assert found.transactions == truth.count
        for percent in PERCENTS:
            value = found.percentile_ms(percent)
            if truth.count * (100 - percent) >= 1000:
                assert value == pytest.approx(
                    truth.percentile(percent) / 1000, rel=0.01
                )
            else:
                assert value is None

    check_each(TRANSACTIONS, check)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """100,000 transactions from 1 us to hours, in the logs of three threads."""
    folder = tmp_path_factory.mktemp("wide")
    draw = random.Random(7)
    for name in ("pgbench_log.41", "pgbench_log.41.1", "pgbench_log.41.2"):
        write_log(
            folder, [int(10 ** draw.uniform(0, 10.5)) for _ in range(33_334)], name
        )
    return folder


@pytest.mark.parametrize("name", AWKS)
def test_every_awk_is_less_than_a_hundredth_off(wide, tmp_path, name):
    (tmp_path / "awk").symlink_to(which(name))
    found = counted(wide, PATH=f"{tmp_path}:{os.environ['PATH']}")
    truth = exact(wide)

    assert found.transactions == truth.count
    for percent in (0.5, 5, 25, *PERCENTS):
        exactly = truth.percentile(percent) / 1000
        assert found.percentile_ms(percent) == pytest.approx(exactly, rel=0.01)


def test_below_a_millisecond_they_are_exact(tmp_path):
    write_log(tmp_path, [draw for draw in range(1000) for _ in range(2)])

    found = counted(tmp_path)

    assert [found.percentile_ms(percent) for percent in (5, 50, 99)] == [
        0.049,
        0.499,
        0.989,
    ]


def test_what_is_no_transaction_that_ended_well_is_left_out(tmp_path):
    write_log(
        tmp_path, [*[2500] * 30, "failed", "skipped", "serialization", "deadlock", -3]
    )
    with (tmp_path / "pgbench_log.1").open("a") as log:
        log.write("0 36 25 0 17952\n0 37 26")

    assert counted(tmp_path).buckets == {(2500, 10): 30}


@pytest.mark.parametrize(
    ("transactions", "told"),
    [(19, []), (20, [50]), (999, [50, 90, 95]), (1000, [50, 90, 95, 99])],
)
def test_a_percentile_needs_ten_transactions_above_it(transactions, told):
    found = Histogram({(100, 1): transactions})

    assert [
        percent for percent in PERCENTS if found.percentile_ms(percent) is not None
    ] == told


def test_logs_of_several_machines_are_one(tmp_path):
    both, first, second = (tmp_path / name for name in ("both", "first", "second"))
    for folder in (both, first, second):
        folder.mkdir()
    slow, fast = range(5_000, 90_000, 7), range(200, 1_300)
    write_log(first, slow)
    write_log(second, fast)
    write_log(both, [*slow, *fast])

    assert histogram.together([counted(first), counted(second)]) == counted(both)


def test_a_log_that_is_missing_is_a_failure(tmp_path):
    done = subprocess.run(
        histogram.count(Log(str(tmp_path))), capture_output=True, check=False
    )

    assert done.returncode != 0


@pytest.mark.parametrize(
    "text", ["Killed", "1200 10 1 2 3", "1200 7" + " 1" * 10, "1 1" + " x" * 10]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="Not a row"):
        read_histogram(text)
