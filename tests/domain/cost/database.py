"""A small results database as a lab has it, which can be made ten times as large.

Half of the campaigns were executed here, with plans, events, commands, series and artifacts; CI has
uploaded the others. One campaign of each kind is long: it has a tenth of all runs, and grows with
the database. The first two of the others alone have an old version, a rare metric, a rare machine,
and runs that failed or are in doubt: whoever asks for those has to find them among all the others.

Changes, bisections, notes, deliveries, audit entries, machines and what else comes with results
grow as well. Projects, people, servers, configurations, workloads, schedules, webhooks and tokens
do not: a lab that has measured for ten times as long has the same. The newest quarter of the
campaigns is private.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs.access.services import projects
from runs.campaigns.services import campaigns
from runs.cells.services.summaries import SUMMARISE
from runs.execution.reporter import ArtifactData
from runs.models import (
    AuditEntry,
    Bisection,
    Campaign,
    Cell,
    Change,
    Configuration,
    ConfigurationRevision,
    Edition,
    HardwareProfile,
    Metric,
    Observation,
    PrintedFigure,
    Project,
    Revision,
    Run,
    SavedComparison,
    Scenario,
    Schedule,
    Server,
    ServerCheck,
    SettingsSnapshot,
    Token,
    Webhook,
    Workload,
    WorkloadVersion,
)
from runs.models.campaigns import Origin
from runs.operations.services import partitions
from runs.workloads.services import topologies
from tests import factories

VERSIONS = ("16.11", "17.7", "18.1")
OLD = "9.4.26"
CLIENTS = (1, 8, 64)
REPEATS = 3
REVISIONS, UPLOADED_CLIENTS = 6, (1, 8)
# What each pair of campaigns adds to the two long ones.
SCALES, LONG_REVISIONS = 1, 3
RUNS_OF_TWO = REPEATS * (
    len(CLIENTS) * len(VERSIONS)
    + len(UPLOADED_CLIENTS) * REVISIONS
    + SCALES * len(VERSIONS)
    + LONG_REVISIONS * len(UPLOADED_CLIENTS)
)
NUMBERS = 10  # measurements of a run
FEW = 60  # of what does not grow: more than a page of a list shows
SENDERS = 3  # webhooks and schedules, whose lists show the newest that each has done
ASKED = {"base": "a", "head": "b", "metrics": ["tps"], "effect": 0.02, "ignore": []}
BUILDS = [
    {"commit": each, "installation": 0, "bindir": f"/srv/{each}"} for each in "ab"
]
PLAN = [
    {
        "Plan": {
            "Node Type": "Seq Scan",
            "Relation Name": "pgbench_accounts",
            "Plan Rows": 1,
        }
    }
]

# Whose commits are whose: those of the long campaign begin here.
FIRST_OF_LONG = 1000
REVISION_ROWS = """
INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)
SELECT %(project)s, lpad(to_hex(number), 40, '0'), 'main', '',
       now() - interval '9 years' + number * interval '1 hour', '[]', now()
  FROM (SELECT generate_series(1, %(revisions)s)
        UNION ALL SELECT generate_series(%(first)s, %(first)s + %(long_revisions)s - 1))
       AS made (number) ON CONFLICT DO NOTHING
"""
CELLS = """
INSERT INTO runs_cell (campaign_id, ordinal, levels, key, series_key, revision_id, version,
                       workload_version_id)
SELECT campaign.id, row_number() OVER (PARTITION BY campaign.id
                                       ORDER BY scale, revision.id, version.place, clients),
       levels, levels::text || '@' || coalesce(revision.sha, ''),
       CASE WHEN revision.id IS NULL THEN '' ELSE levels::text END, revision.id,
       coalesce(version.level #>> '{}', ''),
       CASE WHEN campaign.origin = 'executed' THEN %(workload)s END
  FROM runs_campaign campaign
  LEFT JOIN LATERAL jsonb_array_elements(factors -> 'version')
       WITH ORDINALITY AS version (level, place) ON true
  LEFT JOIN LATERAL jsonb_array_elements(factors -> 'scale') AS scale ON true
 CROSS JOIN jsonb_array_elements(factors -> 'clients') AS clients
  LEFT JOIN runs_revision revision ON campaign.origin = 'uploaded'
       AND (campaign.slug = 'ci-long') = (revision.sha >= lpad(to_hex(%(first)s), 40, '0'))
 CROSS JOIN LATERAL (SELECT jsonb_strip_nulls(jsonb_build_object(
       'version', version.level, 'clients', clients, 'scale', scale)) AS levels) AS made
 WHERE campaign.id > %(after_campaign)s OR campaign.slug IN ('long', 'ci-long')
 ORDER BY campaign.id, 2
    ON CONFLICT (campaign_id, key) DO NOTHING
"""
# CI has a machine for each campaign, the long one excepted.
MACHINES = """
INSERT INTO runs_hardwareprofile (fingerprint, slug, name, cpu_model, cores, virtualization, facts,
                                  created_at)
SELECT slug, '', 'machine of ' || slug, 'EPYC', 2, 'kvm', '{}', now() FROM runs_campaign
 WHERE origin = 'uploaded' AND slug <> 'ci-long' AND id > %(after_campaign)s
 ORDER BY id
"""
# Each is queued at a time of its own, as uploads are: an index has them in the order of the table.
RUNS = """
INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, code, message, remedy,
                      attempt, hardware_id, environment_id, settings_id, server_id, server_version,
                      tool_name, tool_version, quality, validity, external_id, labels, plan,
                      queued_at, started_at, finished_at)
SELECT campaign.id, cell.id, repeat, 1, origin,
       CASE WHEN campaign.slug = 'lab-00000' AND repeat = 3 THEN 'failed' ELSE 'finished' END,
       '', '', '', 1, CASE WHEN campaign.slug = 'lab-00000' THEN %(rare)s
                           ELSE coalesce(machine.id, %(machine)s) END,
       %(environment)s, %(settings)s,
       CASE WHEN origin = 'executed' THEN %(server)s END, cell.version, 'pgbench', '18.1', '[]',
       CASE WHEN campaign.slug = 'lab-00000' THEN 'doubtful' WHEN origin = 'executed' THEN 'valid'
       ELSE '' END, '', '{}', CASE WHEN origin = 'executed' THEN %(plan)s::jsonb END, at, at,
       at + interval '5 minutes'
  FROM runs_campaign campaign JOIN runs_cell cell ON cell.campaign_id = campaign.id
  LEFT JOIN runs_hardwareprofile machine ON fingerprint = campaign.slug,
       generate_series(1, campaign.repeats) AS repeat,
       coalesce(now() - interval '9 years' + cell.id * interval '1 minute'
                + repeat * interval '1 second') AS at
 WHERE cell.id > %(after_cell)s ORDER BY cell.id, repeat
"""
# References are right by construction: the triggers that check them take a third of the time.
FOUND = """
SET session_replication_role = replica;
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, metric, 1000 * (1 + 0.01 * random()), 1, 'single'
  FROM runs_run run, unnest(%(metrics)s::bigint[]) AS metric
 WHERE run.id > %(after_run)s ORDER BY run.id;
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, %(rare_metric)s, 1, 1, 'single' FROM runs_run run JOIN runs_campaign campaign
       ON campaign.id = campaign_id WHERE slug = 'lab-00000' AND run.id > %(after_run)s;
INSERT INTO runs_runevent (run_id, at, from_state, to_state, code, message, attempt)
SELECT id, queued_at, '', word, word, '', 1
  FROM runs_run, unnest(ARRAY['claimed', 'preparing', 'measuring', 'finished']) AS word
 WHERE origin = 'executed' AND id > %(after_run)s;
INSERT INTO runs_command (run_id, attempt, ordinal, step, host, argv, stdin, exit_status, stdout,
                          stderr, truncated)
SELECT id, 1, ordinal, 'step-' || ordinal, 'lab-1', '["pgbench"]', '', 0, repeat('x', 600), '',
       false
  FROM runs_run, generate_series(1, 5) AS ordinal
 WHERE origin = 'executed' AND id > %(after_run)s;
INSERT INTO runs_series (run_id, name, unit, start, "interval", "values")
SELECT id, 'tps', '1/s', 0, 1, array_fill(1000::real, ARRAY[60])
  FROM runs_run WHERE origin = 'executed' AND id > %(after_run)s;
INSERT INTO runs_artifact (run_id, name, media_type, size, sha256, created_at)
SELECT id, name, 'text/plain', 1000, encode(sha256(convert_to(id || name, 'UTF8')), 'hex'), now()
  FROM runs_run, unnest(ARRAY['plan-1.json', 'stdout.txt']) AS name
 WHERE origin = 'executed' AND id > %(after_run)s;
SET session_replication_role = origin;
"""
# What comes with results, besides: a few of each for each pair of campaigns.
BESIDES = """
INSERT INTO runs_change (cell_id, run_id, metric_id, kind, ratio, before, after, rules, earliest,
                         latest, found_at, decision, note, decided_at, mailed_at)
SELECT run.cell_id, run.id, %(metric)s, 'step', 0.9, 1000, 900, 1, '', '', now(),
       CASE WHEN campaign.slug = 'ci-00000' THEN 'confirmed' ELSE 'open' END, '',
       CASE WHEN campaign.slug = 'ci-00000' THEN now() END, now()
  FROM runs_campaign campaign JOIN runs_run run ON campaign_id = campaign.id AND repeat = 1
 WHERE campaign.origin = 'uploaded' AND run.id > %(after_run)s AND run.cell_id %% 8 = 0
 ORDER BY run.id;
INSERT INTO runs_bisection (project_id, campaign_id, server_id, state, asked, draft, builds,
                            followed, low, high, verdict, is_found, rules, message, fingerprint,
                            created_at, ended_at)
SELECT %(project)s, id, %(server)s, 'finished', %(asked)s, '{}', %(builds)s, '{}', 0, 1,
       'slower', false, 1, '', slug, now(), now()
  FROM runs_campaign WHERE origin = 'executed' AND id > %(after_campaign)s AND slug <> 'long'
 ORDER BY id;
INSERT INTO runs_bisectionstep (bisection_id, campaign_id, low, high, "table")
SELECT id, campaign_id, 0, 1, '{"effect": 0.02, "rows": [], "together": []}'
  FROM runs_bisection WHERE campaign_id > %(after_campaign)s AND id %% 5 = 0;
INSERT INTO runs_annotation (campaign_id, kind, text, created_at)
SELECT id, 'note', 'A note.', now() FROM runs_campaign, generate_series(1, 3)
 WHERE id > %(after_campaign)s;
INSERT INTO runs_upload (project_id, key, body_hash, status, answer, created_at)
SELECT %(project)s, 'run-' || id, '', 201, '{}', now() FROM runs_run
 WHERE origin = 'uploaded' AND id > %(after_run)s;
INSERT INTO runs_seal (project_id, number, kind, run, at, reason, content, hash, key, signature)
SELECT %(project)s, id, 'sealed', id, now(), '', '{"run": 1}', sha256('a'), sha256('b'),
       sha256('c') || sha256('d')
  FROM runs_run WHERE id > %(after_run)s;
INSERT INTO runs_auditentry (at, actor, by_way_of, action, subject, project_id, before, after)
SELECT now(), CASE WHEN slug = 'lab-00000' THEN 'rare' ELSE 'admin' END, 'page',
       CASE WHEN slug = 'lab-00000' THEN 'rare' ELSE 'queue' END, 'campaign ' || slug,
       %(project)s, '{}', '{}' FROM runs_campaign, generate_series(1, 3)
 WHERE id > %(after_campaign)s ORDER BY id;
INSERT INTO runs_webhookdelivery (webhook_id, event, payload, state, tries, problem, created_at)
SELECT %(webhook)s + id %% %(senders)s, 'change', repeat('x', 300), 'delivered', 1, '', now()
  FROM runs_campaign, generate_series(1, 3) WHERE id > %(after_campaign)s;
INSERT INTO runs_scheduleevent (schedule_id, campaign_id, at, code, message)
SELECT %(schedule)s + id %% %(senders)s, id, now(), 'queued', ''
  FROM runs_campaign, generate_series(1, 3)
 WHERE origin = 'executed' AND id > %(after_campaign)s ORDER BY id;
INSERT INTO runs_serverevent (server_id, code, message, "by", at)
SELECT %(server)s, 'edited', '', 'admin', now() FROM runs_campaign WHERE id > %(after_campaign)s;
INSERT INTO runs_build (server_id, "commit", bindir, options, state, code, message, log, asked_at)
SELECT %(server)s, md5(slug), '/srv/builds/' || slug, '[]', 'removed', '', '', '', now()
  FROM runs_campaign WHERE origin = 'executed' AND id > %(after_campaign)s;
INSERT INTO runs_savedcomparison (slug, title, note, query, created_at)
SELECT 'of-' || slug, slug, '', 's=' || slug, now() FROM runs_campaign
 WHERE origin = 'executed' AND id > %(after_campaign)s AND slug <> 'long'
 ORDER BY id;
"""


def grow(pairs: int) -> None:
    """Let there be so many campaigns of each kind. References are right by construction."""
    project = projects.default()
    there = Campaign.objects.filter(slug__startswith="ci-0").count()
    marks = {
        f"after_{model._meta.model_name}": last(model)
        for model in (Campaign, Cell, Run)
    }
    if not there:
        _make(project, -1)
    # The newest quarter belongs to a project that most readers may not see.
    closed = private_project()
    for number in range(there, pairs):
        _make(closed if 4 * number >= 3 * pairs else project, number)
    Campaign.objects.filter(slug="long").update(
        factors={
            "version": list(VERSIONS),
            "clients": [8],
            "scale": list(range(1, pairs * SCALES + 1)),
        }
    )
    values = (
        around(project)
        | marks
        | {
            "revisions": REVISIONS,
            "first": FIRST_OF_LONG,
            "long_revisions": pairs * LONG_REVISIONS,
        }
    )
    with connection.cursor() as cursor:
        # The session may have been that of a page, which has a limit.
        cursor.execute("SET statement_timeout = 0")
        for statement in (REVISION_ROWS, CELLS, MACHINES, RUNS, FOUND, BESIDES):
            cursor.execute(statement, values)
        cursor.execute(
            "SELECT array_agg(id) FROM runs_cell WHERE id > %s", [marks["after_cell"]]
        )
        cursor.execute(SUMMARISE, [cursor.fetchone()[0], "finished"])
        cursor.execute("ANALYZE")
    # As control does it.
    partitions.look_after()


def private_project() -> Project:
    """The private project."""
    found, _created = Project.objects.get_or_create(
        slug="closed", defaults={"name": "closed", "is_public": False}
    )
    return found


def last(model: Any) -> int:
    """The newest row's key."""
    found = model.objects.order_by("-pk").values_list("pk", flat=True).first()
    return int(found or 0)


def _make(project: Any, number: int) -> None:
    """Two campaigns; the long ones before all others."""
    scenario = Scenario.objects.get(slug="fixed-point-read")
    ci, _created = Scenario.objects.get_or_create(slug="ci", defaults={"title": "CI"})
    common = {
        "project": project,
        "state": Campaign.State.FINISHED,
        "repeats": REPEATS,
        "created_at": timezone.now(),
        "parameters": {"scale": 100, "duration": 300},
    }
    versions = [OLD, *VERSIONS[1:]] if number == 0 else list(VERSIONS)
    lab, uploads = (
        ("long", "ci-long") if number < 0 else (f"lab-{number:05}", f"ci-{number:05}")
    )
    topology = topologies.single_topology(server=_server())
    configuration = _configuration("own-0")
    Campaign.objects.create(
        slug=lab,
        title=lab,
        origin=Origin.EXECUTED,
        scenario=scenario,
        topology=topology,
        configuration=configuration,
        configuration_revision=configuration.revisions.get(),
        factors={"version": versions, "clients": list(CLIENTS)},
        **common,
    )
    Campaign.objects.create(
        slug=uploads,
        title=uploads,
        origin=Origin.UPLOADED,
        scenario=ci,
        factors={"clients": list(UPLOADED_CLIENTS)},
        **common,
    )


def around(project: Any) -> dict[str, object]:
    """Machines, metrics and a plan, and what does not grow."""
    rare, machine = (
        HardwareProfile.objects.get_or_create(
            fingerprint=name, defaults={"name": name}
        )[0].pk
        for name in ("rare", "cost")
    )
    defaults = {"unit": "ms", "direction": "lower"}
    metrics = [Metric.objects.get(name="tps").pk] + [
        Metric.objects.get_or_create(
            project=project, name=f"m{number}", defaults=defaults | {"title": "m"}
        )[0].pk
        for number in range(1, NUMBERS)
    ]
    rare_metric, _created = Metric.objects.get_or_create(
        project=project, name="rare", defaults=defaults | {"title": "rare"}
    )
    snapshot, _created = SettingsSnapshot.objects.get_or_create(
        content_hash="cost",
        defaults={"settings": {"work_mem": {"setting": "4096", "unit": "kB"}}},
    )
    if not Webhook.objects.exists():
        _make_few(project)
    return {
        "project": project.pk,
        "rare": rare,
        "machine": machine,
        "metrics": metrics,
        "metric": metrics[0],
        "rare_metric": rare_metric.pk,
        "environment": factories.environment().pk,
        "settings": snapshot.pk,
        "server": _server().pk,
        "webhook": Webhook.objects.earliest("pk").pk,
        "schedule": Schedule.objects.earliest("pk").pk,
        "senders": SENDERS,
        "workload": WorkloadVersion.objects.earliest("pk").pk,
        "asked": json.dumps(ASKED),
        "builds": json.dumps(BUILDS),
        "plan": json.dumps(_plan()),
    }


def _plan() -> Any:
    """That of a run as it would be queued here."""
    if first := Run.objects.filter(plan__isnull=False).order_by("pk").first():
        return first.plan
    made = campaigns.create(draft=factories.draft(_server()))
    plan = made.runs.latest("pk").plan
    made.delete()
    return plan


def _server() -> Server:
    if found := Server.objects.filter(slug="lab-1").first():
        return found
    made: Server = factories.server("lab-1")
    for version in VERSIONS:
        factories.installation(made, version, has_psql=True, pgbench_version_num=180001)
    return made


def _configuration(slug: str) -> Configuration:
    made, is_new = Configuration.objects.get_or_create(
        slug=slug,
        defaults={"name": slug, "settings": {"work_mem": "64MB"}, "content_hash": slug},
    )
    if is_new:
        ConfigurationRevision.objects.create(
            configuration=made, number=1, settings=made.settings, content_hash=slug
        )
    return made


def _make_few(project: Any) -> None:
    """What a lab has for years: people, configurations, workloads, schedules, webhooks, tokens."""
    admin, _created = User.objects.get_or_create(username="cost", is_superuser=True)
    at = timezone.now()
    for number in range(FEW):
        _configuration(f"own-{number}")
        workload = Workload.objects.create(slug=f"own-{number}", name=f"Own {number}")
        WorkloadVersion.objects.create(
            workload=workload,
            number=1,
            scripts=[{"name": "a", "text": "SELECT 1;", "weight": 1}],
        )
        Token.objects.create(
            name="ci",
            prefix=f"{number:08}",
            secret_hash="",
            scopes=["upload"],
            project=project,
            created_by=admin,
        )
    for number in range(SENDERS):
        Schedule.objects.create(
            title=f"Nightly {number}",
            server=_server(),
            draft={},
            project=project,
            weekdays=[1],
            next_at=at,
        )
        Webhook.objects.create(
            project=project, url="https://example.org/", events=["change"]
        )
    observation = Observation.objects.create(
        slug="autumn",
        title="Autumn",
        server=_server(),
        anchor="16",
        project=project,
        designs=[
            {
                "scenario": "fixed-point-read",
                "levels": {"clients": [1, 4]},
                "parameters": {},
                "repeats": 3,
            }
        ],
    )
    for year in ("2025", "2026"):
        Edition.objects.create(observation=observation, label=year)
    for kind in (ServerCheck.Kind.PREFLIGHT, ServerCheck.Kind.TRIAL):
        ServerCheck.objects.create(
            kind=kind,
            server=_server(),
            asked_by="cost",
            by_way_of="api",
            deadline=at + timedelta(days=1),
        )


def files() -> None:
    """Some files of a run, which are really there."""
    run = _oldest("lab-00000")
    for name, content in (("out", b"x"), ("perf-folded.txt", b"main;work 10\n")):
        factories.artifact(run=run, data=ArtifactData(name, content))
    plan = ArtifactData("plan-0.json", json.dumps(PLAN).encode())
    factories.artifact(run=run, data=plan)
    for number, edition in enumerate(Edition.objects.order_by("pk")):
        edition.campaigns.add(Campaign.objects.get(slug=f"lab-0000{number}"))


def _oldest(campaign: str) -> Run:
    return Run.objects.filter(campaign__slug=campaign).earliest("pk")


def known() -> Mapping[str, object]:
    """What addresses name, by the words in them: the oldest of each, which is dearest to find."""
    run, of_long = _oldest("lab-00000"), _oldest("long")
    figure = PrintedFigure.objects.exclude(measured_run=None).select_related(
        "table__campaign"
    )
    printed = figure.earliest("pk")
    return {
        "run": run.pk,
        "uploaded": _oldest("ci-00000").pk,
        "measurement": run.measurements.earliest("pk").pk,
        "hardware": HardwareProfile.objects.get(fingerprint="cost").pk,
        "change": Change.objects.earliest("pk").pk,
        "bisection": Bisection.objects.earliest("pk").pk,
        "schedule": Schedule.objects.earliest("pk").pk,
        "webhook": Webhook.objects.earliest("pk").pk,
        "audit": AuditEntry.objects.earliest("pk").pk,
        "saved": SavedComparison.objects.earliest("pk").slug,
        "topology": topologies.single_topology(server=_server()).slug,
        "preflight": ServerCheck.objects.get(kind=ServerCheck.Kind.PREFLIGHT).pk,
        "trial": ServerCheck.objects.get(kind=ServerCheck.Kind.TRIAL).pk,
        "cell": run.cell_id,
        "next_cell": run.cell_id + 1,
        "long_cell": of_long.cell_id,
        "next_long_cell": of_long.cell_id + 1,
        "published": printed.table.campaign.slug,
        "place": f"{printed.row + 1}-{printed.column + 1}",
        "source": printed.table.source.slug,
        "table": printed.table.number,
        "campaign": Campaign.objects.get(slug="ci-00000").pk,
        "sha": f"{REVISIONS:040x}",
        "sha_before": f"{REVISIONS - 1:040x}",
        "long_sha": f"{FIRST_OF_LONG + 1:040x}",
        "long_sha_before": f"{FIRST_OF_LONG:040x}",
        "newest_sha": Revision.objects.filter(cells__campaign__slug="ci-long")
        .latest("sha")
        .sha,
    }
