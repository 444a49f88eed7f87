"""What every run records of where its time went, on real servers."""

import json
from dataclasses import replace

import pytest

from runs.execution.evidence import accounting, objects
from tests.ssh.arranging import artifact
from tests.ssh.directing import execute

pytestmark = [pytest.mark.openssh]


@pytest.mark.usefixtures("prepared")
@pytest.mark.full_load
def test_a_run_keeps_processor_time_queue_counters_plans_and_sizes(direct, plan):
    found = execute(direct(replace(plan, parameters={"scale": 1, "duration": 2})))
    kept = json.loads(artifact(found, accounting.FILE))
    transactions = found.measurements["transactions"]
    tables = kept["counters"]["pg_stat_user_tables"]["public pgbench_accounts"]
    # The planner looks at the ends of an index as well.
    assert transactions <= tables["idx_scan"] < 1.2 * transactions
    assert kept["built"].startswith("PostgreSQL 16")
    assert kept["configuration"]["CONFIGURE"]
    assert kept["jit"] in {True, False}
    assert kept["relations"]["pgbench_accounts"]["bytes"] > 10_000_000
    # Everything that can differ is recorded, and how the load is planned.
    of_version = {name for name, kind in objects.KINDS.items() if kind.since <= 160000}
    assert kept["objects"].keys() == of_version
    assert kept["objects"]["index"]["pgbench_accounts_pkey"].startswith(
        "CREATE UNIQUE INDEX"
    )
    assert {"lsn", "log"} <= set(kept["views"])
    # The program has no auto_explain: the plans are psql's.
    assert "pgbench_accounts_pkey" in json.dumps(kept["plans"][0]["Plan"])
    assert kept["planning_ms"] > 0
    assert kept["plans_missing"] == ""
    backends = [
        each for each in kept["processes"] if each["title"] == accounting.CLIENT_BACKEND
    ]
    (begin, end) = kept["spans"][0]
    # The two of the load, and none that BenchLab reads with.
    of_load = [each for each in backends if each["last"] - each["first"] > 1]
    assert len(of_load) == 2
    assert all(begin <= each["last"] <= end + 0.3 for each in of_load), (
        begin,
        end,
        of_load,
    )
    threads = [each for each in kept["processes"] if each["kind"] == "load"]
    assert sum(each["run"] for each in of_load) > 0
    assert sum(each["run"] for each in threads) > 0
