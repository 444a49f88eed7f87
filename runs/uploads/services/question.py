"""What an upload asks of the database before anything is decided.

One statement for any number of runs; kinds that nobody named cost none. Where its answers say so,
more is asked: what belongs to a new campaign or metric, and once again for the cells of a campaign
or commit that is stored under another name.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Any

from django.db import connection
from django.db.models import Model, Q
from django.db.models.functions import Lower

from runs.access.selectors import projects
from runs.grouping import group_by_key
from runs.models import (
    Campaign,
    Configuration,
    Environment,
    HardwareProfile,
    Metric,
    Project,
    Revision,
    SettingsSnapshot,
)
from runs.shared import database, slugs
from runs.shared.database import Statement
from runs.uploads.services.known import (
    Known,
    KnownCampaign,
    KnownCell,
    KnownMetric,
    KnownRevision,
    KnownServer,
    Place,
    StoredRun,
)
from runs.uploads.services.uploaded_run import GivenProfile, GivenRun

# A row by its columns.
Row = Mapping[str, Any]
# Of an external id that is a text's.
PREFIX = "text:"
# What is asked of a campaign, as `KnownCampaign` has it.
CAMPAIGN_COLUMNS = (
    "campaign.slug, campaign.id AS pk, campaign.origin, campaign.project_id,"
    " scenario.slug AS scenario, coalesce(configuration.slug, '') AS configuration"
)
CAMPAIGN_TABLES = (
    "runs_campaign campaign JOIN runs_scenario scenario ON scenario.id = campaign.scenario_id"
    " LEFT JOIN runs_configuration configuration ON configuration.id = campaign.configuration_id"
)
# The cell of a campaign and a key, and one of its series: the first at or behind both in the order
# of the only index that has this order. With two equalities PostgreSQL takes any index that begins
# with the campaign, as long as it knows nothing of the table, and reads all of the campaign.
AT_KEY = (
    "LATERAL (SELECT id, campaign_id, key FROM runs_cell"
    " WHERE (campaign_id, key) >= ({campaign}, wanted.key)"
    " ORDER BY campaign_id, key LIMIT 1) AS cell"
)
ALIKE = (
    "(SELECT (alike.campaign_id, alike.series_key) = (campaign.id, wanted.series) FROM runs_cell"
    " alike WHERE (alike.campaign_id, alike.series_key) >= (campaign.id, wanted.series)"
    " ORDER BY alike.campaign_id, alike.series_key LIMIT 1) IS TRUE"
)
NEW_CELL_ID = "nextval('runs_cell_id_seq')"
NEW_REVISION_ID = "nextval('runs_revision_id_seq')"
# Whether the next known commit is the same one with another number of digits.
NEXT = (
    "coalesce((SELECT starts_with({whole}, {begin}) FROM runs_revision known"
    " WHERE known.project_id = wanted.project AND known.sha {sign} wanted.sha"
    " ORDER BY known.sha {order} LIMIT 1), false)"
)
# The commits that may be meant by a sha, by more digits or by seven of them or more; two suffice to
# see that it is ambiguous.
SPELLINGS = """
SELECT known.id, known.sha, wanted.sha AS given FROM unnest(%s::text[]) AS wanted (sha)
CROSS JOIN LATERAL (
    (SELECT id, sha FROM runs_revision
      WHERE project_id = %s AND starts_with(sha, wanted.sha) LIMIT 2)
    UNION
    (SELECT id, sha FROM runs_revision
      WHERE project_id = %s AND sha = ANY(ARRAY(
            SELECT left(wanted.sha, digits) FROM generate_series(7, length(wanted.sha)) AS digits
      )) LIMIT 2)
) AS known
"""


def ask(runs: Sequence[GivenRun], project: Project) -> Known:
    """All that is to be known before these runs are stored in the project.

    Takes keys for what may be new; call it in the transaction that stores the runs.
    """
    runs = [_name_in_project(run, project) for run in runs]
    if spellings := _spellings(runs):
        runs = [_renamed(run, {}, spellings) for run in runs]
    named_runs = add_external_ids(runs)
    answers = database.ask(_statements(named_runs, project))
    sha_of, ambiguous_shas = _other_shas(answers.get("revisions", []), project)
    slug_of = _other_slugs(runs, answers["cells"], project)
    if slug_of or sha_of:
        named_runs = add_external_ids([_renamed(run, slug_of, sha_of) for run in runs])
        answers |= database.ask(_name_statements(named_runs, project))
    campaigns = _campaigns(answers["cells"])
    metrics = {row["name"]: KnownMetric(**row) for row in answers["metrics"]}
    runs_of_name = {
        (row["campaign"], row["external_id"]): _stored_before(row)
        for row in answers.get("named runs", [])
    }
    stored_before = {
        position: runs_of_name[run.campaign, run.external_id]
        for position, run in enumerate(named_runs)
        # One that its caller has named is another run, or refused, whatever its name begins with.
        if run.external_id.startswith(PREFIX)
        and not runs[position].external_id
        and (run.campaign, run.external_id) in runs_of_name
    }
    return Known(
        project=project,
        runs=[
            run
            for position, run in enumerate(named_runs)
            if position not in stored_before
        ],
        stored_before=stored_before,
        run_ids=[row["id"] for row in answers["run ids"]],
        campaigns=campaigns,
        configurations=_configurations(named_runs, campaigns, project),
        cells=_cells(answers["cells"], named_runs),
        revisions={
            row["sha"]: KnownRevision(**row) for row in answers.get("revisions", [])
        },
        ambiguous_shas=ambiguous_shas,
        servers={row["slug"]: KnownServer(**row) for row in answers.get("servers", [])},
        hardware=_keys_by_name(answers.get("hardware", [])),
        environments=_keys_by_name(answers.get("environments", [])),
        settings=_keys_by_name(answers.get("settings", [])),
        metrics=metrics,
        metric_names=_metric_names(named_runs, metrics, project),
        external_ids=frozenset(runs_of_name),
    )


def find_own_slugs(names: Set[str], project: Project) -> dict[str, str]:
    """Of these names those under which the project's campaign has another slug, with that."""
    own_campaigns = Campaign.objects.filter(project=project)
    slug_of = dict(
        own_campaigns.filter(uploaded_as__in=names).values_list("uploaded_as", "slug")
    )
    others = names - slug_of.keys()
    if not project.is_public:
        earlier = own_campaigns.filter(slug__in=others).values_list("slug", flat=True)
        for name in others - set(earlier):
            slug_of[name] = slugs.qualify_slug(name, project, of=Campaign)
        return slug_of
    hidden = Campaign.objects.filter(slug__in=others, project__is_public=False)
    for slug in hidden.values_list("slug", flat=True):
        if slugs.OF not in slug:  # of an earlier release
            slug_of[slug] = slugs.free(Campaign, slug)
    return slug_of


def add_external_ids(runs: Sequence[GivenRun]) -> list[GivenRun]:
    """The runs, those of a telling text under its name; of several in one request each has one."""
    counted_names: Counter[tuple[str, str]] = Counter()
    named_runs = []
    for run in runs:
        if run.external_id or not run.text_digest:
            named_runs.append(run)
            continue
        name = f"{PREFIX}{run.text_digest}"
        counted_names[run.campaign, name] += 1
        count = counted_names[run.campaign, name]
        named_runs.append(
            replace(run, external_id=name if count == 1 else f"{name}:{count}")
        )
    return named_runs


# The first statement.


def _name_in_project(run: GivenRun, project: Project) -> GivenRun:
    """The run with the slug that a new campaign of its name has in this project."""
    if run.uploaded_as:
        return run
    slug = slugs.qualify_slug(run.campaign, project, of=Campaign)
    if slug == run.campaign:
        return run
    return replace(run, campaign=slug, uploaded_as=run.campaign)


def _statements(runs: Sequence[GivenRun], project: Project) -> dict[str, Statement]:
    statements = _name_statements(runs, project)
    if hardware := {
        run.hardware.identity: run.hardware for run in runs if run.hardware
    }:
        statements["hardware"] = _profiles(HardwareProfile, hardware)
    environments = {
        run.environment.identity: run.environment for run in runs if run.environment
    }
    if environments:
        statements["environments"] = _profiles(Environment, environments)
    if hashes := {run.settings_hash for run in runs} - {""}:
        statements["settings"] = _keys(SettingsSnapshot, "content_hash", hashes)
    if server_slugs := {run.server for run in runs} - {""}:
        statements["servers"] = Statement(
            "SELECT slug, id AS pk, hardware_id, environment_id FROM runs_server"
            " WHERE slug = ANY(%s::text[])",
            (list(server_slugs),),
        )
    statements["metrics"] = _metrics(runs, project)
    # Keys of runs are taken here, so that what is written can use them before the runs are there.
    statements["run ids"] = Statement(
        "SELECT nextval('runs_run_id_seq') AS id FROM generate_series(1, %s::integer)",
        (len(runs),),
    )
    return statements


def _name_statements(
    runs: Sequence[GivenRun], project: Project
) -> dict[str, Statement]:
    """What depends on the names of campaigns and commits."""
    statements = {"cells": _cells_and_campaigns(runs)}
    if shas := {run.revision.sha for run in runs if run.revision}:
        statements["revisions"] = _revisions(shas, project)
    if names := {(run.campaign, run.external_id) for run in runs if run.external_id}:
        statements["named runs"] = _named_runs(names, project)
    return statements


def _keys(model: type[Model], column: str, values: Iterable[str]) -> Statement:
    """The query for name and key of the rows that have one of these names in `column`."""
    table = connection.ops.quote_name(model._meta.db_table)
    name = connection.ops.quote_name(column)
    # Plain SQL: the ORM takes longer to build this query than PostgreSQL to answer it.
    return Statement(
        f"SELECT {name} AS name, id FROM {table} WHERE {name} = ANY(%s::text[])",  # noqa: S608 -- our names
        (list(values),),
    )


def _keys_by_name(rows: Sequence[Row]) -> dict[str, int]:
    return {row["name"]: row["id"] for row in rows}


def _profiles(model: type[Model], profiles: Mapping[str, GivenProfile]) -> Statement:
    """The query for keys by slug and by fingerprint."""
    fingerprints = [
        identity for identity, profile in profiles.items() if not profile.slug
    ]
    by_content = _keys(model, "fingerprint", fingerprints)
    profile_slugs = [identity for identity, profile in profiles.items() if profile.slug]
    if not profile_slugs:
        return by_content
    by_slug = _keys(model, "slug", profile_slugs)
    parameters = (*by_content.parameters, *by_slug.parameters)
    return Statement(f"{by_content.sql} UNION ALL {by_slug.sql}", parameters)


def _revisions(shas: Iterable[str], project: Project) -> Statement:
    """The query for revisions, as `KnownRevision` has them; one that is new gets a key.

    The first at or behind project and sha: see `AT_KEY`. Among shas in their order a shorter or
    longer spelling would be next to it.
    """
    sorted_shas = sorted(shas)
    shorter = NEXT.format(sign="<", order="DESC", whole="wanted.sha", begin="known.sha")
    longer = NEXT.format(sign=">", order="", whole="known.sha", begin="wanted.sha")
    return Statement(
        f"SELECT wanted.sha, coalesce(known.id, {NEW_REVISION_ID}) AS pk, known.id IS NULL"  # noqa: S608 -- our names
        f" AS is_new, known.id IS NULL AND ({shorter} OR {longer}) AS has_spellings,"
        " coalesce(ref, '') AS ref, coalesce(url <> '', false) AS has_url,"
        " committed_at IS NOT NULL AS has_date, coalesce(parents <> '[]', false) AS has_parents,"
        " coalesce(subject <> '', false) AS has_subject,"
        " coalesce(author <> '', false) AS has_author,"
        " coalesce(merge_base <> '', false) AS has_merge_base"
        " FROM unnest(%s::bigint[], %s::text[]) AS wanted (project, sha)"
        " LEFT JOIN LATERAL (SELECT * FROM runs_revision"
        " WHERE (project_id, sha) >= (wanted.project, wanted.sha)"
        " ORDER BY project_id, sha LIMIT 1) AS known"
        " ON known.project_id = wanted.project AND known.sha = wanted.sha",
        (database.array([project.pk] * len(sorted_shas)), sorted_shas),
    )


def _named_runs(names: Set[tuple[str, str]], project: Project) -> Statement:
    """The query for the project's runs of these campaigns and external ids."""
    return Statement(
        "SELECT campaign.slug AS campaign, run.external_id, run.id, run.state, run.code,"
        " run.message, run.wording, run.repeat"
        " FROM unnest(%s::text[], %s::text[]) AS wanted (campaign, external_id)"
        " JOIN runs_campaign campaign ON campaign.slug = wanted.campaign"
        " JOIN runs_run run ON run.campaign_id = campaign.id"
        " AND run.external_id = wanted.external_id AND run.external_id <> ''"
        " WHERE campaign.project_id = %s::bigint",
        (*map(list, zip(*sorted(names), strict=True)), project.pk),
    )


def _metrics(runs: Sequence[GivenRun], project: Project) -> Statement:
    """The query for the metrics of these runs, and of series with the name of a metric.

    Shared ones first: the project's own take their place.
    """
    names = {measurement.metric for run in runs for measurement in run.measurements}
    names |= {series.name for run in runs for series in run.series if series.unit}
    return Statement(
        "SELECT name, id AS pk, unit, direction FROM runs_metric WHERE name = ANY(%s::text[])"
        " AND (project_id IS NULL OR project_id = %s::bigint) ORDER BY project_id NULLS FIRST",
        (list(names), project.pk),
    )


def _cells_and_campaigns(runs: Sequence[GivenRun]) -> Statement:
    """The query for the cells of these runs, whose campaigns are known only by slug.

    Each row begins with what is asked of a campaign. A place without a cell gets a key for a new
    one, and it is said whether the campaign has other cells of the same levels.
    """
    series_key_of = {(run.campaign, run.cell_key): run.series_key for run in runs}
    return Statement(
        f"SELECT {CAMPAIGN_COLUMNS}, wanted.key, coalesce(cell.id, {NEW_CELL_ID}) AS cell_id,"  # noqa: S608
        f" cell.id IS NULL AS is_new, cell.id IS NULL AND {ALIKE} AS has_levels"
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS wanted (slug, key, series)"
        f" JOIN ({CAMPAIGN_TABLES}) ON campaign.slug = wanted.slug"
        f" LEFT JOIN {AT_KEY.format(campaign='campaign.id')}"
        " ON cell.campaign_id = campaign.id AND cell.key = wanted.key",
        (*map(list, zip(*series_key_of, strict=True)), list(series_key_of.values())),
    )


# What is asked where the first answers say that it is needed.


def _other_slugs(
    runs: Sequence[GivenRun], rows: Sequence[Row], project: Project
) -> dict[str, str]:
    """The slugs of the project's campaigns by the name given, where runs have another slug.

    No query where all campaigns are there and of the project.
    """
    campaigns = _campaigns(rows)
    slug_of = {
        run.uploaded_as or run.campaign: run.campaign
        for run in runs
        if run.campaign not in campaigns
        or campaigns[run.campaign].project_id != project.pk
    }
    if not slug_of:
        return {}
    slugs_in_project = {name: name for name in slug_of} | find_own_slugs(
        slug_of.keys(), project
    )
    return {
        name: slug for name, slug in slugs_in_project.items() if slug != slug_of[name]
    }


def _other_shas(
    rows: Sequence[Row], project: Project
) -> tuple[dict[str, str], frozenset[str]]:
    """The stored sha of each commit that is known by a shorter or longer one, and ambiguous ones.

    No query where none is; `rows` are those of the query for revisions.
    """
    missing = {row["sha"] for row in rows if row["has_spellings"]}
    if not missing:
        return {}, frozenset()
    revisions = Revision.objects.raw(
        SPELLINGS, [sorted(missing), project.pk, project.pk]
    )
    shas_of = group_by_key((revision.given, revision.sha) for revision in revisions)  # type: ignore[attr-defined]  # annotated
    stored_sha_of = {sha: shas[0] for sha, shas in shas_of.items() if len(shas) == 1}
    return stored_sha_of, frozenset(missing - stored_sha_of.keys())


def _spellings(runs: Sequence[GivenRun]) -> dict[str, str]:
    """The sha of each commit that another of these runs names by more digits."""
    shas = sorted({run.revision.sha for run in runs if run.revision})
    longer_sha_of: dict[str, str] = {}
    for position, sha in enumerate(shas):
        longer_shas = list(
            takewhile(lambda other: other.startswith(sha), shas[position + 1 :])  # noqa: B023
        )
        if longer_shas and all(map(longer_shas[-1].startswith, longer_shas)):
            longer_sha_of[sha] = longer_shas[-1]
    return longer_sha_of


def _renamed(
    run: GivenRun, slug_of: Mapping[str, str], sha_of: Mapping[str, str]
) -> GivenRun:
    """The run under the names by which its campaign and commit are stored."""
    name = run.uploaded_as or run.campaign
    if name in slug_of:
        run = replace(run, campaign=slug_of[name], uploaded_as=name)
    if run.revision and run.revision.sha in sha_of:
        run = replace(run, revision=replace(run.revision, sha=sha_of[run.revision.sha]))
    return run


def _campaigns(rows: Sequence[Row]) -> dict[str, KnownCampaign]:
    return {
        row["slug"]: KnownCampaign(
            **{name: row[name] for name in KnownCampaign._fields}
        )
        for row in rows
    }


def _cells(rows: Sequence[Row], runs: Sequence[GivenRun]) -> dict[Place, KnownCell]:
    """The cells of all places. One query for keys of cells where a campaign is new."""
    cells = {
        (row["slug"], row["key"]): KnownCell(
            row["cell_id"], row["is_new"], row["has_levels"]
        )
        for row in rows
    }
    missing = sorted({(run.campaign, run.cell_key) for run in runs} - cells.keys())
    if missing:
        keys = Statement(
            f"SELECT {NEW_CELL_ID} FROM generate_series(1, %s::integer)",  # noqa: S608 -- our names
            (len(missing),),
        )
        (key_rows,) = database.perform([keys])
        for place, (cell_id,) in zip(missing, key_rows, strict=True):
            cells[place] = KnownCell(cell_id, is_new=True, has_levels=False)
    return cells


def _stored_before(row: Row) -> StoredRun:
    return StoredRun(
        id=row["id"],
        campaign=row["campaign"],
        state=row["state"],
        code=row["code"],
        message=row["message"],
        wording=row["wording"],
        repeat=row["repeat"],
        is_again=True,
    )


def _configurations(
    runs: Sequence[GivenRun], campaigns: Mapping[str, KnownCampaign], project: Project
) -> dict[str, int]:
    """Those that a new campaign of the project may have. No query where none is named."""
    names = {run.configuration for run in runs if run.campaign not in campaigns} - {""}
    if not names:
        return {}
    usable = projects.usable(
        Configuration.objects.filter(slug__in=names), in_project=project.pk
    )
    return dict(usable.values_list("slug", "pk"))


def _metric_names(
    runs: Sequence[GivenRun], metrics: Mapping[str, KnownMetric], project: Project
) -> dict[str, str]:
    """Stored names like those of new metrics, in lower case. No query where none is new."""
    names = {measurement.metric for run in runs for measurement in run.measurements}
    new_names = {name.lower() for name in names if name not in metrics}
    if not new_names:
        return {}
    similar = Metric.objects.annotate(lower=Lower("name")).filter(
        Q(project=None) | Q(project=project), lower__in=new_names
    )
    return dict(similar.values_list("lower", "name"))
