"""Foreign tables on a real target: a server with two others that are copies of it."""

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios.foreign_tables import ForeignTables
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left, with_contrib
from tests.ssh.directing import execute

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]
PARAMETERS = {"scale": 1, "duration": 2, "warm_up": 1}


def cell(plan, operation="select", pattern=1, location="local"):
    levels = {"operation": operation, "pattern": pattern, "table_location": location, "clients": 1}
    return arranged(plan, "foreign-tables", levels, PARAMETERS)


def test_both_tables_are_joined_here_though_each_lies_elsewhere(direct, plan, account, base_dir):
    director = direct(cell(with_contrib(plan, account), pattern=4))
    found = execute(director)
    explained = artifact(found, "plan.txt")
    # On one server the join would be sent there, and be one statement.
    assert explained.count("Remote SQL") == 2
    assert {"server-external1.log", "settings-external2.json"} <= {a.name for a in found.artifacts}
    assert found.measurements["tps"] > 0
    argv = next(c.argv for c in director.reporter.commands if c.name == "pgbench")
    assert "prepared" in argv
    assert nothing_is_left(base_dir) == NOTHING


def test_a_row_is_written_on_the_other_server(direct, plan, account, base_dir):
    director = direct(cell(with_contrib(plan, account), "insert", 1, "foreign"))

    class Counting(ForeignTables):
        async def measure(self, bench):
            await super().measure(bench)
            sql = "SELECT count(*) FROM public.pgbench_history;"
            for at in ("main", "external1"):
                rows[at] = int(await bench.sql(f"count-{at}", sql, at=at))

    rows = {}
    director.procedure = director.preparing.procedure = Counting()
    found = execute(director)
    assert rows["main"] == 0
    assert rows["external1"] >= found.measurements["transactions"] > 0
    assert nothing_is_left(base_dir) == NOTHING


def test_an_installation_without_the_extension_is_told(direct, plan, base_dir):
    """The wheels have no contrib."""
    with pytest.raises(TargetProblem) as caught:
        execute(direct(cell(plan, pattern=2)))
    assert caught.value.code == "missing_extension"
    assert nothing_is_left(base_dir) == NOTHING
