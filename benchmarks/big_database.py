"""A results database of the size that the budgets are for: campaigns, runs, measurements.

Half a thousand campaigns over versions were executed here, and CI has uploaded the rest. The newest
two fifths of all runs are those of private projects, of which `member` is in the first. Written by
PostgreSQL itself: through the application it would take hours.
"""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs import tasks
from runs.access.services import projects
from runs.cells.services.summaries import SUMMARISE
from runs.models import (
    Campaign,
    Metric,
    Project,
    Scenario,
)
from runs.models.campaigns import Origin
from tests import factories

VERSIONS = (
    "9.6.24",
    "10.23",
    "11.22",
    "12.22",
    "13.22",
    "14.20",
    "15.15",
    "16.11",
    "17.7",
    "18.1",
)
OLDER = ("9.4.26", "9.5.25")
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512)
MEASUREMENTS = 10  # of each run
OF_UPLOAD = CLIENTS[:5]
COMMON = {
    "state": Campaign.State.FINISHED,
    "parameters": {"scale": 100, "duration": 300},
    "created_at": timezone.now(),
}
REVISIONS, REPEATS_OF_UPLOAD = 200, 5
CELLS_AT_ONCE = 2000
PRIVATE_PROJECTS, PRIVATE_PART = 40, 0.4

CELLS = """
INSERT INTO runs_cell (campaign_id, ordinal, levels, key, series_key, version)
SELECT id, row_number() OVER (PARTITION BY id ORDER BY version.place, clients.place, scale.place),
       levels, levels::text, '', version.level #>> '{}'
  FROM runs_campaign campaign,
       jsonb_array_elements(factors -> 'version') WITH ORDINALITY AS version (level, place),
       jsonb_array_elements(factors -> 'clients') WITH ORDINALITY AS clients (level, place),
       jsonb_array_elements(coalesce(factors -> 'scale', '[100]')) WITH ORDINALITY
           AS scale (level, place),
       jsonb_build_object('version', version.level, 'clients', clients.level,
                          'scale', scale.level) AS levels
 WHERE campaign.origin = 'executed'
"""
UPLOADED_CELLS = """
INSERT INTO runs_cell (campaign_id, ordinal, levels, key, series_key, revision_id, version,
                       commit_at)
SELECT campaign.id, row_number() OVER (PARTITION BY campaign.id ORDER BY revision.id, place),
       levels, levels::text || '@' || sha, levels::text, revision.id, '', committed_at
  FROM runs_campaign campaign,
       jsonb_array_elements(factors -> 'clients') WITH ORDINALITY AS clients (level, place),
       jsonb_build_object('clients', clients.level) AS levels,
       runs_revision revision
 WHERE campaign.origin = 'uploaded' AND revision.project_id = campaign.project_id
 ORDER BY campaign.id, revision.id, place
"""
REVISION_ROWS = """
INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)
SELECT %s, lpad(to_hex(number), 40, '0'), 'main', '', now() - (%s - number) * interval '1 day',
       '[]', now()
  FROM generate_series(1, %s) AS number
"""
RUNS = """
INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, code, message, remedy,
                      attempt, hardware_id, environment_id, server_version, tool_name,
                      tool_version, quality, external_id, labels, queued_at, started_at,
                      finished_at, cell_version, cell_major, is_public, private_project)
SELECT campaign.id, cell.id, repeat,
       row_number() OVER (PARTITION BY campaign.id ORDER BY hashint8(cell.id * 100 + repeat)),
       origin, 'finished', '', '', '', 1, %s, %s, cell.version, 'pgbench', '18.1', '[]', '', '{}',
       at, at, at + interval '5 minutes', cell.version, runs_major(cell.version),
       campaign.is_public, CASE WHEN NOT campaign.is_public THEN campaign.project_id END
  FROM runs_campaign campaign JOIN runs_cell cell ON cell.campaign_id = campaign.id,
       generate_series(1, campaign.repeats) AS repeat,
       coalesce(now() - ((SELECT max(id) FROM runs_cell) - cell.id) * interval '1 minute') AS at
 WHERE campaign.origin IN ('executed', 'uploaded')
 ORDER BY cell.id, repeat
"""
# A version gains 3 % over the one before it, and repeats vary by 1 %.
MEASUREMENT_ROWS = """
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, metric,
       1000 * (levels ->> 'clients')::float8 ^ 0.8 * 1.03 ^ (cell.ordinal / 15 %% 12)
       * (1 + 0.01 * (random() - 0.5)),
       1, 'single'
  FROM runs_run run JOIN runs_cell cell ON cell.id = run.cell_id, unnest(%s::bigint[]) AS metric
 WHERE run.origin IN ('executed', 'uploaded')
 ORDER BY run.id
"""


# What triggers would have counted, of rows that were copied without them.
COUNT_RUNS = """
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, sum(number), true
FROM (SELECT coalesce(campaign_id, 0) AS campaign, coalesce(origin, '') AS origin, state,
             count(*) AS number FROM runs_run
      GROUP BY GROUPING SETS ((campaign_id, state), (origin, state))
      UNION ALL SELECT campaign, origin, state, -number FROM runs_runcount) AS found
GROUP BY campaign, origin, state HAVING sum(number) <> 0
"""


def build(runs: int) -> None:
    """Fill an empty database, in which scenarios and metrics are known, with this many runs.

    The connection must be a superuser's: references are right by construction and not checked.
    """
    project = projects.default()
    executed = _executed(
        project, campaigns=max(1, runs // 2000), scales=max(1, runs // 5000)
    )
    of_one = len(OF_UPLOAD) * REVISIONS * REPEATS_OF_UPLOAD
    private = int(runs * PRIVATE_PART) // of_one
    _uploaded(project, range(max(1, (runs - executed) // of_one - private)))
    owners = _private_projects(private)
    for number in range(private):
        _uploaded(
            owners[number % len(owners)], range(number, number + 1), name="private"
        )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SELECT setseed(0.5)")
        for each in (project, *owners):
            cursor.execute(REVISION_ROWS, [each.pk, REVISIONS, REVISIONS])
        cursor.execute(CELLS)
        cursor.execute(UPLOADED_CELLS)
        cursor.execute(RUNS, [factories.hardware().pk, factories.environment().pk])
        cursor.execute(MEASUREMENT_ROWS, [_metrics()])
        _summarise()
        # The triggers that store numbers of runs were off as well.
        cursor.execute(COUNT_RUNS)
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM (ANALYZE)")


def judge_wide() -> None:
    """Keep the verdicts of the widest campaign, as control does."""
    tasks.judge_campaign(Campaign.objects.get(slug="huge").pk, "")


def size() -> tuple[int, int]:
    """How many runs and measurements there are."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM runs_run), count(*) FROM runs_measurement"
        )
        found = cursor.fetchone()
    return found[0], found[1]


def _executed(project: Project, *, campaigns: int, scales: int) -> int:
    """Campaigns over versions, a wide one of 2,000 cells, one of 150 for each of so many scales,
    and one of 12 x 15 cells; their runs."""
    themes = [
        Scenario.objects.get(slug=f"fixed-point-{load}") for load in ("read", "update")
    ]
    shapes: list[tuple[str, Sequence[str], Sequence[int], Sequence[int]]] = [
        (f"lab-{number:04}", VERSIONS[:8], CLIENTS[:10], (100,))
        for number in range(campaigns)
    ]
    shapes.append(("wide", VERSIONS, CLIENTS[:10], tuple(range(100, 2100, 100))))
    shapes.append(
        ("huge", VERSIONS, CLIENTS, tuple(range(100, 100 * (scales + 1), 100)))
    )
    shapes.append(("versus", OLDER + VERSIONS, CLIENTS, (100,)))
    Campaign.objects.bulk_create(
        Campaign(
            slug=slug,
            title=f"Campaign {slug}",
            project=project,
            origin=Origin.EXECUTED,
            repeats=3,
            scenario=themes[place % 2],
            factors={
                "version": list(versions),
                "clients": list(clients),
                "scale": list(scales),
            },
            **COMMON,
        )
        for place, (slug, versions, clients, scales) in enumerate(shapes)
    )
    return sum(3 * len(v) * len(c) * len(s) for _slug, v, c, s in shapes)


def _private_projects(campaigns: int) -> list[Project]:
    """As many as have a campaign, and a member of the first."""
    made = [
        projects.create(slug=f"private-{number:02}", is_public=False)
        for number in range(min(PRIVATE_PROJECTS, campaigns))
    ]
    member = User.objects.create(username="member")
    User.objects.create(username="administrator", is_superuser=True)
    if made:
        made[0].memberships.create(user=member)
    return made


def _uploaded(project: Project, numbers: range, *, name: str = "ci") -> None:
    scenario, _created = Scenario.objects.get_or_create(
        slug="ci", defaults={"title": "CI"}
    )
    Campaign.objects.bulk_create(
        Campaign(
            slug=f"{name}-{number:04}",
            title=f"Campaign {name}-{number:04}",
            project=project,
            origin=Origin.UPLOADED,
            repeats=REPEATS_OF_UPLOAD,
            scenario=scenario,
            factors={"clients": list(OF_UPLOAD)},
            **COMMON,
        )
        for number in numbers
    )


def _metrics() -> list[int]:
    """tps and nine others."""
    for number in range(MEASUREMENTS):
        name = f"metric-{number}"
        defaults = {"unit": "ms", "direction": "lower", "title": name}
        Metric.objects.get_or_create(name=name, defaults=defaults)
    others = Metric.objects.filter(name__startswith="metric-").order_by("pk")
    found = [Metric.objects.get(name="tps"), *others]
    return [each.pk for each in found[:MEASUREMENTS]]


def _summarise() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(
            "SELECT cell.id FROM runs_cell cell JOIN runs_campaign campaign"
            " ON campaign.id = campaign_id WHERE origin IN ('executed', 'uploaded') ORDER BY 1"
        )
        cells = [row[0] for row in cursor.fetchall()]
        for first in range(0, len(cells), CELLS_AT_ONCE):
            cursor.execute(
                SUMMARISE, [cells[first : first + CELLS_AT_ONCE], "finished"]
            )
