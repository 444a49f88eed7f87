"""go-tpc's recorded outputs give the figures that they print, in each form."""

import pytest

from runs.tools import registry
from tests.unit.tools.reading import codes, figures, read, sample, series

ADAPTER = registry.find("go-tpc")


@pytest.mark.parametrize(
    ("name", "tpmc", "total", "efficiency", "errors", "p99", "duration"),
    [
        ("tpcc_run_plain.txt", 26639.0, 58064.0, 103573.3, 4, 29.4, 15.0),
        ("tpcc_run_table.txt", 24363.8, 53972.1, 94727.0, 1, 35.7, 6.0),
        ("tpcc_run_json.txt", 21647.0, 48827.8, 84163.9, 3, 35.7, 10.0),
    ],
)
def test_each_form_gives_the_printed_figures(name, tpmc, total, efficiency, errors, p99, duration):
    reading = read("go_tpc", name)

    found = figures(reading)
    assert reading.status == "finished"
    assert (found["tpmc"], found["tpm"], found["efficiency"]) == (tpmc, total, efficiency)
    assert found["errors"] == errors
    assert found["new_order_latency_p99"] == p99
    assert reading.levels == {"duration": duration}
    assert reading.unknown_lines == ()


def test_an_operation_has_all_its_columns():
    found = figures(read("go_tpc", "tpcc_run_plain.txt"))

    assert found["stock_level_transactions"] == 539
    assert found["stock_level_tpm"] == 2160.3
    assert found["stock_level_latency_average"] == 3.7
    assert found["stock_level_latency_p50"] == 1.6
    assert found["stock_level_latency_p90"] == 8.9
    assert found["stock_level_latency_p95"] == 13.6
    assert found["stock_level_latency_p99"] == 31.5
    assert found["stock_level_latency_p99_9"] == 48.2
    assert found["stock_level_latency_max"] == 58.7


def test_intervals_are_series():
    reading = read("go_tpc", "tpcc_run_plain.txt")

    assert series(reading)["new_order_tpm"] == (26216.7, 28657.9)
    assert {(found.start, found.interval) for found in reading.series} == {(5.0, 5.0)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tpcc_connerr.txt", ["tool_error", "no_result"]),
        ("tpcc_prepare.txt", ["no_result"]),
        ("tpcc_check.txt", ["no_result"]),
        ("tpch_prepare.txt", ["no_result"]),
    ],
)
def test_what_is_no_whole_run_failed(name, expected):
    reading = read("go_tpc", name)

    assert (reading.status, codes(reading)) == ("failed", expected)
    assert reading.measurements == ()


def test_a_run_that_was_killed_failed_though_it_has_intervals():
    text = sample("go_tpc", "tpcc_run_plain.txt").partition(b"Finished")[0]

    reading = ADAPTER.read({"raw": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])
    assert series(reading)["new_order_tpm"] == (26216.7, 28657.9)


@pytest.mark.parametrize("form", ["plain", "table", "json"])
def test_the_final_newline_may_be_stripped(form):
    text = sample("go_tpc", f"tpcc_run_{form}.txt")

    assert ADAPTER.read({"raw": text.strip()}) == ADAPTER.read({"raw": text})


def test_a_number_that_is_none_makes_its_row_unknown():
    text = sample("go_tpc", "tpcc_run_json.txt").replace(b'"TPM":"1825.2"', b'"TPM":"NaN"')

    reading = ADAPTER.read({"raw": text})

    assert "delivery_tpm" not in figures(reading)
    assert len(reading.unknown_lines) == 1


def test_a_table_without_the_column_of_operations_is_unknown():
    text = sample("go_tpc", "tpcc_run_table.txt").replace(b"OPERATION ", b"OPERATNAN ")

    reading = ADAPTER.read({"raw": text})

    assert reading.status == "failed" or "new_order_tpm" not in figures(reading)
    assert any("NEW_ORDER" in line for line in reading.unknown_lines)
