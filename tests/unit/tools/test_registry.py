"""Adapters are found by their folders."""

import pytest

from runs.tools import registry
from runs.tools.documents import document_of, documents_in, number
from runs.tools.series import interval_of, regular

NAMES = {
    *("benchbase", "fio", "go_tpc", "hammerdb", "pg_test_fsync", "pg_test_timing", "pgbench"),
    *("google_benchmark", "hyperfine", "lines", "pytest_benchmark", "sysbench"),
}


def test_every_tool_with_an_adapter_is_found():
    assert {adapter.name for adapter in registry.every()} == NAMES


@pytest.mark.parametrize("adapter", registry.every(), ids=lambda adapter: adapter.name)
def test_an_adapter_is_found_by_the_name_of_its_folder(adapter):
    assert type(adapter).__module__ == f"runs.tools.{adapter.name}.adapter"
    assert registry.find(adapter.name) is adapter
    assert adapter.title
    assert adapter.takes


@pytest.mark.parametrize("name", ["go-tpc", "go_tpc", " Go-TPC "])
def test_a_name_may_be_written_in_several_ways(name):
    assert registry.find(name) is registry.find("go_tpc")


@pytest.mark.parametrize("name", ["", "adapter", "oracle", "../pgbench", "pgbench.adapter"])
def test_a_tool_without_an_adapter_is_none(name):
    assert registry.find(name) is None


def test_documents_are_found_among_other_lines():
    found = documents_in('fio: warning\n{"a": 1}\nRESULT\n[\n "x"\n]\nend')

    assert found.found == ({"a": 1}, ["x"])
    assert found.other_text == "fio: warning\n\nRESULT\n\nend"


def test_a_document_that_is_not_whole_stays_text():
    assert documents_in('{"a": 1').found == ()
    assert documents_in('{"a": 1').other_text == '{"a": 1'


def test_after_many_failures_no_more_are_looked_for():
    assert documents_in("[x\n" * 50 + "{}\n").found == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        ("1.5", 1.5),
        (" 2 ", 2.0),
        (True, None),
        (None, None),
        ("nan", None),
        ("inf", None),
        (10**400, None),
        ([], None),
        ("12%", None),
    ],
)
def test_a_number_is_finite_or_none(value, expected):
    assert number(value) == expected


def test_a_line_is_a_document_only_as_a_whole():
    assert document_of('{"a": NaN}') == {"a": None}
    assert document_of("{} x") is None


def values(points, interval):
    return [found.values for found in regular("tps", "tps", points, interval=interval)]


def test_points_are_put_at_their_intervals():
    (found,) = regular("tps", "tps", [(1.0, 10.0), (2.01, 20.0), (2.99, 30.0)], interval=1.0)

    assert (found.start, found.interval, found.values) == (1.0, 1.0, (10.0, 20.0, 30.0))


def test_an_interval_without_a_point_is_a_gap():
    assert values([(1.0, 1.0), (3.0, 3.0)], 1.0) == [(1.0, None, 3.0)]


def test_points_may_come_in_any_order_and_the_later_counts():
    assert values([(2.0, 2.0), (1.0, 1.0), (2.0, 5.0)], 1.0) == [(1.0, 5.0)]


@pytest.mark.parametrize(
    ("points", "interval"),
    [
        ([], 1.0),
        ([(1.0, 1.0)], None),
        ([(1.0, 1.0)], 0.0),
        ([(1.0, None), (2.0, None)], 1.0),
        ([(1.0, 1.0), (1e15, 2.0)], 1.0),
    ],
)
def test_points_that_are_no_series_give_none(points, interval):
    assert values(points, interval) == []


@pytest.mark.parametrize(
    ("seconds", "interval"),
    [
        ([1.0, 2.0, 3.0], 1.0),
        ([5.0, 10.0, 15.1, 20.0, 25.0], 5.0),
        ([1.0], None),
        ([], None),
        ([2, 2], None),
    ],
)
def test_the_interval_is_the_usual_distance(seconds, interval):
    assert interval_of(seconds) == interval
