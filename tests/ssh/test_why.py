"""Why two versions differ, from queued runs to the proof: on real servers of the lab."""

from pathlib import Path

import pytest
from django.db import connection

from benchlab.embedded.places import Places, var_from_environment
from benchlab.lab import folders, releases
from runs.campaigns.services import campaigns
from runs.models import Campaign, Run
from runs.queue.services import execution, leases
from runs.why.selectors import words
from runs.why.selectors.answers import answer_explanation
from runs.why.services import ablations
from runs.why.services.explanations import explain
from runs.why.views import SYSTEM_V
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.initialised import quick_bindir
from tests.started import wait_for_lab

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]

PARALLEL = "max_parallel_workers_per_gather"
WITH_LLVM = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def lab(account, test_folder):
    """The folders of the lab's binaries by major version."""
    wait_for_lab()
    places = Places(var_from_environment({}))

    def bindir(major):
        (version,) = (each.version for each in releases.every() if each.major == major)
        found = folders.versions_folder(places, account) / version / "bin"
        if not (found / "postgres").exists():
            pytest.skip(f"PostgreSQL {version} is missing: script/lab says why")
        return quick_bindir(found, test_folder, account)

    return bindir


def work_off(server, runs=1000):
    while runs and (claim := leases.claim(server_id=server.pk, holder="worker")):
        execution.execute(claim)
        runs -= 1
    failed = Run.objects.filter(state__in=Run.UNSUCCESSFUL)
    assert [(run.code, run.message) for run in failed] == []


def measured(server, folder="lab"):
    """Its installations, without the one whose pgbench is the load."""
    return [each for each in server.installations.all() if folder in each.bindir]


def queued(
    server,
    script,
    settings=None,
    seconds=1,
    repeats=2,
    scale=3,
    mode="simple",
    levels=None,
    folder="lab",
):
    """A campaign with a script, on all installations of the lab."""
    scenarios.sync()
    if (text := SCRIPTS.get(script)) is not None:
        version = factories.workload("own").versions.get()
        version.scripts = [{"name": "own", "text": text, "weight": 1}]
        version.save()
        script = "own@1"
    draft = factories.draft(
        server,
        scenario="pgbench",
        installations=measured(server, folder),
        levels={
            "script": [script],
            "scale": [scale],
            "clients": [1],
            "query_mode": [mode],
            "connection": ["kept"],
            **(levels or {}),
        },
        parameters={
            "duration": seconds,
            "warm_up": 0,
            "rate": 0,
            "max_tries": 0,
            "random_seed": 0,
            "fillfactor": 100,
        },
        settings=settings or {},
        repeats=repeats,
    )
    return campaigns.create(draft=draft)


COUNT = "SELECT count(*) FROM pgbench_accounts;"


@pytest.fixture
def server(racks, binaries, lab):
    """9.6, 10, and the programs of 18."""
    (made,) = racks(1, [binaries.postgresql18, lab("9.6"), lab("10")])
    return made


def test_a_changed_default_is_suspected_first_and_put_back_in_its_arm(
    server, admin_user
):
    campaign = queued(server, "count", seconds=2, repeats=1)
    work_off(server)
    old, new = (each.pk for each in campaign.cells.order_by("version_num"))
    found = explain(old, new, reader=admin_user)
    assert found.obstacle == ""
    first = found.candidates[0]
    assert (first.name, dict(first.put_back)) == (PARALLEL, {PARALLEL: "0"})
    assert "parallel_differs" in first.evidence
    assert found.difference.limits == ("parallel",)
    made = ablations.start(found=found, by=admin_user, keys=[PARALLEL])
    arms = made.campaign.runs.filter(cell__levels__arm__in=["B", PARALLEL], repeat=1)
    made.campaign.runs.exclude(pk__in=arms).delete()
    # An ablation goes on as long as it is undecided.
    work_off(server, runs=2)
    settings = {
        run.cell.levels["arm"]: run.settings.settings[PARALLEL]["setting"]
        for run in arms.select_related("cell", "settings")
    }
    assert settings == {"B": "2", PARALLEL: "0"}
    connection.close()


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(1800)
def test_parallel_plans_explain_10_against_9_6_and_decoys_nothing(server, admin_user):
    campaign = queued(server, "count", seconds=3, scale=5)
    work_off(server)
    old, new = (each.pk for each in campaign.cells.order_by("version_num"))
    found = explain(old, new, reader=admin_user)
    keys = [suspect.key for suspect in found.candidates[:3]]
    made = ablations.start(found=found, by=admin_user, keys=keys)
    work_off(server)
    made.campaign.refresh_from_db()
    assert made.campaign.state == Campaign.State.FINISHED
    found = explain(old, new, reader=admin_user)
    print(answer_explanation(found).sentence, found.answers)
    (proven,) = found.answers.cpu.explained
    assert proven.name == PARALLEL
    assert 0.7 < proven.share.value < 1.3
    assert all(each.answer != "proven" for each in found.answers.time.suspects[1:])
    connection.close()


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(900)
def test_runs_of_their_own_show_what_the_report_of_2017_found(
    server, admin_user, client
):
    """9.6 waits for semaphores by semop, 10 by futex; that of 2021 asks perf for functions."""
    levels = {"clients": [16]}
    campaign = queued(
        server, "simple-update", seconds=4, repeats=1, scale=1, levels=levels
    )
    work_off(server)
    old, new = (each.pk for each in campaign.cells.order_by("version_num"))
    made = ablations.record(found=explain(old, new, reader=admin_user), by=admin_user)
    work_off(server)
    made.campaign.refresh_from_db()
    assert made.campaign.state == Campaign.State.FINISHED
    found = explain(old, new, reader=admin_user).recorded
    # Newer C libraries call semtimedop for semop.
    waited = {(each.is_of_b, each.call in SYSTEM_V) for each in found.stacks}
    assert waited == {(False, True), (True, False)}
    for is_of_b in (False, True):
        frames = [each.functions for each in found.stacks if each.is_of_b == is_of_b]
        assert any("PGSemaphore" in each for each in frames)
    of_semaphores = {
        each.name: each for each in found.calls if each.name in {*SYSTEM_V, "futex"}
    }
    assert (
        max(each.a[1] for name, each in of_semaphores.items() if name in SYSTEM_V)
        > 0.01
    )
    assert of_semaphores["futex"].b[1] > 0.01
    assert found.profile is not None
    assert min(found.profile.samples) > 100
    client.force_login(admin_user)
    text = client.get(f"/compare/why/?a={old}&b={new}").content.decode()
    print(
        [
            (each.name, words.signed(each.difference.value))
            for each in found.profile.functions
        ]
    )
    assert "was built with semaphores of System V (semop)" in text
    print([(each.name, each.a, each.b) for each in found.calls], found.stacks)
    connection.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_instructions_name_what_the_report_of_2021_saw(
    racks, binaries, lab, admin_user
):
    """Its flame graph of the reading load at one client has more of index_fetch_heap in 14."""
    (server,) = racks(1, [binaries.postgresql18, lab("13"), lab("14")])
    scenarios.sync()
    draft = factories.draft(
        server,
        scenario="fixed-point-read",
        installations=measured(server),
        levels={"clients": [1]},
        parameters={"scale": 1, "duration": 2, "warm_up": 0},
        repeats=1,
    )
    campaign = campaigns.create(draft=draft)
    work_off(server)
    old, new = (each.pk for each in campaign.cells.order_by("version_num"))
    ablations.record(found=explain(old, new, reader=admin_user), by=admin_user)
    work_off(server)
    found = explain(old, new, reader=admin_user).recorded
    print(found.instructions, [note["message"] for note in found.missing])
    before, after = found.instructions.functions["index_fetch_heap"]
    assert 1.01 < after / before < 1.2
    connection.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_instructions_tell_what_18_does_more_of_on_point_reads(
    racks, binaries, lab, admin_user
):
    """Its new reading of pages: little is seen of it where all are in memory."""
    (server,) = racks(1, [binaries.postgresql18, lab("17"), lab("18")])
    campaign = queued(server, "select-only", seconds=2, repeats=1, scale=4)
    work_off(server)
    old, new = (each.pk for each in campaign.cells.order_by("version_num"))
    ablations.record(found=explain(old, new, reader=admin_user), by=admin_user)
    work_off(server)
    found = explain(old, new, reader=admin_user)
    print(
        answer_explanation(found).sentence,
        found.recorded.instructions,
        found.recorded.reading,
    )
    in_memory, reading = found.recorded.instructions, found.recorded.reading
    assert 1.01 < in_memory.b / in_memory.a < 1.05
    assert 1.06 < reading.b / reading.a < 1.10
    added = {name for name, (a, b) in reading.functions.items() if b > a}
    assert any(name.startswith("pgaio_") for name in added)
    connection.close()


# Causes planted between two sides of one version. What is expected of a setting: "first" (the first
# suspect that can be put back), "listed" (among the first three), or that nothing points to it.
CASES = {
    "synchronous_commit": ("simple-update", "simple", ("off", "on"), "first"),
    "enable_indexscan": ("range", "simple", ("on", "off"), "first"),
    "random_page_cost": ("select-only", "simple", ("1.1", "4"), "no_sign"),
    PARALLEL: ("count", "simple", ("0", "2"), "first"),
    "work_mem": ("sort", "simple", ("64MB", "64kB"), "first"),
    "plan_cache_mode": (
        "select-only",
        "prepared",
        ("auto", "force_custom_plan"),
        "first",
    ),
    "track_io_timing": ("select-only", "simple", ("off", "on"), "listed"),
    "wal_compression": ("simple-update", "simple", ("off", "on"), "listed"),
    "shared_buffers": ("range", "simple", ("128MB", "1MB"), "first"),
    "jit": ("count", "simple", ("off", "on"), "no_sign"),
    "max_wal_size": ("simple-update", "simple", ("1GB", "2GB"), "no_sign"),
    "effective_io_concurrency": ("select-only", "simple", ("1", "16"), "no_sign"),
    "io_method": ("select-only", "simple", ("sync", "worker"), "no_sign"),
}
SCRIPTS = {
    "count": COUNT,
    "sort": "SELECT count(*) FROM (SELECT * FROM pgbench_accounts ORDER BY filler, aid OFFSET 9) s",
    "range": "\\set aid random(1, 90000)\nSELECT sum(abalance) FROM pgbench_accounts"
    " WHERE aid BETWEEN :aid AND :aid + 2000;",
}


@pytest.fixture
def newest(racks, binaries, lab):
    """18 of the lab, and the programs of the embedded one."""
    (made,) = racks(1, [binaries.postgresql18, lab("18")])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_planted_cause_is_suspected_or_shows_no_sign(newest, admin_user, name):
    script, mode, values, expected = CASES[name]
    campaign = queued(newest, script, settings={name: list(values)}, mode=mode)
    work_off(newest)
    a, b = (campaign.cells.get(**{f"levels__{name}": value}).pk for value in values)
    found = explain(a, b, reader=admin_user)
    assert found.obstacle == ""
    names = [each.name for each in found.candidates]
    if expected == "first":
        assert names[:1] == [name]
    elif expected == "listed":
        assert name in names[:3]
    else:
        (own,) = (suspect for suspect in found.suspects if suspect.name == name)
        assert own.state == expected
        assert own.is_candidate
    connection.close()


# Causes that act in seconds on a small machine, planted in the same way: what puts them back proves
# them, here of time or of processor time.
PROVABLE = {
    "synchronous_commit": ("simple-update", "simple", ("off", "on")),
    "commit_delay": ("simple-update", "simple", ("0", "20000")),
    "wal_compression": ("simple-update", "simple", ("off", "on")),
    "enable_indexscan": ("range", "simple", ("on", "off")),
    "random_page_cost": ("select-only", "simple", ("1.1", "4000")),
    "shared_buffers": ("range", "simple", ("128MB", "1MB")),
    "enable_hashagg": ("group", "simple", ("on", "off")),
    "enable_hashjoin": ("join", "simple", ("on", "off")),
    PARALLEL: ("count", "simple", ("0", "2")),
    "work_mem": ("sort", "simple", ("64MB", "64kB")),
    "plan_cache_mode": ("select-only", "prepared", ("auto", "force_custom_plan")),
    "enable_indexonlyscan": ("keys", "simple", ("on", "off")),
}
SCRIPTS |= {
    "keys": "\\set aid random(1, 90000)\nSELECT count(*) FROM pgbench_accounts"
    " WHERE aid BETWEEN :aid AND :aid + 2000;",
    "group": "SELECT count(*) FROM (SELECT aid % 5000, sum(abalance) FROM pgbench_accounts"
    " GROUP BY 1) s;",
    "join": "SELECT count(*) FROM pgbench_accounts a JOIN pgbench_tellers t ON a.aid % 40 = t.tid;",
}


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROVABLE)
def test_a_planted_cause_is_proven(newest, admin_user, name):
    script, mode, values = PROVABLE[name]
    settings = {name: list(values)}
    if name == "commit_delay":
        settings["commit_siblings"] = ["0"]
    campaign = queued(newest, script, settings=settings, mode=mode, seconds=2)
    work_off(newest)
    a, b = (campaign.cells.get(**{f"levels__{name}": value}).pk for value in values)
    found = explain(a, b, reader=admin_user)
    assert name in [each.name for each in found.candidates[:3]]
    ablations.start(found=found, by=admin_user)
    work_off(newest)
    found = explain(a, b, reader=admin_user)
    print(name, answer_explanation(found).sentence)
    explained = [*found.answers.time.explained, *found.answers.cpu.explained]
    assert name in {each.name for each in explained}
    connection.close()


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(600)
def test_jit_that_can_act_is_suspected_first_and_proven(racks, binaries, admin_user):
    if not (WITH_LLVM / "../lib/llvmjit.so").exists():
        pytest.skip("PostgreSQL 15 with LLVM is missing: Debian's postgresql-15")
    (server,) = racks(1, [binaries.postgresql18, WITH_LLVM])
    costs = {f"jit_{each}above_cost": ["0"] for each in ("", "inline_", "optimize_")}
    settings = {"jit": ["off", "on"], **costs}
    campaign = queued(server, "count", settings=settings, seconds=2, folder="/usr")
    work_off(server)
    a, b = (campaign.cells.get(levels__jit=value).pk for value in ("off", "on"))
    found = explain(a, b, reader=admin_user)
    assert found.candidates[0].name == "jit"
    assert "jit_used" in found.candidates[0].evidence
    ablations.start(found=found, by=admin_user)
    work_off(server)
    found = explain(a, b, reader=admin_user)
    print(answer_explanation(found).sentence)
    assert "jit" in {each.name for each in found.answers.time.explained}
    connection.close()


# Causes that are another load: the page names it, splits the time, and offers to put nothing back.
LOADS = {
    "connection": (["kept", "each-transaction"], "select-only", "server"),
    "script": (["simple-update", "tpcb-like"], "simple-update", "blocked"),
}


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.parametrize("name", LOADS)
def test_another_load_is_named_before_any_suspect(newest, admin_user, name):
    """At scale 1 all clients of tpcb-like wait for the one row of its branch."""
    values, script, part = LOADS[name]
    levels = {"clients": [8], name: values}
    campaign = queued(newest, script, levels=levels, scale=1, seconds=2)
    work_off(newest)
    a, b = (campaign.cells.get(**{f"levels__{name}": value}).pk for value in values)
    found = explain(a, b, reader=admin_user)
    print(answer_explanation(found).sentence, found.difference)
    assert found.obstacle == "other_load"
    assert answer_explanation(found).sentence.startswith(
        f"The load differs: {name} {values[1]} against {name} {values[0]}."
    )
    assert found.difference.by_part[part].value > 0
    connection.close()


@pytest.mark.slow
@pytest.mark.full_load
def test_checksums_are_named_and_not_judged_by_one_run(newest, admin_user):
    scenarios.sync()
    draft = factories.draft(
        newest,
        scenario="page-checksums",
        installations=measured(newest),
        levels={"checksums": ["off", "on"], "clients": [2]},
        parameters={"scale": 1, "duration": 1, "warm_up": 0},
        repeats=1,
    )
    campaign = campaigns.create(draft=draft)
    work_off(newest)
    a, b = (campaign.cells.get(levels__checksums=value).pk for value in ("off", "on"))
    found = explain(a, b, reader=admin_user)
    (own,) = (each for each in found.suspects if each.kind == "checksums")
    assert (own.a, own.b, own.put_back, own.reason) == ("off", "on", {}, "no_sign")
    connection.close()
