"""How a load was put on, in one spelling whatever the version printed."""

import pytest

from runs.tools import registry
from tests.unit.tools.pgbench.samples import all_samples, sample

ADAPTER = registry.find("pgbench")


KNOWN = [each for each in all_samples() if "transaction type: " in each.stdout]


def workload(of):
    return dict(ADAPTER.read({"stdout": of.stdout, "stderr": of.stderr}).workload)


@pytest.mark.parametrize("version", ["9.3.25", "9.5.25", "9.6.23", "13.12", "15.16", "18.6"])
def test_the_same_load_is_told_alike_by_every_version(version):
    found = workload(sample(f"{version}/a_tpcb"))

    assert found.pop("connection", "kept") == "kept"
    assert found == {"script": "tpcb-like", "query_mode": "simple", "rate": 0, "max_tries": 1}


def test_scripts_have_the_names_of_their_files_or_built_ins():
    found = {workload(each).get("script") for each in KNOWN}
    assert {"tpcb-like", "select-only", "simple-update", "serializable.sql", None} <= found
    assert not any("/" in name or "<" in name for name in found if name)


def test_what_a_version_does_not_print_is_not_known():
    assert "connection" not in workload(sample("13.12/a_tpcb"))
    custom = [each for each in KNOWN if "transaction type: Custom query" in each.stdout]
    assert custom
    assert all("script" not in workload(each) for each in custom)


def test_several_scripts_are_told_with_their_weights():
    found = {workload(each).get("script") for each in KNOWN if "weight" in each.case}

    assert any("*" in name and "+" in name for name in found if name), found
