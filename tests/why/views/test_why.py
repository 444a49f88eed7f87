"""Why two cells differ: page, API and Markdown say one answer, which an ablation proves."""

import json
import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.access.services import projects, tokens
from runs.analysis.why.proof import AGAIN, ALL, GIVEN, A, B
from runs.campaigns.services import campaigns, repeats
from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.execution.evidence.accounting import FILE
from runs.execution.reporter import ArtifactData
from runs.models import (
    Ablation,
    Artifact,
    Campaign,
    Observation,
    Project,
    Run,
    Series,
    Server,
)
from runs.postgresql_settings.catalogue import catalogue
from runs.queue.services import results
from runs.queue.services.artifacts import path_of
from runs.tools import known_metrics
from runs.why.selectors import ablations
from runs.why.services import ablations as service
from tests import factories
from tests.pictures import pictures_of

pytestmark = pytest.mark.django_db

PARALLEL = "max_parallel_workers_per_gather"
DECOY = "random_page_cost"


def settings(**values):
    return {
        name: {"setting": value, "unit": "", "source": "configuration file"}
        for name, value in values.items()
    }


def evidence(seconds, plan, compiler, cpu, objects=None):
    """What a run of one client for 10 s kept, whose transactions took this long."""
    used = {
        "seconds": 10.0,
        "servers": cpu,
        "servers_in_kernel": cpu / 5,
        "generator": 0.5,
    }
    names = ("kind", "title", "first", "last", "run", "wait")
    processes = [
        ("server", "client backend", 0.1, 9.9, cpu * 0.99, 0.4),
        ("load", "", 0.1, 9.9, 0.49, 0.1),
    ]
    return {
        "form": 1,
        "spans": [[0.0, 10.0]],
        "usage": {"db": used},
        "processes": [dict(zip(names, row, strict=True)) for row in processes],
        "counters": {"pg_stat_database": {"": {"blks_hit": 1e6}}},
        "built": f"PostgreSQL, compiled by gcc {compiler}, 64-bit",
        "configuration": {},
        "relations": {"t": {"kind": "r", "bytes": 1e7}},
        "objects": objects or {},
        "plans": [{"statement": "SELECT count(*) FROM t", "Plan": plan}],
    }


SCAN = {"Node Type": "Seq Scan", "Relation Name": "t"}
GATHER = {"Node Type": "Gather", "Workers Planned": 1, "Plans": [SCAN]}


def finish(run, seconds, cpu, **kept):
    """Finish a run as one whose transactions took this long."""
    number = 10 / seconds
    factories.finish(run, tps=1 / seconds, transactions=number)
    run.certificate = {"usage": {"db": {"servers": cpu}}}
    run.settings = results.snapshot(settings=kept.pop("settings"))
    run.save()
    document = evidence(seconds, cpu=cpu, **kept)
    factories.artifact(run=run, data=ArtifactData(FILE, json.dumps(document).encode()))


@pytest.fixture
def measured(ready_server):
    """Two versions that count rows: the newer one in half of the time, by two processes."""
    campaign = campaigns.create(draft=factories.draft(ready_server, repeats=3))
    for run in campaign.runs.select_related("cell"):
        noise = 1 + run.repeat / 1000
        if run.cell.version.startswith("16"):
            kept = settings(**{PARALLEL: "0", DECOY: "4"})
            finish(run, 0.1 * noise, 9.0, settings=kept, plan=SCAN, compiler="7.5.0")
        else:
            kept = settings(**{PARALLEL: "2", DECOY: "3"})
            finish(
                run, 0.05 * noise, 9.0, settings=kept, plan=GATHER, compiler="12.2.0"
            )
    Campaign.objects.update(state=Campaign.State.FINISHED)
    return campaign


@pytest.fixture
def address(measured):
    a, b = (each.pk for each in measured.cells.order_by("version_num"))
    return f"/compare/why/?a={a}&b={b}"


def test_the_page_says_the_answer_the_parts_and_the_suspects(client, address):
    text = client.get(address).content.decode()
    assert "18.4 needs 50.1 ms less per transaction than 16.14" in text
    assert f'value="{PARALLEL}"' not in text  # Nobody is logged in who may queue.
    assert f">{PARALLEL}</code>" in text
    assert "one plan is parallel" in text
    assert f"{PARALLEL} = 0" in text
    assert "gcc 7.5.0" in text
    assert "nothing here puts it back" in text
    # Both are new in B, and each can be put back.
    assert "2 differences can be put back." in text
    assert "Parallel workers work beside" in text
    assert "<svg" in text
    assert "caused" not in text


def test_where_the_time_goes_is_a_picture_for_other_pages(client, address):
    ((picture, words),) = pictures_of(client, address).items()

    assert picture == address.replace("why/?", "why/chart.svg?")
    assert "Why 18.4 differs from 16.14" in words
    assert "18.4 needs 50.1 ms less per transaction than 16.14" in words
    assert "ms per transaction" in words


def test_a_single_run_a_side_is_said_to_be_one(client, measured, address):
    sentence = "That is of one run a side, and may be chance."
    assert sentence not in client.get(address).context["answer"].sentence
    Run.objects.filter(repeat__gt=1).delete()
    assert sentence in client.get(address).context["answer"].sentence


def test_page_api_and_markdown_say_the_same_sentence(client, address):
    sentence = client.get(address).context["answer"].sentence
    api = address.replace("/compare/", "/api/v1/compare/")
    body = client.get(api).json()
    assert body["summary"] == sentence == body["answer"]["sentence"]
    by_key = {suspect["key"]: suspect for suspect in body["suspects"]}
    assert by_key[PARALLEL]["put_back"] == {PARALLEL: "0"}
    assert by_key[PARALLEL]["state"] == "acts"
    # A plan that differs is the first suspect.
    assert body["suspects"][0]["kind"] == "plan"
    parts = {each["name"]: each["difference"]["value"] for each in body["parts"]}
    whole = parts.pop("all")
    parts.pop("cpu")
    assert sum(parts.values()) == pytest.approx(whole)
    assert sentence in client.get(f"{api}&format=md").content.decode()


def test_it_is_one_click_from_a_decided_verdict(client, measured, address):
    escaped = address.replace("&", "&amp;")
    assert escaped in client.get(f"/campaigns/{measured.slug}/").content.decode()
    assert escaped in client.get(f"/compare/?s={measured.slug}").content.decode()


def test_the_page_is_japanese_for_who_reads_it(client, address):
    text = client.get(address, headers={"accept-language": "ja"}).content.decode()
    assert "異なるもの" in text
    assert "短くなっています" in text


def test_the_number_of_queries_does_not_grow_with_the_runs(client, measured, address):
    def queries():
        with CaptureQueriesContext(
            connection,
        ) as found:
            client.get(address)
        return len(found)

    client.get(address)
    before = queries()
    cell = measured.cells.order_by("version_num").last()
    for repeat in range(4, 10):
        run = factories.run(cell, repeat=repeat, server=None, plan=None)
        kept = settings(**{PARALLEL: "2", DECOY: "3"})
        finish(run, 0.05, 9.0, settings=kept, plan=GATHER, compiler="12.2.0")
    assert queries() == before


@pytest.mark.parametrize(
    "query", ["", "a=1", "a=x&b=2", "a=1&b=²", f"a={'9' * 30}&b=1"]
)
def test_a_bad_address_is_refused(client, query):
    assert client.get(f"/compare/why/?{query}").status_code == 400
    assert client.get(f"/api/v1/compare/why/?{query}").status_code == 400


def test_cells_of_a_private_project_do_not_exist_for_others(
    client, member, measured, address
):
    client.logout()
    measured.project = Project.objects.create(
        slug="secret", name="secret", is_public=False
    )
    measured.save()
    assert client.get(address).status_code == 404
    assert (
        client.get(address.replace("/compare/", "/api/v1/compare/")).status_code == 400
    )
    assert client.get("/compare/why/?a=98765&b=98766").status_code == 404


def test_runs_without_a_record_say_so(client, finished_campaign):
    first, *_rest, last = finished_campaign.cells.filter(levels__clients=1)
    text = client.get(f"/compare/why/?a={first.pk}&b={last.pk}").content.decode()
    assert "No record is left of where the time of 16.14, 18.4 went" in text


@pytest.mark.parametrize(
    ("origin", "said"),
    [("published", "of a published figure"), ("uploaded", "of an uploaded run")],
)
def test_what_was_not_executed_here_has_no_parts(
    client, measured, address, origin, said
):
    Campaign.objects.update(origin=origin)
    assert said in client.get(address).content.decode()


def test_another_load_is_no_difference_of_versions(client, finished_campaign):
    cells = finished_campaign.cells.all()
    text = client.get(f"/compare/why/?a={cells[0].pk}&b={cells[1].pk}").content.decode()
    assert "The load differs: " in text
    assert (
        "clients 2 against 16.14 · clients 1" in text
        or "clients 2 against clients 1" in text
    )


def test_of_another_load_the_parts_are_told(client, measured, address):
    """A connection for each transaction, or one that is kept: nothing can be put back."""
    for cell, how in zip(
        measured.cells.order_by("version_num"), ("kept", "new"), strict=True
    ):
        cell.levels = {**cell.levels, "connection": how}
        cell.save()
    context = client.get(address).context
    assert "connection new against" in context["answer"].sentence
    assert "50.1 ms less" in context["answer"].sentence
    assert context["parts"]
    assert not context["may_try"]


def queue(member, address):
    assert member.post(address).status_code == 302
    return Ablation.objects.get()


def test_an_ablation_is_a_campaign_of_whole_rounds_with_each_suspect_put_back(
    member, address
):
    made = queue(member, address)
    campaign = made.campaign
    assert (campaign.repeats, campaign.most_repeats, campaign.remeasures) == (6, 12, 0)
    runs = list(campaign.runs.select_related("cell").order_by("position"))
    names = list(TIMES)
    rounds = [
        [run.cell.levels["arm"] for run in runs[at : at + 8]] for at in range(0, 48, 8)
    ]
    assert all(sorted(each) == sorted(names) for each in rounds)
    assert len({each[0] for each in rounds}) > 2
    plans = {run.cell.levels["arm"]: run.plan for run in runs}
    assert plans[PARALLEL]["settings"][PARALLEL] == "0"
    assert PARALLEL not in plans[B]["settings"]
    assert plans[ALL]["settings"].items() >= {PARALLEL: "0", DECOY: "4"}.items()
    assert plans[A]["bindir"] != plans[B]["bindir"] == plans[AGAIN]["bindir"]
    # B again is a second cluster: what differs between two of them is no effect.
    assert len({plan["cluster_key"] for plan in plans.values()}) == 8
    # A with only one thing of B shows what suffices.
    assert plans[f"{GIVEN}{PARALLEL}"]["settings"][PARALLEL] == "2"
    assert plans[f"{GIVEN}{PARALLEL}"]["bindir"] == plans[A]["bindir"]
    assert all(run.plan["run_id"] == run.pk for run in runs)
    assert member.get(f"/campaigns/{campaign.slug}/").status_code == 200
    text = member.get(address).content.decode()
    assert campaign.title in text
    assert "Put back what is ticked" not in text


def test_it_is_not_queued_twice_and_not_by_who_may_not(client, member, address):
    queue(member, address)
    member.post(address)
    assert Ablation.objects.count() == 1
    api = address.replace("/compare/", "/api/v1/compare/")
    client.logout()
    assert client.post(address).status_code in {302, 403}
    assert client.post(api).status_code in {401, 403}
    assert Ablation.objects.count() == 1


TIMES = {
    A: 0.1,
    B: 0.05,
    AGAIN: 0.05,
    PARALLEL: 0.095,
    DECOY: 0.05,
    ALL: 0.1,
    f"{GIVEN}{PARALLEL}": 0.052,
    f"{GIVEN}{DECOY}": 0.1,
}


def measure(campaign, times, spread=0.01):
    for run in campaign.runs.filter(state=Run.State.QUEUED).select_related("cell"):
        time = times[run.cell.levels["arm"]]
        # The same in each run of the tests, whatever keys and order they drew.
        noise = 1 + spread * ((7 * run.repeat + 3 * run.cell.ordinal) % 5 - 2)
        kept = settings(**{PARALLEL: "2", DECOY: "3"})
        finish(run, time * noise, 9.0, settings=kept, plan=GATHER, compiler="12.2.0")


def test_the_answer_is_proven_by_the_ablation_and_said_first(member, address):
    made = queue(member, address)
    measure(made.campaign, TIMES)
    context = member.get(address).context
    explained = rf"Putting {PARALLEL} back explains 9\d % \(\d+ to \d+\)"
    assert re.search(explained, context["answer"].sentence)
    assert f"A with only {PARALLEL} of B has 9" in context["answer"].sentence
    tried = {row.name: row.time for row in context["answer"].ablation.rows}
    assert tried[PARALLEL].startswith("explains 9")
    assert tried[DECOY] == "open"
    api = member.get(address.replace("/compare/", "/api/v1/compare/")).json()
    answers = {each["name"]: each["answer"] for each in api["time"]["suspects"]}
    assert answers == {PARALLEL: "proven", DECOY: "open"}


def test_a_difference_that_only_the_ablation_decides_is_said_as_it_found_it(
    member, measured, address
):
    made = queue(member, address)
    measure(
        made.campaign,
        {**TIMES, B: 0.09, AGAIN: 0.09, PARALLEL: 0.1, f"{GIVEN}{PARALLEL}": 0.09},
    )
    # Of the runs before, one of B was slower than all of A.
    run = factories.run(
        measured.cells.order_by("version_num").last(), repeat=4, server=None, plan=None
    )
    kept = settings(**{PARALLEL: "2", DECOY: "3"})
    finish(run, 0.2, 9.0, settings=kept, plan=GATHER, compiler="12.2.0")
    sentence = member.get(address).context["answer"].sentence
    assert re.match(
        r"In the 6 rounds of the ablation 18\.4 needs \d\.\d to 1\d\.\d % less time",
        sentence,
    )
    assert f"Putting {PARALLEL} back explains" in sentence
    assert "not sure" not in sentence


def test_reports_of_both_campaigns_say_what_the_ablation_proves(
    member, measured, address
):
    made = queue(member, address)
    measure(made.campaign, TIMES)
    for campaign in (measured, made.campaign):
        text = member.get(
            f"/campaigns/{campaign.slug}/report/?format=html"
        ).content.decode()
        assert f"Putting {PARALLEL} back explains 9" in text


def test_the_page_and_the_report_of_an_observation_say_what_is_proven(
    member, measured, address
):
    made = queue(member, address)
    measure(made.campaign, TIMES)
    server = made.base.installation.server
    observation = Observation.objects.create(
        slug="o", title="o", server=server, designs=[], anchor="16"
    )
    observation.editions.create(label="2026").campaigns.add(measured)
    for page in ("/observations/o/", "/observations/o/report/?edition=2026"):
        assert (
            f"Putting {PARALLEL} back explains 9" in member.get(page).content.decode()
        ), page


def test_six_more_rounds_follow_and_then_none(member, address):
    made = queue(member, address)
    measure(made.campaign, {**TIMES, PARALLEL: 0.05, ALL: 0.05})
    assert repeats.add_round(campaign=made.campaign) == 48
    waiting = member.get(address).context["answer"]
    assert "Not decided after 6 rounds." in waiting.sentence
    assert "Up to 12 rounds follow." in waiting.ablation.notes
    measure(made.campaign, {**TIMES, PARALLEL: 0.05, ALL: 0.05})
    assert repeats.add_round(campaign=made.campaign) == 0
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(address).context["answer"]
    assert f"Alone, none of {PARALLEL}, {DECOY} has an effect above" in answer.sentence
    assert {row.time.rpartition(" above")[0] for row in answer.ablation.rows} == {
        "alone no effect"
    }
    assert "Not explained by what was tried. Looked at: Setting" in answer.sentence
    assert "not looked at: " in answer.sentence
    # The versions and their compilers differ, so that may be said.
    assert "The build differs (compiler gcc 7.5.0, gcc 12.2.0; " in answer.sentence
    assert not any("follow" in note for note in answer.ablation.notes)


def test_there_is_no_verdict_where_the_control_is_not_one(member, address):
    made = queue(member, address)
    measure(made.campaign, {**TIMES, AGAIN: 0.07})
    assert (
        "No verdict: B again to B was 1."
        in member.get(address).context["answer"].sentence
    )
    assert ablations.answers(made).time.explained == ()


def test_of_two_configurations_the_setting_is_put_back(member, ready_server):
    """Both cells have the same version; the ablation's campaign has no configuration of its own."""
    plain, tuned = (
        configurations.create(
            name=name, description="", content=Content({DECOY: value}, ())
        )
        for name, value in (("plain", "4"), ("tuned", "3"))
    )
    newest = ready_server.installations.filter(version="18.4")
    draft = factories.draft(
        ready_server,
        installations=list(newest),
        configuration=plain,
        more_configurations=[tuned],
        repeats=2,
    )
    campaign = campaigns.create(draft=draft)
    for run in campaign.runs.select_related("cell"):
        is_plain = run.cell.levels["configuration"] == "plain"
        kept = settings(**{DECOY: "4" if is_plain else "3"})
        plan = SCAN if is_plain else GATHER
        finish(
            run,
            0.1 if is_plain else 0.05,
            9.0,
            settings=kept,
            plan=plan,
            compiler="7.5.0",
        )
    a, b = (
        campaign.cells.get(levels__configuration=name).pk for name in ("plain", "tuned")
    )
    address = f"/compare/why/?a={a}&b={b}"
    assert "configuration tuned needs" in member.get(address).content.decode()
    made = queue(member, address)
    assert [suspect["name"] for suspect in made.suspects] == [DECOY]
    arms = {
        run.cell.levels["arm"]: run for run in made.campaign.runs.select_related("cell")
    }
    assert set(arms) == {A, B, AGAIN, DECOY}
    assert arms[DECOY].plan["settings"][DECOY] == "4"
    for page in ("", "report/?format=html"):
        assert (
            member.get(f"/campaigns/{made.campaign.slug}/{page}").status_code == 200
        ), page


def keep(run, name, rows):
    document = {"columns": [], "rows": [list(map(str, row)) for row in rows]}
    data = json.dumps(document).encode()
    factories.artifact(run=run, data=ArtifactData(f"evidence-{name}.json", data))


@pytest.fixture
def recorded(member, address):
    """The runs by arm that were queued from the page to record what explains both."""
    assert member.post(address, {"count": "instructions"}).status_code == 302
    campaign = Ablation.objects.get().campaign
    return {run.cell.levels["arm"]: run for run in campaign.runs.select_related("cell")}


def test_only_one_of_the_runs_of_a_side_is_traced_in_one_way(recorded):
    treatments = {
        arm: {name for name, value in run.plan["treatment"].items() if value}
        for arm, run in recorded.items()
    }
    assert treatments == {
        f"{side}{name}": set(names)
        for side in (A, B)
        for name, names in service.RECORDS.items()
    }
    # All runs of a side have one cluster: what is recorded differs, and not what is measured.
    plans = [run.plan for run in recorded.values()]
    assert len({plan["cluster_key"] + plan["template_key"] for plan in plans}) == 2


def test_what_is_blocked_is_split_by_the_waits_of_runs_of_their_own(
    member, address, recorded
):
    api = address.replace("/compare/", "/api/v1/compare/")
    assert member.get(api).json()["waits"] == []
    # Of 100 samples those that sleep count, and what the client takes is its own.
    keep(
        recorded[A],
        "waits",
        [("Lock", "tuple", 50, 20), ("Client", "ClientRead", 30, 0)],
    )
    keep(recorded[B], "waits", [("Lock", "tuple", 10, 80), ("none", "none", 10, 0)])
    [lock, none] = member.get(api).json()["waits"]
    assert (lock["type"], lock["event"]) == ("Lock", "tuple")
    # Half of 100 ms, and a tenth of 50 ms.
    assert lock["a"] == pytest.approx(0.05, rel=0.01)
    assert lock["b"] == pytest.approx(0.005, rel=0.01)
    assert lock["difference"]["high"] < 0
    assert none["event"] == "none"
    text = member.get(address).content.decode()
    assert "Lock: tuple" in text
    assert "no event" in text
    assert "ClientRead" not in text


def test_other_semaphores_are_said_to_be_of_the_builds(member, address, recorded):
    for side, call, frames in (
        (A, "semop", "semop < PGSemaphoreLock"),
        (B, "futex", "sem_wait"),
    ):
        factories.finish(recorded[f"{side} calls"], tps=10, transactions=100)
        called = [
            (call, "8.0", "1.5", 300, 30, "10.0"),
            ("recvfrom", "2", "1", 100, 0, "0"),
        ]
        # What ended children took is charged to it, besides to the calls of theirs.
        called.append(("wait4", "90", "9", 9, 0, "0"))
        keep(recorded[f"{side} calls"], "syscalls", called)
        keep(
            recorded[f"{side} stacks"],
            "stacks",
            [(30, call, frames), (10, call, "main")],
        )
    body = member.get(address.replace("/compare/", "/api/v1/compare/")).json()
    calls = {each["name"]: (each["a"], each["b"]) for each in body["calls"]}
    assert calls["semop"] == ([0.8, 3.0, 0.1], [0, 0, 0])
    assert "wait4" not in calls
    assert calls["recvfrom"][1] == [0.2, 1.0, 0]
    assert [each["share"] for each in body["stacks"]] == [0.75, 0.25] * 2
    text = member.get(address).content.decode()
    assert (
        "16.14 was built with semaphores of System V (semop), 18.4 with those of POSIX"
        in text
    )
    assert "semop &lt; PGSemaphoreLock" in text


def test_functions_that_surely_differ_are_told_in_time_and_samples(
    member, address, recorded
):
    sampled = {
        A: {"slow": 700, "same": 300},
        B: {"slow": 100, "same": 600, "[postgres]": 300},
    }
    for side, rows in sampled.items():
        lines = [f"postgres;main;{name} {n}" for name, n in rows.items()] + [
            "pgbench;main 5000"
        ]
        data = ArtifactData("perf-folded.txt", "\n".join(lines).encode())
        factories.artifact(run=recorded[side], data=data)
    body = member.get(address.replace("/compare/", "/api/v1/compare/")).json()[
        "profile"
    ]
    assert body["samples"] == [1000, 1000]
    found = {each["name"]: each for each in body["functions"]}
    assert set(found) == {"slow", "[postgres]"}
    # 70 % of 90 ms of processor time, and 10 % of 45.
    assert (found["slow"]["a"], found["slow"]["b"]) == pytest.approx(
        (0.063, 0.0045), rel=0.01
    )
    assert found["slow"]["difference"]["high"] < 0
    text = member.get(address).content.decode()
    assert "30 % of the samples are in postgres, whose functions have no names" in text
    assert f"/runs/{recorded[B].pk}/profile/?against={recorded[A].pk}" in text


def test_where_sessions_leave_the_processor_is_told_by_call_and_function(
    member, address, recorded
):
    waits = "do_syscall_64_[k];__x64_sys_futex_[k];schedule_[k]"
    lines = [
        f"postgres;main;CommitTransaction;XLogFlush;LWLockAcquire;PGSemaphoreLock;{waits} 3",
        "postgres;main;ExecScan;asm_sysvec_apic_timer_interrupt_[k];schedule_[k] 1",
        f"pgbench;main;{waits} 50",
    ]
    for side in (A, B):
        data = ArtifactData("perf-switches-folded.txt", "\n".join(lines).encode())
        factories.artifact(run=recorded[side], data=data)
    sleeps = member.get(address.replace("/compare/", "/api/v1/compare/")).json()[
        "sleeps"
    ]
    functions = "PGSemaphoreLock < LWLockAcquire < XLogFlush < CommitTransaction"
    assert [(each["call"], each["functions"], each["share"]) for each in sleeps] == [
        ("futex", functions, 0.75),
        ("preempted", "", 0.25),
    ] * 2
    assert functions.replace("<", "&lt;") in member.get(address).content.decode()


def test_what_could_not_be_recorded_says_why(member, address, recorded):
    message = "No profile: perf is not installed."
    note = {"code": "profile_missing", "level": "warning", "message": message}
    Run.objects.filter(pk=recorded[A].pk).update(quality=[note])
    assert message in member.get(address).content.decode()


@pytest.mark.parametrize("rows", [[["Lock"]], [["Lock", "tuple", "x", "1"]], None])
def test_waits_in_another_form_are_none(member, measured, address, rows):
    for cell in measured.cells.all():
        run = cell.runs.first()
        data = json.dumps({"rows": rows}).encode()
        factories.artifact(run=run, data=ArtifactData("evidence-waits.json", data))
    assert (
        member.get(address.replace("/compare/", "/api/v1/compare/")).json()["waits"]
        == []
    )


def test_two_that_each_suffice_are_said_to_suffice(member, address):
    """Either keeps the index away: putting one back changes nothing, and both all."""
    made = queue(member, address)
    each_suffices = {**TIMES, PARALLEL: 0.05, DECOY: 0.05, f"{GIVEN}{DECOY}": 0.051}
    for _look in range(2):
        measure(made.campaign, each_suffices)
        repeats.add_round(campaign=made.campaign)
    Campaign.objects.update(state=Campaign.State.FINISHED)
    sentence = member.get(address).context["answer"].sentence
    assert re.search(rf"Put back together, {PARALLEL}, {DECOY} explain \d+ %", sentence)
    assert f"Alone, none of {PARALLEL}, {DECOY} has an effect above" in sentence
    assert "So each of the two suffices to make the difference." in sentence
    assert f"A with only {PARALLEL} of B has 9" in sentence
    assert "Not explained" not in sentence


def test_of_a_finished_campaign_the_runs_that_there_are_answer(member, address):
    """Two of its runs are invalid; nothing is said to follow."""
    made = queue(member, address)
    measure(made.campaign, TIMES)
    made.campaign.runs.filter(repeat=2, cell__levels__arm__in=[A, DECOY]).update(
        state=Run.State.WITHDRAWN
    )
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(address).context["answer"]
    assert f"Time: Putting {PARALLEL} back explains 9" in answer.sentence
    assert "Time: 2 runs of 6 rounds are missing or invalid." in answer.ablation.notes
    assert "follow" not in answer.sentence


def test_an_arm_that_never_runs_has_no_answer_and_the_others_have(member, address):
    """As of a setting with which the server does not start."""
    made = queue(member, address)
    measure(made.campaign, TIMES)
    broken = [DECOY, ALL, f"{GIVEN}{DECOY}"]
    made.campaign.runs.filter(cell__levels__arm__in=broken).update(
        state=Run.State.FAILED
    )
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(address).context["answer"]
    assert f"Putting {PARALLEL} back explains 9" in answer.sentence
    text = f"{DECOY}: no answer, since 0 of its runs have ended with a figure; the campaign says"
    assert any(note.startswith(text) for note in answer.ablation.notes)


def test_what_is_ticked_is_put_back_and_nothing_else(member, address):
    assert member.post(address, {"try": [DECOY]}).status_code == 302
    made = Ablation.objects.get()
    assert [suspect["name"] for suspect in made.suspects] == [DECOY]
    arms = set(made.campaign.cells.values_list("levels__arm", flat=True))
    assert arms == {A, B, AGAIN, DECOY}
    member.post(address, {"try": ["no such setting"]})
    assert Ablation.objects.count() == 1


def test_the_api_takes_several_keys_to_try(client, address):
    api = address.replace("/compare/", "/api/v1/compare/")
    token = tokens.create(name="t", scopes=["queue"], project=projects.default())
    headers = {"Authorization": f"Bearer {token.text}"}
    answer = client.post(f"{api}&try={DECOY}&try={PARALLEL}", headers=headers)
    assert answer.status_code == 201, answer.content
    (made,) = Ablation.objects.all()
    assert {suspect["name"] for suspect in made.suspects} == {DECOY, PARALLEL}


def test_what_a_cancelled_ablation_did_not_answer_is_proposed_again(member, address):
    queue(member, address)
    Campaign.objects.update(state=Campaign.State.CANCELLED)
    rows = member.get(address).context["answer"].differences
    assert {row.key for row in rows if row.is_proposed} == {PARALLEL, DECOY}


def test_many_are_put_back_by_halves_and_then_the_half_that_explains_it(
    member, measured, address
):
    names = [
        f"enable_{name}"
        for name in ("hashjoin", "mergejoin", "nestloop", "sort", "material")
    ]
    for cell in measured.cells.order_by("version_num"):
        value = "on" if cell.version.startswith("16") else "off"
        for run in cell.runs.all():
            kept = run.settings.settings | settings(**dict.fromkeys(names, value))
            run.settings = results.snapshot(settings=kept)
            run.save()
    made = queue(member, address)
    first, second = made.suspects
    assert (first["kind"], len(first["members"]), len(second["members"])) == (
        "group",
        4,
        3,
    )
    halves = {first["name"]: 0.1, second["name"]: 0.05}
    given = {f"{GIVEN}{first['name']}": 0.05, f"{GIVEN}{second['name']}": 0.1}
    measure(made.campaign, {**TIMES, **halves, **given})
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(address).context["answer"]
    assert "Putting half 1 back explains" in answer.sentence
    proposed = {row.key for row in answer.differences if row.is_proposed}
    assert proposed == set(first["members"])


INDEX = "CREATE INDEX t_k ON public.t USING btree (k)"


def own_script(ready_server, objects_of):
    """The address of two versions of a script's set-up, with these objects of A and of B."""
    first = factories.workload("own").versions.get()
    first.init_sql, first.has_own_tables = "CREATE TABLE t (k int);", True
    first.save()
    first.pk, first.number = None, 2
    first.init_sql += " DROP INDEX t_k;"
    first.save()
    campaign = campaigns.create(
        draft=factories.draft(
            ready_server,
            scenario="pgbench",
            installations=list(ready_server.installations.filter(version="18.4")),
            levels={
                "script": ["own@1", "own@2"],
                "scale": [1],
                "clients": [1],
                "query_mode": ["simple"],
                "connection": ["kept"],
            },
            parameters={
                "duration": 2,
                "warm_up": 0,
                "rate": 0,
                "max_tries": 0,
                "random_seed": 0,
                "fillfactor": 100,
            },
            repeats=3,
        )
    )
    for run in campaign.runs.select_related("cell"):
        is_a = run.cell.levels["script"] == "own@1"
        finish(
            run,
            (0.01 if is_a else 0.1) * (1 + run.repeat / 1000),
            5.0,
            settings=settings(**{DECOY: "4"}),
            plan=SCAN,
            compiler="12.2.0",
            objects=objects_of[0 if is_a else 1],
        )
    Campaign.objects.update(state=Campaign.State.FINISHED)
    a, b = (cell.pk for cell in campaign.cells.order_by("ordinal"))
    return f"/compare/why/?a={a}&b={b}"


@pytest.fixture
def without_index(ready_server):
    """A user's script on two versions of its set-up: the second drops an index and adds rows."""
    return own_script(
        ready_server,
        (
            {"index": {"t_k": INDEX}, "relation": {"t": "TABLE"}},
            {"index": {}, "relation": {"t": "TABLE"}},
        ),
    )


TRIGGER = "CREATE TRIGGER g BEFORE UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION g()"
DEFINITION = (
    "CREATE OR REPLACE FUNCTION public.g()\n RETURNS trigger\n LANGUAGE plpgsql\n"
    "AS $function$ BEGIN RETURN NEW; END $function$\n"
)


@pytest.mark.parametrize("is_defined", [True, False])
def test_a_gets_a_trigger_with_its_function_or_the_answer_says_why_not(
    member, ready_server, is_defined
):
    """A has no function of the trigger: without its definition the arm could only fail."""
    address = own_script(
        ready_server,
        (
            {
                "index": {"t_k": INDEX},
                "trigger": {},
                "function": {},
                "function_definition": {},
            },
            {
                "index": {},
                "trigger": {"t.g": TRIGGER},
                "function": {"g()": "plpgsql v"},
                "function_definition": {"g()": DEFINITION} if is_defined else {},
            },
        ),
    )
    tried = {"try": ["index t_k", "trigger t.g"]}
    assert member.post(address, tried).status_code == 302
    made = Ablation.objects.get()
    plans = {
        run.cell.levels["arm"]: run.plan
        for run in made.campaign.runs.select_related("cell")
    }
    arm = f"{GIVEN}trigger t.g"
    assert (arm in plans) == is_defined
    assert f"{GIVEN}index t_k" in plans
    notes = " ".join(member.get(address).context["answer"].ablation.notes)
    if is_defined:
        sql = plans[arm]["workload"]["init_sql"]
        assert sql.index("FUNCTION public.g()") < sql.index("CREATE TRIGGER g")
        assert "was not tried" not in notes
    else:
        assert (
            "A with only trigger t.g of B was not tried: A lacks g(), and no record has a "
            "definition to make it by."
        ) in notes


def test_b_that_lacks_a_function_is_said_before_anything_is_queued(
    member, ready_server
):
    address = own_script(
        ready_server,
        (
            {"trigger": {"t.g": TRIGGER}, "function": {"g()": "c v"}},
            {"trigger": {}, "function": {}},
        ),
    )
    rows = {row.key: row for row in member.get(address).context["answer"].differences}
    assert not rows["trigger t.g"].can_try
    assert rows["trigger t.g"].back == (
        "only with the set-up of the data; B lacks g(), and no record has a definition to make it "
        "by"
    )


def test_a_single_object_is_put_back_after_the_set_up_of_its_arm(member, without_index):
    rows = {
        row.key: row for row in member.get(without_index).context["answer"].differences
    }
    assert rows["index t_k"].back.endswith(f"{INDEX};")
    assert rows["index t_k"].can_try
    # The object comes first, and its set-up when that explains nothing.
    assert rows["index t_k"].is_proposed
    assert not rows["setup init_sql"].is_proposed
    made = queue(member, without_index)
    plans = {
        run.cell.levels["arm"]: run.plan
        for run in made.campaign.runs.select_related("cell")
    }
    assert plans.keys() == {A, B, AGAIN, "index t_k"}
    sql = plans["index t_k"]["workload"]["init_sql"]
    assert sql.startswith(plans[B]["workload"]["init_sql"])
    assert sql.endswith(f"{INDEX};\n")
    keys = {plan["cluster_key"] or plan["template_key"] for plan in plans.values()}
    assert len(keys) == 4
    for run in made.campaign.runs.select_related("cell"):
        finish(
            run,
            0.01 if run.cell.levels["arm"] == A else 0.1 + run.repeat / 1000,
            5.0,
            settings=settings(**{DECOY: "4"}),
            plan=SCAN,
            compiler="12.2.0",
        )
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(without_index).context["answer"]
    assert "Alone, index t_k has no effect above" in answer.sentence
    rows = {row.key: row for row in answer.differences}
    assert rows["setup init_sql"].is_proposed
    # With the set-up of A nothing has to follow.
    assert (
        member.post(without_index, {"try": ["index t_k", "setup init_sql"]}).status_code
        == 302
    )
    made = Ablation.objects.latest("pk")
    arms = {
        run.cell.levels["arm"]: run.plan
        for run in made.campaign.runs.select_related("cell")
    }
    assert (
        arms[ALL]["workload"]["init_sql"]
        == plans[A]["workload"]["init_sql"]
        == arms["setup init_sql"]["workload"]["init_sql"]
    )


def test_an_arm_whose_records_show_the_index_missing_tells_nothing_of_it(
    member, without_index
):
    made = queue(member, without_index)
    for run in made.campaign.runs.select_related("cell"):
        arm = run.cell.levels["arm"]
        finish(
            run,
            (0.01 if arm == A else 0.1) * (1 + run.repeat / 1000),
            5.0,
            settings=settings(**{DECOY: "4"}),
            plan=SCAN,
            compiler="12.2.0",
            objects={
                "index": {"t_k": INDEX} if arm == A else {},
                "relation": {"t": "TABLE"},
            },
        )
    # Nothing else was tried, so that six further rounds would tell nothing either.
    assert repeats.add_round(campaign=made.campaign) == 0
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(without_index).context["answer"]
    assert "index t_k was not put back: the records of its runs" in answer.sentence
    assert "has no effect above" not in answer.sentence
    assert [row.time for row in answer.ablation.rows] == [""]
    rows = {row.key: row for row in answer.differences}
    assert rows["setup init_sql"].is_proposed


@pytest.mark.parametrize("is_put_back", [True, False])
def test_an_arm_whose_records_show_the_setting_of_b_tells_nothing_of_it(
    member, address, is_put_back
):
    made = queue(member, address)
    put_back = {
        A: {PARALLEL: "0", DECOY: "4"},
        PARALLEL: {PARALLEL: "0" if is_put_back else "2", DECOY: "3"},
        DECOY: {PARALLEL: "2", DECOY: "4"},
    }
    for run in made.campaign.runs.select_related("cell"):
        arm = run.cell.levels["arm"]
        finish(
            run,
            (0.1 if arm == A else 0.05) * (1 + (7 * run.repeat) % 5 / 100),
            9.0,
            settings=settings(**put_back.get(arm, {PARALLEL: "2", DECOY: "3"})),
            plan=GATHER,
            compiler="12.2.0",
        )
    assert repeats.add_round(campaign=made.campaign) == 48
    Campaign.objects.update(state=Campaign.State.FINISHED)
    sentence = member.get(address).context["answer"].sentence
    assert (f"{PARALLEL} was not put back" in sentence) is not is_put_back
    # The other arm tells of its own suspect.
    assert f"{DECOY} was not put back" not in sentence
    assert DECOY in sentence


def test_what_the_slices_have_decided_is_what_the_page_begins_with(
    member, measured, address
):
    """The runs scatter too much to be sure; their slices took turns."""
    Campaign.objects.filter(pk=measured.pk).update(slice_seconds=1)
    times = {"16": (0.06, 0.1, 0.14), "18": (0.12, 0.1, 0.05)}
    for run in measured.runs.select_related("cell"):
        major = run.cell.version[:2]
        whole = times[major][run.repeat - 1]
        run.measurements.filter(metric__name="tps").update(value=1 / whole)
        seconds = 0.1 if major == "16" else 0.09
        values = [1 / seconds * (1 + place / 500) for place in range(8)]
        for name, series in (
            (known_metrics.SLICE_TPS, values),
            (known_metrics.SLICE_AT, [10.0 * place for place in range(8)]),
            (known_metrics.SLICE_FOREIGN, [1.0] * 8),
        ):
            Series.objects.create(
                run=run,
                name=name.name,
                start=1000.0 * run.repeat,
                interval=1.0,
                values=series,
            )
    sentence = member.get(address).context["answer"].sentence
    assert re.match(
        r"By their slices 18\.4 needs \d+\.\d to 1\d\.\d % less time per transaction",
        sentence,
    ), sentence
    assert "Undecided:" not in sentence


def test_fifty_differences_are_listed_and_halved_until_the_cause_is_alone(
    member, measured, address
):
    names = [
        setting.name
        for setting in catalogue("18").values()
        if setting.name.startswith(("enable_", "autovacuum_", "log_"))
        and setting.name in catalogue("16")
        and setting.name not in {"log_timezone", "log_file_mode"}
    ][:48]
    assert len(names) == 48
    for cell in measured.cells.order_by("version_num"):
        for run in cell.runs.all():
            is_old = cell.version.startswith("16")
            numbers = {
                name: "10" if is_old else "11"
                for name in names
                if catalogue("18")[name].is_number
            }
            others = dict.fromkeys(names, "on" if is_old else "off")
            values = others | numbers
            kept = run.settings.settings | settings(**values)
            run.settings = results.snapshot(settings=kept)
            run.save()
    page = member.get(address)
    keys = [row.key for row in page.context["answer"].differences]
    assert len(keys) >= 50
    text = page.content.decode()
    assert [key for key in names if f'value="{key}"' not in text] == []
    cause = names[30]
    while Ablation.objects.count() < 5:
        member.post(address)
        made = Ablation.objects.latest("pk")
        arms = {str(suspect["name"]): suspect for suspect in made.suspects}
        times = {A: 0.1, B: 0.05, AGAIN: 0.05, ALL: 0.1}
        for name, suspect in arms.items():
            holds = cause in (suspect["members"] or [name])
            times |= {
                name: 0.1 if holds else 0.05,
                f"{GIVEN}{name}": 0.05 if holds else 0.1,
            }
        measure(made.campaign, times)
        Campaign.objects.update(state=Campaign.State.FINISHED)
        answer = member.get(address).context["answer"]
        if cause in arms:
            break
    assert f"Putting {cause} back explains 10" in answer.sentence


def test_a_side_whose_record_is_lost_is_named(member, measured, address):
    """Its file is gone from the store: the other differences are listed, and can be tried."""
    newer = measured.cells.order_by("version_num").last()
    for artifact in Artifact.objects.filter(run__cell=newer, name=FILE):
        path_of(artifact.sha256).unlink(missing_ok=True)
    page = member.get(address)
    assert page.context["answer"].sentence.startswith(
        "No record is left of where the time of 18.4 went; measure it again to explain it."
    )
    assert page.context["may_try"]
    assert f">{PARALLEL}</code>" in page.content.decode()


def test_a_side_whose_runs_failed_is_sent_to_its_campaign(member, measured, address):
    newer = measured.cells.order_by("version_num").last()
    newer.runs.update(state=Run.State.FAILED)
    text = member.get(address).content.decode()
    assert "No run of 18.4 has ended with a figure: its campaign says why." in text
    assert "measure it again" not in text


def test_sides_of_other_years_say_how_far_they_lie_apart(member, measured, address):
    for cell, year in zip(
        measured.cells.order_by("version_num"), (2026, 2027), strict=True
    ):
        cell.runs.update(
            started_at=datetime(year, 11, 2, tzinfo=UTC),
            finished_at=datetime(year, 11, 3, tzinfo=UTC),
        )
    sentence = member.get(address).context["answer"].sentence
    assert sentence.startswith("364 days lie between their runs, and what changed on")


def test_of_an_ablation_whose_runs_are_half_invalid_the_answer_says_what_to_do(
    member, address
):
    """What nobody else disturbed answers for processor time; of time the runs are missing."""
    made = queue(member, address)
    measure(made.campaign, {**TIMES, PARALLEL: 0.05, ALL: 0.05})
    made.campaign.runs.filter(repeat__in=[2, 4, 6]).exclude(
        cell__levels__arm__in=[A, B]
    ).update(state=Run.State.WITHDRAWN)
    Campaign.objects.update(state=Campaign.State.FINISHED)
    answer = member.get(address).context["answer"]
    assert "Time: 18 runs of 6 rounds are missing or invalid." in answer.ablation.notes
    assert (
        "Put it back again when nobody else uses the machine." in answer.ablation.notes
    )
    assert "Not explained by what was tried." in answer.sentence


def test_arms_of_what_was_measured_in_slices_take_turns(member, measured, address):
    for run in Run.objects.filter(campaign=measured):
        Run.objects.filter(pk=run.pk).update(plan={**run.plan, "slice_s": 1})
    made = queue(member, address)
    assert made.campaign.slice_seconds == 1
    assert {run.plan["slice_s"] for run in made.campaign.runs.all()} == {1}


def test_arms_that_have_no_memory_at_once_are_whole_runs(member, measured, address):
    for run in Run.objects.filter(campaign=measured).select_related("server"):
        plan = {**run.plan, "slice_s": 1}
        plan["settings"] = {**plan["settings"], "shared_buffers": "4GB"}
        Run.objects.filter(pk=run.pk).update(plan=plan)
    hardware = factories.hardware("16 GiB")
    hardware.memory_bytes = 16 * 2**30
    hardware.save()
    Server.objects.update(hardware=hardware)
    made = queue(member, address)
    assert made.campaign.slice_seconds is None


def test_arms_of_whole_runs_are_whole_runs(member, measured, address):
    made = queue(member, address)
    assert made.campaign.slice_seconds is None
    assert {run.plan["slice_s"] for run in made.campaign.runs.all()} == {0}
