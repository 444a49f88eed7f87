"""A small results database as a lab has it, which can be made ten times as large.

Half of the campaigns were executed here, with plans, events, commands, series and artifacts; CI has
uploaded the others. The first two alone have an old version, a rare metric, a rare machine, and
runs that failed or are in doubt: whoever asks for those has to find them among all the others.
"""

import json

from django.db import connection
from django.utils import timezone

from runs.models import Campaign, HardwareProfile, Metric, Scenario
from runs.models.campaigns import Origin
from runs.services.access import projects
from runs.services.campaigns.summaries import SUMMARISE
from tests import factories

VERSIONS, OLD, CLIENTS, REPEATS = ("16.11", "17.7", "18.1"), "9.4.26", (1, 8, 64), 3
REVISIONS, UPLOADED_CLIENTS = 12, (1, 8)
RUNS_OF_TWO = len(VERSIONS) * len(CLIENTS) * REPEATS + REVISIONS * len(UPLOADED_CLIENTS) * REPEATS
NUMBERS = 4

REVISION_ROWS = """
INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)
SELECT %s, lpad(to_hex(number), 40, '0'), 'main', '', now() - (%s - number) * interval '1 day',
       '[]', now() FROM generate_series(1, %s) AS number ON CONFLICT DO NOTHING
"""
CELLS = """
INSERT INTO runs_cell (campaign_id, ordinal, levels, key, series_key, revision_id, version)
SELECT campaign.id, row_number() OVER (PARTITION BY campaign.id ORDER BY version.place, clients),
       levels, levels::text || '@' || coalesce(revision.sha, ''),
       CASE WHEN revision.id IS NULL THEN '' ELSE levels::text END, revision.id,
       coalesce(version.level #>> '{}', '')
  FROM runs_campaign campaign
  LEFT JOIN LATERAL jsonb_array_elements(factors -> 'version')
       WITH ORDINALITY AS version (level, place) ON true
 CROSS JOIN jsonb_array_elements(factors -> 'clients') AS clients
  LEFT JOIN runs_revision revision ON campaign.origin = 'uploaded'
 CROSS JOIN LATERAL (SELECT jsonb_strip_nulls(
       jsonb_build_object('version', version.level, 'clients', clients)) AS levels) AS made
 WHERE campaign.id > %s
"""
RUNS = """
INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, code, message, remedy,
                      attempt, hardware_id, server_id, server_version, tool_name, tool_version,
                      quality, validity, external_id, labels, plan, queued_at, started_at,
                      finished_at)
SELECT campaign.id, cell.id, repeat, 1, origin,
       CASE WHEN campaign.slug = 'lab-00000' AND repeat = 3 THEN 'failed' ELSE 'finished' END,
       '', '', '', 1, CASE WHEN campaign.slug = 'lab-00000' THEN %(rare)s ELSE %(machine)s END,
       CASE WHEN origin = 'executed' THEN %(server)s END, cell.version, 'pgbench', '18.1', '[]',
       CASE WHEN campaign.slug = 'lab-00000' THEN 'doubtful' WHEN origin = 'executed' THEN 'valid'
       ELSE '' END, '', '{}', CASE WHEN origin = 'executed' THEN %(plan)s::jsonb END, at, at,
       at + interval '5 minutes'
  FROM runs_campaign campaign JOIN runs_cell cell ON cell.campaign_id = campaign.id,
       generate_series(1, campaign.repeats) AS repeat,
       coalesce(now() - cell.id * interval '1 minute') AS at
 WHERE campaign.id > %(after)s ORDER BY cell.id, repeat
"""
FOUND = """
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, metric, 1000 * (1 + 0.01 * random()), 1, 'single'
  FROM runs_run run, unnest(%(metrics)s::bigint[]) AS metric
 WHERE campaign_id > %(after)s ORDER BY run.id;
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, %(rare_metric)s, 1, 1, 'single' FROM runs_run run JOIN runs_campaign campaign
       ON campaign.id = campaign_id WHERE slug = 'lab-00000' AND campaign_id > %(after)s;
INSERT INTO runs_runevent (run_id, at, from_state, to_state, code, message, attempt)
SELECT id, queued_at, '', word, word, '', 1
  FROM runs_run, unnest(ARRAY['claimed', 'preparing', 'measuring', 'finished']) AS word
 WHERE runs_run.origin = 'executed' AND campaign_id > %(after)s;
INSERT INTO runs_command (run_id, attempt, ordinal, step, host, argv, stdin, exit_status, stdout,
                          stderr, truncated)
SELECT id, 1, ordinal, 'step-' || ordinal, 'lab-1', '["pgbench"]', '', 0, repeat('x', 600), '',
       false
  FROM runs_run, generate_series(1, 5) AS ordinal
 WHERE origin = 'executed' AND campaign_id > %(after)s;
INSERT INTO runs_series (run_id, name, unit, start, "interval", "values")
SELECT id, 'tps', '1/s', 0, 1, array_fill(1000::real, ARRAY[60])
  FROM runs_run WHERE origin = 'executed' AND campaign_id > %(after)s;
"""


def grow(campaigns: int) -> None:
    """Let there be so many campaigns of each kind. References are right by construction."""
    there = Campaign.objects.filter(origin=Origin.UPLOADED, slug__startswith="ci-").count()
    last = Campaign.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    project = projects.default()
    Campaign.objects.bulk_create(
        each for number in range(there, campaigns) for each in _pair(project, number)
    )
    values = _around() | {"after": last}
    with connection.cursor() as cursor:
        # The session may have been that of a page, which has a limit.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(REVISION_ROWS, [project.pk, REVISIONS, REVISIONS])
        cursor.execute(CELLS, [last])
        cursor.execute(RUNS, values)
        cursor.execute(FOUND, values)
        cursor.execute("SELECT array_agg(id) FROM runs_cell WHERE campaign_id > %s", [last])
        cursor.execute(SUMMARISE, [cursor.fetchone()[0], "finished"])
        cursor.execute("ANALYZE")


def _pair(project: object, number: int) -> list[Campaign]:
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
    lab, uploads = f"lab-{number:05}", f"ci-{number:05}"
    return [
        Campaign(slug=lab, title=lab, origin=Origin.EXECUTED, scenario=scenario,
                 factors={"version": versions, "clients": list(CLIENTS)}, **common),
        Campaign(slug=uploads, title=uploads, origin=Origin.UPLOADED, scenario=ci,
                 factors={"clients": list(UPLOADED_CLIENTS)}, **common),
    ]  # fmt: skip


def _around() -> dict[str, object]:
    """Machines, metrics and a plan."""
    rare, machine = (
        HardwareProfile.objects.get_or_create(fingerprint=name, defaults={"name": name})[0].pk
        for name in ("rare", "cost")
    )
    defaults = {"unit": "ms", "direction": "lower"}
    metrics = [Metric.objects.get(name="tps").pk] + [
        Metric.objects.get_or_create(name=f"m{number}", defaults=defaults | {"title": "m"})[0].pk
        for number in range(1, NUMBERS)
    ]
    rare_metric, _created = Metric.objects.get_or_create(
        name="rare", defaults=defaults | {"title": "rare"}
    )
    server = factories.Server.objects.filter(slug="lab-1").first() or factories.server("lab-1")
    plan = json.dumps({"steps": ["x" * 100] * 20})
    return {
        "rare": rare, "machine": machine, "metrics": metrics, "rare_metric": rare_metric.pk,
        "server": server.pk, "plan": plan,
    }  # fmt: skip
