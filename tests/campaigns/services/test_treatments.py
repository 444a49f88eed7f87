"""Treatments: refused before queueing where a machine cannot be treated so, and carried along."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from runs.campaigns.services import campaigns, estimates, repeats, treatments
from runs.compare.selectors.address.state import read as read_state
from runs.compare.selectors.judge.comparisons import compared
from runs.execution import preflight as engine
from runs.execution.machine import privileged
from runs.execution.machine.treatment import Treatment
from runs.execution.plan import RunPlan
from runs.execution.reporter import ArtifactData, Findings
from runs.models import Artifact, Campaign, Lease, Run, ScheduleEvent
from runs.queue.services import artifacts, attempts
from runs.queue.services import results as findings
from runs.schedules.services import schedules
from runs.shared.errors import ServiceError
from runs.workloads.selectors import workloads as words
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

EVERYTHING = Treatment(
    cold_cache=True,
    governor="performance",
    server_cpus="0-1",
    pgbench_cpus="2",
    profile=True,
)


def machine(slug="db1", *, privileges=(), threads=4, **facts):
    environment = factories.environment(f"Debian on {slug}")
    environment.facts = facts
    environment.save()
    hardware = factories.hardware(f"of {slug}")
    hardware.threads = threads
    hardware.save()
    made = factories.server(
        slug, privileges=list(privileges), environment=environment, hardware=hardware
    )
    factories.installation(made, "16.14", has_psql=True, pgbench_version_num=160014)
    return made


@pytest.fixture
def known(db):
    """The scenarios and metrics of the code are in the database."""
    scenarios.sync()


@pytest.fixture
def permitting(known):
    """A machine on which everything is ticked and possible."""
    return machine(privileges=privileged.NAMES, governor="powersave")


def draft_on(server, treatment, **changed):
    asked = factories.draft(server, title="Treated", treatment=treatment)
    return replace(asked, **changed)


def problems(server, treatment, **changed) -> list[tuple[str, str]]:
    found = estimates.estimate(draft_on(server, treatment, **changed)).problems
    assert all(each.remedy for each in found)
    return [(each.field, each.code) for each in found]


def test_nothing_stands_against_what_is_permitted(permitting):
    assert problems(permitting, EVERYTHING) == []


@pytest.mark.parametrize(
    ("treatment", "field"),
    [
        (Treatment(cold_cache=True), "cold_cache"),
        (Treatment(governor="performance"), "governor"),
    ],
)
def test_what_is_not_ticked_is_refused_before_queueing(known, treatment, field):
    server = machine(privileges=["perf"], governor="powersave")
    assert problems(server, treatment) == [(field, "privilege_missing")]
    with pytest.raises(ServiceError) as told:
        campaigns.create(draft=draft_on(server, treatment))
    assert told.value.field == field
    assert not Campaign.objects.exists()


def test_what_needs_no_root_needs_no_permission(known):
    server = machine()
    assert (
        problems(server, Treatment(server_cpus="0", pgbench_cpus="1-3", profile=True))
        == []
    )


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"governor": ""}, "no_cpufreq"),
        ({"governor": "ondemand powersave"}, "cannot_be_set_back"),
        ({"governor": "userspace"}, "cannot_be_set_back"),
    ],
)
def test_a_governor_that_is_not_there_or_could_not_be_set_back(known, facts, code):
    server = machine(privileges=["governor"], **facts)
    assert problems(server, Treatment(governor="performance")) == [("governor", code)]


def test_of_a_machine_that_was_never_looked_at_nothing_is_known(known):
    server = machine(privileges=["governor"])
    assert problems(server, Treatment(governor="performance")) == []


def test_a_generator_that_has_it_ticked_must_have_a_governor_too(permitting):
    generator = machine("load", privileges=["governor"], governor="")
    found = problems(
        permitting, Treatment(governor="performance"), generators=[generator]
    )
    assert found == [("governor", "no_cpufreq")]
    generator.privileges = []
    assert (
        problems(permitting, Treatment(governor="performance"), generators=[generator])
        == []
    )


@pytest.mark.parametrize(
    ("treatment", "found"),
    [
        (Treatment(server_cpus="0-3"), []),
        (Treatment(server_cpus="0-4"), [("server_cpus", "out_of_range")]),
        (Treatment(pgbench_cpus="4"), [("pgbench_cpus", "out_of_range")]),
        (Treatment(server_cpus="x"), [("server_cpus", "not_a_cpu_list")]),
        (Treatment(governor="turbo"), [("governor", "unknown_governor")]),
    ],
)
def test_processors_and_governors_that_there_are_not(permitting, treatment, found):
    assert problems(permitting, treatment) == found


def test_pgbenchs_processors_are_those_of_its_own_machine(permitting):
    generator = machine("load", threads=16)
    chosen = Treatment(pgbench_cpus="8-15")
    assert problems(permitting, chosen, generators=[generator]) == []


def test_a_strict_kernel_forbids_a_profile_without_the_permission(known):
    facts = {"kernel_settings": {"kernel.perf_event_paranoid": "3"}}
    server = machine(**facts)
    assert problems(server, Treatment(profile=True)) == [
        ("profile", "perf_not_permitted")
    ]
    server.privileges = ["perf"]
    assert problems(server, Treatment(profile=True)) == []


def target(report: str):
    return engine.read(report, before=0.0, after=1.0)


@pytest.mark.parametrize(
    ("report", "codes"),
    [
        ("tool\ttaskset\ntool\tperf\nparanoia\t2\ngovernors\tpowersave ", set()),
        ("tool\tperf\nparanoia\t2\ngovernors\tpowersave", {"missing_program"}),
        ("tool\ttaskset\nparanoia\t2\ngovernors\tpowersave", {"missing_program"}),
        ("tool\ttaskset\ntool\tperf\nparanoia\t-1\ngovernors\t", {"no_cpufreq"}),
    ],
)
def test_preflight_finds_what_the_machine_lacks_now(permitting, report, codes):
    found = treatments.problems_of_machines(EVERYTHING, permitting, target(report))
    assert {each.code for each in found} == codes


def test_preflight_finds_a_kernel_that_has_become_strict(known):
    report = target("tool\tperf\nparanoia\t4\n")
    found = treatments.problems_of_machines(Treatment(profile=True), machine(), report)
    assert [each.code for each in found] == ["perf_not_permitted"]


def test_the_actions_of_a_campaign_are_what_sudo_must_allow(permitting):
    assert treatments.needed_privileges(EVERYTHING, permitting) == list(
        privileged.NAMES
    )
    assert treatments.needed_privileges(Treatment(profile=True), machine("other")) == []


def test_campaign_and_plans_keep_the_treatment(permitting):
    spelled = replace(EVERYTHING, server_cpus="1, 0")
    campaign = campaigns.create(draft=draft_on(permitting, spelled))
    assert Treatment.of(campaign.treatment) == EVERYTHING
    plan = RunPlan.from_json(campaign.runs.get().plan)
    assert plan.treatment == EVERYTHING


def test_a_campaign_without_any_keeps_nothing(permitting):
    campaign = campaigns.create(draft=draft_on(permitting, Treatment()))
    assert campaign.treatment == {}
    assert words.treatment_rows(campaign) == []


def test_added_repeats_and_retries_are_treated_alike(permitting):
    asked = draft_on(permitting, EVERYTHING, wanted_half_width=0.01, most_repeats=5)
    campaign = campaigns.create(draft=asked)
    run = campaign.runs.get()
    factories.finish(run, tps=100.0)
    assert repeats.add_round(campaign=campaign) == 1
    assert RunPlan.from_json(campaign.runs.latest("pk").plan).treatment == EVERYTHING
    other = campaigns.create(draft=draft_on(permitting, EVERYTHING)).runs.get()
    Run.objects.filter(pk=other.pk).update(state=Run.State.FAILED)
    attempts.retry(run=other)
    other.refresh_from_db()
    assert RunPlan.from_json(other.plan).treatment == EVERYTHING


def test_a_schedule_queues_it_treated_alike(permitting):
    campaign = campaigns.create(draft=draft_on(permitting, EVERYTHING))
    schedule = schedules.create(title="", campaign=campaign)
    type(schedule).objects.update(next_at="2020-01-01T00:00Z")
    schedules.fire_due()
    assert ScheduleEvent.objects.get().code == "queued"
    assert Campaign.objects.latest("pk").treatment == campaign.treatment


def test_an_old_schedule_has_none(permitting):
    campaign = campaigns.create(draft=draft_on(permitting, EVERYTHING))
    schedule = schedules.create(title="", campaign=campaign)
    del schedule.draft["treatment"]
    type(schedule).objects.update(next_at="2020-01-01T00:00Z", draft=schedule.draft)
    schedules.fire_due()
    assert Campaign.objects.latest("pk").treatment == {}


def test_the_profile_of_a_run_is_drawn_and_kept(permitting, settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    run = campaigns.create(draft=draft_on(permitting, EVERYTHING)).runs.get()
    Lease.objects.update_or_create(server=permitting, defaults={"run": run, "token": 7})
    folded = ArtifactData("perf-folded.txt", b"postgres;main;ExecScan 60\n")
    kept = findings.store(
        run_id=run.pk, token=7, findings=Findings(artifacts=[folded]), has_failed=True
    )
    assert kept
    picture = Artifact.objects.get(run=run, name="flame-graph.svg")
    assert picture.media_type == "image/svg+xml"
    with artifacts.open_artifact(picture) as file:
        assert b"ExecScan: 60 samples" in file.read()


def test_what_was_done_is_told_in_words(permitting):
    campaign = campaigns.create(draft=draft_on(permitting, EVERYTHING))
    told = dict(words.treatment_rows(campaign))
    assert told["CPU governor"] == "performance"
    assert told["CPUs of the server"] == "0-1"
    assert len(told) == 5


def test_evidence_that_cannot_be_taken_is_refused_with_its_remedy(permitting):
    assert problems(permitting, Treatment(syscalls=True, stacks=True)) == [
        ("stacks", "one_tracer_only")
    ]
    assert problems(permitting, Treatment(statements=True)) == [
        ("statements", "missing_extension")
    ]
    older = factories.installation(
        permitting, "9.5.25", extensions=["pg_stat_statements"]
    )
    asked = Treatment(waits=True, io=True, statements=True)
    assert problems(permitting, asked, installations=[older]) == [
        ("waits", "version_too_old"),
        ("io", "version_too_old"),
    ]
    campaign = campaigns.create(
        draft=draft_on(permitting, Treatment(statements=True), installations=[older])
    )
    plan = RunPlan.from_json(campaign.runs.first().plan)
    assert plan.settings["shared_preload_libraries"] == "pg_stat_statements"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("tool\tperf", "missing_program"),
        ("tool\tstrace\nptrace_scope\t1", "trace_not_permitted"),
        ("tool\tstrace\nptrace_scope\t0", None),
        ("tool\tstrace", None),
    ],
)
def test_preflight_says_whether_system_calls_can_be_seen(permitting, said, code):
    found = treatments.problems_of_machines(
        Treatment(syscalls=True), permitting, target(said)
    )
    assert [each.code for each in found] == ([code] if code else [])


def test_runs_under_strace_compare_with_nothing_not_even_with_each_other(permitting):
    factories.installation(
        permitting, "18.4", has_psql=True, pgbench_version_num=180004
    )
    traced = campaigns.create(
        draft=draft_on(permitting, Treatment(syscalls=True), repeats=3)
    )
    profiled = campaigns.create(
        draft=draft_on(permitting, Treatment(profile=True), repeats=3, title="Profiled")
    )
    for campaign in (traced, profiled):
        factories.finish_all(campaign, gain={"18.4": 1.5})
    for campaign, verdict in ((traced, {"not_comparable"}), (profiled, {"faster"})):
        state, _faults = read_state(QueryDict(f"s={campaign.slug}"))
        page = compared(state, reader=AnonymousUser())
        assert {row.comparison.verdict for row in page.rows} == verdict
