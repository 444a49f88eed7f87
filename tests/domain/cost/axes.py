"""The axes along which a results database grows, each of which can be tried by itself.

A lab measures for longer, has more private projects, more and smaller campaigns, more repeats of
one cell. What is flat on one axis need not be so on another. A database has one part of each from
the beginning, to which an axis adds nine.
"""

from collections.abc import Callable, Mapping, Sequence

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs.access.services import projects
from runs.cells.services.summaries import SUMMARISE
from runs.models import (
    Campaign,
    HardwareProfile,
    Membership,
    Project,
    Run,
    Scenario,
    Token,
)
from runs.models.campaigns import Origin
from tests.domain.cost import database

# One part of each.
PRIVATE = 8
PROJECTS = 4
SMALL = 40
CELLS = 40
REPEATS = 25
COMMITS = 40
SERIES = 6
FAILED = 12
MESSAGE = 400
MACHINES = 2
USERS = 20
EMPTY = 20
COMMITS_OF_EACH, PARTS = 4, 10

# Of uploads a cell is a commit of a series, of others a version and scale. Numbers count from 0.
_ROWS = """
INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)
SELECT %(project)s, lpad(to_hex(1000000 + number), 40, '0'), 'main', '',
       now() - interval '9 years' + number * interval '1 hour', '[]', now()
  FROM generate_series(0, CASE WHEN %(commits)s > 0 THEN %(commits)s - 1
                               ELSE %(last)s / %(series)s END) AS number ON CONFLICT DO NOTHING;
INSERT INTO runs_cell (campaign_id, ordinal, levels, key, series_key, revision_id, version)
SELECT campaign.id, number + 1, levels, levels::text || '@' || coalesce(sha, ''),
       CASE WHEN revision.id IS NULL THEN '' ELSE levels::text END, revision.id,
       CASE WHEN revision.id IS NULL THEN levels ->> 'version' ELSE '' END
  FROM runs_campaign campaign CROSS JOIN generate_series(%(first)s, %(last)s) AS number
 CROSS JOIN LATERAL (SELECT CASE WHEN %(commits)s > 0 THEN number %% %(commits)s
                                 ELSE number / %(series)s END AS place,
                            CASE WHEN %(commits)s > 0 THEN number / %(commits)s
                                 ELSE number %% %(series)s END AS level) AS part
  LEFT JOIN runs_revision revision ON origin = 'uploaded' AND revision.project_id = %(project)s
       AND sha = lpad(to_hex(1000000 + place), 40, '0')
 CROSS JOIN LATERAL (SELECT CASE WHEN revision.id IS NULL
       THEN jsonb_build_object('version', CASE number %% 2 WHEN 0 THEN '16.11' ELSE '17.7' END,
                               'clients', 8, 'scale', number / 2)
       ELSE jsonb_build_object('clients', level + 1) END AS levels) AS made
 WHERE campaign.id = ANY(%(campaigns)s) ORDER BY campaign.id, number
    ON CONFLICT (campaign_id, key) DO NOTHING;
INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, code, message, remedy,
                      attempt, hardware_id, environment_id, settings_id, server_id, server_version,
                      tool_name, tool_version, validity, quality, external_id, labels, queued_at,
                      started_at, finished_at)
SELECT campaign.id, cell.id, repeat, 1, origin, %(state)s, '', %(message)s, '', 1,
       %(machine)s, %(environment)s, %(settings)s,
       CASE WHEN origin = 'executed' THEN %(server)s END, cell.version, 'pgbench', '18.1',
       CASE WHEN origin = 'executed' AND %(state)s = 'finished' THEN 'valid' ELSE '' END, '[]',
       '', '{}', at, at, at + interval '5 minutes'
  FROM runs_campaign campaign JOIN runs_cell cell ON cell.campaign_id = campaign.id,
       generate_series(%(had)s + 1, %(repeats)s) AS repeat,
       coalesce(now() - interval '1 year' + cell.id * interval '1 minute'
                + repeat * interval '1 second') AS at
 WHERE campaign.id = ANY(%(campaigns)s) AND cell.ordinal > %(first)s ORDER BY cell.id, repeat;
SET session_replication_role = replica;
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run.id, metric, 1000 * (1 + 0.01 * random()), 1, 'single'
  FROM runs_run run, unnest(%(metrics)s::bigint[]) AS metric
 WHERE run.id > %(after_run)s AND state = 'finished' ORDER BY run.id;
SET session_replication_role = origin;
INSERT INTO runs_change (cell_id, run_id, metric_id, kind, ratio, before, after, rules, earliest,
                         latest, found_at, decision, note, mailed_at)
SELECT cell_id, run.id, %(metric)s, 'step', 0.9, 1000, 900, 1, '', '', now(), 'open', '', now()
  FROM runs_run run JOIN runs_cell cell ON cell.id = cell_id
 WHERE run.origin = 'uploaded' AND run.id > %(after_run)s AND repeat = 1 AND ordinal %% 8 = 0
 ORDER BY run.id;
"""


def _fill(
    campaigns: Sequence[Campaign],
    *,
    cells: range,
    series: int = 1,
    commits: int = 0,
    repeats: range = range(3),
    **given: object,
) -> None:
    """Cells with runs; those of a history go on by series, or by commits where these are given."""
    project = campaigns[0].project
    values = database.around(projects.default()) | {
        "project": project.pk if project else None,
        "campaigns": [each.pk for each in campaigns],
        "first": cells.start,
        "last": cells.stop - 1,
        "series": series,
        "commits": commits,
        "had": repeats.start,
        "repeats": repeats.stop,
        "state": "finished",
        "message": "",
        "after_run": database.last(Run),
        **given,
    }
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(_ROWS, values)
        cursor.execute(
            "SELECT array_agg(DISTINCT cell_id) FROM runs_run WHERE id > %s",
            [values["after_run"]],
        )
        cursor.execute(SUMMARISE, [cursor.fetchone()[0], "finished"])


def _campaigns(
    name: str, first: int, end: int, project: Project | None = None, origin: str = ""
) -> list[Campaign]:
    """Campaigns of these numbers; every second one is uploaded, or all are of one origin."""
    themes = {
        Origin.EXECUTED: Scenario.objects.get(slug="fixed-point-read"),
        Origin.UPLOADED: Scenario.objects.get(slug="ci"),
    }
    kinds = [Origin(origin or list(themes)[number % 2]) for number in range(first, end)]
    slugs = [f"{name}-{number:05}" for number in range(first, end)]
    Campaign.objects.bulk_create(
        [
            Campaign(
                slug=slug,
                title=name,
                project=project or projects.default(),
                origin=kind,
                state=Campaign.State.FINISHED,
                scenario=themes[kind],
                created_at=timezone.now(),
            )
            for slug, kind in zip(slugs, kinds, strict=True)
        ],
        ignore_conflicts=True,
    )
    return list(Campaign.objects.filter(slug__in=slugs).order_by("pk"))


def _private(had: int, end: int) -> None:
    closed = database.private_project()
    found = _campaigns("private", PRIVATE * had, PRIVATE * end, closed)
    _fill(found, cells=range(16), series=2)


def _projects(had: int, end: int) -> None:
    for number in range(PROJECTS * had, PROJECTS * end):
        made = projects.create(slug=f"own-{number:03}", is_public=False)
        _fill(_campaigns(made.slug, 0, 2, made), cells=range(8), series=2)
    joined, _created = User.objects.get_or_create(username="member")
    of_first = {"project": Project.objects.get(slug="own-000"), "user": joined}
    Membership.objects.get_or_create(**of_first, defaults={"role": "viewer"})


def _small(had: int, end: int) -> None:
    _fill(_campaigns("small", SMALL * had, SMALL * end), cells=range(1))


def _cells(had: int, end: int) -> None:
    found = _campaigns("cells", 0, 1)
    factors = {"version": ["16.11", "17.7"], "scale": list(range(CELLS * end // 2))}
    Campaign.objects.filter(slug=found[0].slug).update(factors=factors)
    _fill(found, cells=range(CELLS * had, CELLS * end))


def _repeats(had: int, end: int) -> None:
    runs = range(REPEATS * had, REPEATS * end)
    _fill(_campaigns("repeats", 0, 2), cells=range(2), series=2, repeats=runs)


def _commits(had: int, end: int) -> None:
    found = _campaigns("commits", 0, 1, origin=Origin.UPLOADED)
    places = range(2 * COMMITS * had, 2 * COMMITS * end)
    _fill(found, cells=places, series=2, repeats=range(1))


def _series(had: int, end: int) -> None:
    found = _campaigns("series", 0, 1, origin=Origin.UPLOADED)
    each = COMMITS_OF_EACH
    places = range(each * SERIES * had, each * SERIES * end)
    _fill(found, cells=places, commits=each, repeats=range(1))


def _messages(had: int, end: int) -> None:
    """The same runs, whose messages are longer."""
    found = _campaigns("failed", 0, 1, origin=Origin.EXECUTED)
    found[0].runs.all().delete()
    told = "".join(f"{number} is not there. " for number in range(MESSAGE * end // 18))
    _fill(found, cells=range(FAILED), state="failed", message=told)


def _machines(had: int, end: int) -> None:
    """Machines that have uploaded a run each."""
    numbers = range(MACHINES * had, MACHINES * end)
    made = HardwareProfile.objects.bulk_create(
        HardwareProfile(
            fingerprint=f"many-{each}", name=f"many {each}", cpu_model="EPYC"
        )
        for each in numbers
    )
    found = _campaigns("machines", 0, 1, origin=Origin.UPLOADED)
    for number, each in zip(numbers, made, strict=True):
        _fill(found, cells=range(number, number + 1), repeats=range(1), machine=each.pk)


def _users(had: int, end: int) -> None:
    """People, who belong to projects and have tokens."""
    default, closed = projects.default(), database.private_project()
    people = User.objects.bulk_create(
        User(username=f"person-{each}") for each in range(USERS * had, USERS * end)
    )
    for project in (default, closed):
        Membership.objects.bulk_create(
            Membership(project=project, user=each) for each in people
        )
    Token.objects.bulk_create(
        Token(
            name="ci",
            prefix=f"p{each.pk:07}",
            secret_hash="",
            scopes=["upload"],
            project=default,
            created_by=each,
        )
        for each in people
    )


def _without_figures(had: int, end: int) -> None:
    """Campaigns whose runs have failed, so that they can be compared with nothing."""
    found = _campaigns("empty", EMPTY * had, EMPTY * end)
    _fill(found, cells=range(1), repeats=range(1), state="failed")


# Where all axes grow, these would leave nothing in the lists that show figures.
WITHOUT_FIGURES = "without figures"
# By which words the gate names them: each is called with the parts there are and are to be.
AXES: Mapping[str, Callable[[int, int], None]] = {
    "small campaigns": _small,
    "cells": _cells,
    "repeats": _repeats,
    "commits": _commits,
    "series": _series,
    "messages": _messages,
    "machines": _machines,
    "users": _users,
    # Newer than what everybody may see, where all axes grow.
    "projects": _projects,
    "private": _private,
    WITHOUT_FIGURES: _without_figures,
}


def base() -> None:
    """One part of each axis. After `database.grow`."""
    for axis, add in AXES.items():
        if axis != WITHOUT_FIGURES:
            add(0, 1)


def grow(axis: str) -> None:
    """Ten parts of one axis."""
    AXES[axis](0 if axis == WITHOUT_FIGURES else 1, PARTS)
