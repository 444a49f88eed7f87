"""Adapters are found by their folders."""

import pytest

from runs.tools import registry

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
