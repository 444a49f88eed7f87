"""Aggregated logs: the columns of each version, several threads, lines that are no interval's."""

import pytest

from runs.tools.pgbench.logs import read_aggregated_log
from tests.each import over
from tests.unit.tools.pgbench.samples import recorded_logs

LOGS = recorded_logs(aggregated=True)
START = 1_795_209_660


def interval_of(line: str):
    return read_aggregated_log({"log": f"{START} {line}\n".encode()}).intervals[START]


@over(LOGS)
def test_a_recorded_log_is_known_line_by_line(recorded):
    log = read_aggregated_log({"log": recorded.text})

    assert log.unknown_lines == []
    assert len(log.intervals) == len(recorded.text.splitlines())
    assert log.writers == 1
    for found in log.intervals.values():
        average = found.latency_sum / found.transactions
        assert 100 < average <= found.latency_maximum


def test_the_widths_of_the_versions_are_there():
    widths = {log.text.split(b"\n")[0].count(b" ") + 1 for log in LOGS}

    assert widths == {6, 10, 11, 15}


@pytest.mark.parametrize(
    ("line", "transactions", "skipped", "failed"),
    [
        ("609 1545562 7381877960 331 17524", 609, 0, 0),
        ("34 98069 507145167 654 10745 3090 542282 22 580", 34, 0, 0),
        ("4881 6035294 52986385442 1538 102542 4044857 10934149853 992 3000 3366", 1515, 3366, 0),
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

    assert (found.transactions, found.skipped, found.failed) == (transactions, skipped, failed)


def test_threads_are_added_up():
    line = f"{START} 100 1000 20000 5 50\n".encode()
    other = f"{START} 200 4000 90000 2 70\n".encode()

    log = read_aggregated_log({"log": line, "log.1": other})

    found = log.intervals[START]
    assert (found.transactions, found.latency_sum, found.latency_maximum) == (300, 5000, 70)
    assert log.writers == 2


@pytest.mark.parametrize(
    "line", ["x", "1795209660 1 2 3 4", "1795209660 1 2 3 4 5 6 7", "0 1 5311 0 1795209656 502128"]
)
def test_other_lines_are_reported(line):
    log = read_aggregated_log({"log": f"{line}\n".encode()})

    assert log.intervals == {}
    assert log.unknown_lines == [line]


def test_a_last_line_that_may_be_cut_is_reported():
    log = read_aggregated_log({"log": f"{START} 609 1545562 7381877960 331 17".encode()})

    assert log.intervals == {}
    assert len(log.unknown_lines) == 1
