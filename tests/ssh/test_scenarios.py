"""The scenarios' procedures on a real target, apart from the reading one of test_director."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.plan import RunPlan
from runs.execution.procedure import Procedure
from runs.scenarios import registry
from tests.ssh.directing import execute, left_running, names, watched, when_measuring

pytestmark = pytest.mark.openssh


@pytest.fixture
def updating(plan) -> RunPlan:
    """An updating run on PostgreSQL 16 with the pgbench of 18."""
    return replace(
        plan,
        scenario="fixed-point-update",
        settings=plan.settings | {"max_wal_size": "16GB"},
        parameters={"scale": 1, "duration": 1},
        cluster_key="",
        template_key="template",
    )


def step(director, name):
    return next(each for each in director.reporter.commands if each.name == name)


def codes(director):
    return [note.code for note in director.bench.findings.notes]


@pytest.mark.full_load
def test_an_update_run_does_what_the_reports_do(direct, updating):
    director = direct(updating)
    found = execute(director)
    assert "-F 80" in " ".join(step(director, "load").argv)
    assert step(director, "write-script").stdin == (
        "\\set naccounts 100000 * :scale\n"
        "\\set aid_val random(1, :naccounts)\n"
        "UPDATE pgbench_accounts SET filler=repeat(md5(current_timestamp::text),2)"
        " WHERE aid = :aid_val;\n"
    )
    assert found.measurements["tps"] > 0
    assert found.measurements["transactions"] > 0
    assert "checkpoint_during_run" not in codes(director)


COUNT = "SELECT count(*) FROM pgbench_accounts WHERE btrim(filler) <> '';"


@dataclass
class Counting:
    """A procedure that counts the updated rows before and after the load is on."""

    inner: Procedure
    found: list[int]

    async def load(self, bench):
        await self.inner.load(bench)

    async def warm(self, bench):
        self.found.append(int(await bench.sql("count-before", COUNT)))

    async def measure(self, bench):
        await self.inner.measure(bench)
        self.found.append(int(await bench.sql("count-after", COUNT)))


def test_each_run_gets_a_copy_of_the_loaded_cluster_and_only_the_first_loads(
    direct, updating, base_dir
):
    """It has nothing of the run before."""
    first, second, updated = direct(updating), direct(replace(updating, run_id=8)), []
    for director in (first, second):
        counting = Counting(director.procedure, updated)
        director.procedure = director.preparing.procedure = counting
    execute(first)
    assert names(base_dir / "clusters") == ["template"]
    execute(second)
    assert "load" in first.reporter.steps
    assert not {"initdb", "load"} & set(second.reporter.steps)
    assert [each.reporter.clusters for each in (first, second)] == [
        [(f"{base_dir}/clusters/template", True)],
        [(f"{base_dir}/clusters/template", False)],
    ]
    assert "cluster_restored" in codes(first)
    assert "cluster_restored" in codes(second)
    assert names(base_dir / "clusters") == ["template"]
    assert left_running(base_dir) == []
    assert (updated[0], updated[2]) == (0, 0)
    assert updated[1] > 0
    assert updated[3] > 0


def test_a_run_without_a_template_loads_its_own_cluster(direct, updating, base_dir):
    director = direct(replace(updating, template_key=""))
    execute(director)
    assert "restore" not in director.reporter.steps
    assert names(base_dir / "clusters") == []


def test_a_disk_with_room_for_one_cluster_only_gets_no_template(
    direct, updating, base_dir
):
    director = direct(updating)
    director.preparing.disk_bytes = int(shutil.disk_usage(base_dir).free * 0.6)
    execute(director)
    assert "cluster_rebuilt" in codes(director)
    assert director.reporter.clusters == []
    assert names(base_dir / "clusters") == []


def test_a_cancel_while_the_template_is_loaded_leaves_nothing(
    direct, updating, base_dir
):
    director = direct(replace(updating, parameters={"scale": 20, "duration": 1}))

    def orders():
        while True:
            yield "cancel" if director.bench.running_step == "load" else "go_on"

    with pytest.raises(Cancelled):
        watched(director, orders(), interval_s=0.05)
    assert left_running(base_dir) == []
    assert names(base_dir / "clusters") == []
    assert names(base_dir / "runs") == []


def test_another_worker_goes_on_with_a_copy(direct, updating, base_dir):
    updating = replace(updating, parameters={"scale": 1, "duration": 4})
    first = direct(updating)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    second = direct(updating, taken_over=True)
    assert execute(second).measurements["tps"] > 0
    before = {each.name: each for each in first.reporter.commands}
    assert all(before.get(each.name, each) == each for each in second.reporter.commands)
    assert names(base_dir / "clusters") == ["template"]


def test_a_load_that_fails_leaves_no_template(direct, updating, base_dir):
    broken = direct(
        replace(
            updating,
            settings=updating.settings | {"default_transaction_read_only": "on"},
        )
    )
    with pytest.raises(TargetProblem):
        execute(broken)
    assert names(base_dir / "clusters") == []
    assert left_running(base_dir) == []


@pytest.mark.full_load
def test_a_checkpoint_while_measuring_is_told_with_the_result(direct, updating):
    small = updating.settings | {"max_wal_size": "32MB", "min_wal_size": "32MB"}
    director = direct(
        replace(updating, settings=small, parameters={"scale": 1, "duration": 2})
    )
    found = execute(director)
    assert found.measurements["tps"] > 0
    assert "checkpoint_during_run" in codes(director)


def test_without_a_checkpoint_there_is_nothing_to_tell_from_18_on_either(
    direct, updating, binaries
):
    director = direct(
        replace(updating, bindir=str(binaries.postgresql18), version_num=180004)
    )
    execute(director)
    assert "checkpoint_during_run" not in codes(director)


# Where the level is not what initdb would do by itself; the others come with script/test --all.
@pytest.mark.parametrize(
    ("version", "level"),
    [
        (16, "on"),
        (18, "off"),
        pytest.param(16, "off", marks=pytest.mark.slow),
        pytest.param(18, "on", marks=pytest.mark.slow),
    ],
)
def test_checksums_are_on_just_where_the_level_says_so(
    direct, updating, binaries, version, level
):
    if version == 18:
        updating = replace(
            updating, bindir=str(binaries.postgresql18), version_num=180004
        )
    scenario = registry.get("page-checksums")
    levels = {"version": str(version), "checksums": level, "clients": 1}
    options = scenario.cluster(updating.version_num, levels).initdb_options
    director = direct(
        replace(
            updating,
            scenario=scenario.slug,
            levels=levels,
            initdb_options=options,
            cluster_key=f"checksums-{level}",
            template_key="",
        )
    )
    found = execute(director)
    assert found.settings["data_checksums"]["setting"] == level
    assert found.measurements["tps"] > 0


def test_a_cluster_whose_checksums_are_not_what_was_asked_for_is_not_measured(
    direct, updating
):
    """Such as one that somebody has changed by pg_checksums behind our back."""
    shared = replace(
        updating, scenario="page-checksums", cluster_key="shared", template_key=""
    )
    execute(direct(replace(shared, initdb_options=("--data-checksums",))))
    with pytest.raises(TargetProblem) as problem:
        execute(
            direct(replace(shared, run_id=8, initdb_options=("--no-data-checksums",)))
        )
    assert problem.value.code == "checksums_differ"


# The scenario of docs/adding-a-scenario.md, and its test, as they are printed there.


GUIDE = Path(__file__).parents[2] / "docs/adding-a-scenario.md"


def printed(number: int) -> ModuleType:
    """The Python of the guide: 0 is the scenario's module, 1 its test's."""
    code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[number]
    module = ModuleType(f"printed_{number}")
    exec(compile(code, str(GUIDE), "exec"), module.__dict__)
    return module


def test_the_printed_scenario_passes_its_printed_test(
    direct, plan, base_dir, monkeypatch
):
    scenario = printed(0).SCENARIO
    monkeypatch.setitem(registry._SCENARIOS, scenario.slug, scenario)
    printed(1).test_a_standby_follows_while_the_primary_is_read(direct, plan, base_dir)


# The block-size scenario on a real target, from the files to the join.


def test_every_step_of_the_article_is_timed_and_each_repeat_kept(direct, plan):
    scenario = registry.get("block-size")
    settings = plan.settings | dict(scenario.cluster(160014, {}).settings)
    director = direct(
        replace(
            plan,
            scenario="block-size",
            levels={"version": "16.14"},
            parameters={"scale_percent": 1},
            settings=settings,
            cluster_key="",
        )
    )
    found = execute(director)
    missing = {each.name for each in scenario.metrics} - set(found.measurements)
    assert missing <= {"cached_bytes"}
    assert found.measurements["block_size"] == 8
    scans = next(each for each in found.series if each.name == "elapsed_scan")
    assert len(scans.values) == 5
    assert {"plan-scan.json", "plan-join.json"} <= {
        each.name for each in found.artifacts
    }
    sizes = next(each for each in found.artifacts if each.name == "relation-sizes.txt")
    tables = dict(line.split() for line in sizes.content.decode().splitlines())
    assert len(tables) == 8
    assert int(tables["lineitem"]) == found.measurements["table_size"]
    steps = director.reporter.steps
    assert (
        steps.index("stop-to-empty-buffers")
        < steps.index("scan-1")
        < steps.index("join-5")
    )
