"""The conditions of uploaded runs: servers, hardware, environments, settings, revisions.

Each is stored once per content. All runs of a batch are looked up at once, and kinds that nobody
named cost no query.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Model, Q
from django.utils.translation import gettext as _

from runs.cells.selectors.revisions import spellings
from runs.models import (
    Environment,
    HardwareProfile,
    Project,
    Revision,
    RevisionRef,
    Server,
    SettingsSnapshot,
)
from runs.shared.database import Rows, Statement, perform
from runs.shared.errors import Fault
from runs.uploads.services.uploaded_run import GivenProfile, GivenRevision, GivenRun

PROFILES: dict[str, type[HardwareProfile] | type[Environment]] = {
    "hardware": HardwareProfile,
    "environment": Environment,
}


# Whether the next known commit is the same one with another number of digits.
NEXT = (
    "coalesce((SELECT starts_with({whole}, {begin}) FROM runs_revision known"
    " WHERE project_id = %s::bigint AND known.sha {sign} made.sha"
    " ORDER BY known.sha {order} LIMIT 1), false)"
)


@dataclass(frozen=True)
class Conditions:
    """The keys of a run's conditions in the database; None if unknown."""

    server_id: int | None = None
    hardware_id: int | None = None
    environment_id: int | None = None
    settings_id: int | None = None
    revision_id: int | None = None


def questions(runs: Sequence[GivenRun], project: Project) -> dict[str, Statement]:
    """Queries for the conditions of these runs, each kind under its name if any run has it."""
    statements = {}
    for name in PROFILES:
        if profiles := _given_profiles(name, runs):
            statements[name] = _profile_question(name, profiles)
    if hashes := {run.settings_hash for run in runs} - {""}:
        statements["settings"] = keys(SettingsSnapshot, "content_hash", hashes)
    if revisions := _given_revisions(runs):
        statements["new revisions"] = _making(revisions, project)
        statements["revisions"] = _revision_question(revisions, project)
    return statements


def resolve(
    runs: Sequence[GivenRun], answers: Mapping[str, Rows], faults: list[Fault]
) -> list[Conditions]:
    """The conditions of each run, created if new; `answers` has the results of the queries."""
    servers = _servers(runs, faults)
    hardware, environments = (
        _profiles(name, runs, answers.get(name, []), faults) for name in PROFILES
    )
    settings = _settings(runs, answers.get("settings", []))
    revisions = _revisions(runs, answers.get("revisions", []))
    conditions = []
    for run in runs:
        server = servers.get(run.server)
        conditions.append(
            Conditions(
                server_id=server.pk if server else None,
                hardware_id=hardware.get(run.hardware.identity if run.hardware else "")
                or (server.hardware_id if server else None),
                environment_id=environments.get(run.environment.identity if run.environment else "")
                or (server.environment_id if server else None),
                settings_id=settings.get(run.settings_hash),
                revision_id=revisions.get(run.revision.sha) if run.revision else None,
            )
        )
    return conditions


def _servers(runs: Sequence[GivenRun], faults: list[Fault]) -> dict[str, Server]:
    slugs = {run.server for run in runs} - {""}
    if not slugs:
        return {}
    server_of = {server.slug: server for server in Server.objects.filter(slug__in=slugs)}
    faults += [
        _unknown(run, "server", run.server)
        for run in runs
        if run.server and run.server not in server_of
    ]
    return server_of


def _given_profiles(name: str, runs: Sequence[GivenRun]) -> dict[str, GivenProfile]:
    return {profile.identity: profile for run in runs if (profile := getattr(run, name))}


def _profile_question(name: str, profiles: Mapping[str, GivenProfile]) -> Statement:
    """The query for keys by slug and by fingerprint."""
    by_content = keys(
        PROFILES[name],
        "fingerprint",
        [mark for mark, profile in profiles.items() if not profile.slug],
    )
    slugs = [mark for mark, profile in profiles.items() if profile.slug]
    if not slugs:
        return by_content
    by_slug = keys(PROFILES[name], "slug", slugs)
    parameters = (*by_content.parameters, *by_slug.parameters)
    return Statement(f"{by_content.sql} UNION ALL {by_slug.sql}", parameters)


def _profiles(
    name: str, runs: Sequence[GivenRun], rows: Rows, faults: list[Fault]
) -> dict[str, int]:
    profiles = _given_profiles(name, runs)
    key_of: dict[str, int] = dict(rows)
    missing = {
        mark: profile for mark, profile in profiles.items() if mark not in key_of and profile.fields
    }
    if missing:
        model = PROFILES[name]
        created = [
            model(fingerprint=mark, **profile.fields) for mark, profile in sorted(missing.items())
        ]
        model.objects.bulk_create(created, ignore_conflicts=True)  # type: ignore[arg-type]
        key_of = dict(perform([_profile_question(name, profiles)])[0])
    for run in runs:
        profile = getattr(run, name)
        if profile and profile.slug and profile.slug not in key_of:
            faults.append(_unknown(run, name, profile.slug))
    return key_of


def _settings(runs: Sequence[GivenRun], rows: Rows) -> dict[str, int]:
    settings_of = {run.settings_hash: run.snapshot for run in runs if run.settings}
    key_of: dict[str, int] = dict(rows)
    missing = sorted(set(settings_of) - set(key_of))
    if missing:
        SettingsSnapshot.objects.bulk_create(
            [SettingsSnapshot(content_hash=mark, settings=settings_of[mark]) for mark in missing],
            ignore_conflicts=True,
        )
        key_of = dict(perform([keys(SettingsSnapshot, "content_hash", settings_of)])[0])
    return key_of


def _given_revisions(runs: Sequence[GivenRun]) -> dict[str, GivenRevision]:
    return {run.revision.sha: run.revision for run in runs if run.revision}


def _making(revisions: Mapping[str, GivenRevision], project: Project) -> Statement:
    """Creates revisions that are new: a run of CI is that of a new commit.

    One of which a shorter or longer spelling is known is not made, but found by `spelled`: among
    shas in their order it would be next to it.
    """
    rows = [
        (sha, revision.ref, revision.url, revision.committed_at, json.dumps(revision.parents))
        for sha, revision in sorted(revisions.items())
    ]
    return Statement(
        "INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)"  # noqa: S608 -- our names
        " SELECT %s::bigint, made.*, now() FROM unnest(%s::text[], %s::text[], %s::text[],"
        " %s::timestamptz[], %s::jsonb[]) AS made (sha, ref, url, committed_at, parents)"
        f" WHERE NOT {NEXT.format(sign='<', order='DESC', whole='made.sha', begin='known.sha')}"
        f" AND NOT {NEXT.format(sign='>', order='', whole='known.sha', begin='made.sha')}"
        " ON CONFLICT (project_id, sha) DO NOTHING",
        (project.pk, *map(list, zip(*rows, strict=True)), project.pk, project.pk),
    )


def spelled(
    runs: Sequence[GivenRun], rows: Rows, project: Project, faults: list[Fault]
) -> dict[str, str]:
    """The stored sha of each commit that is known by a shorter or longer one.

    No query where all were found as given; `rows` are those of the query for revisions.
    """
    missing = _given_revisions(runs).keys() - {row[0] for row in rows}
    stored_sha_of = {}
    for sha in sorted(missing):
        same_commit = Q(sha__startswith=sha) | Q(sha__in=spellings(sha))
        stored = Revision.objects.filter(same_commit, project=project).values_list(
            "sha", flat=True
        )[:2]
        if len(stored) == 1:
            stored_sha_of[sha] = stored[0]
            continue
        message = _("Several commits begin with %(sha)s: give it whole.") % {"sha": sha}
        faults += [
            Fault(f"{run.at}/revision/sha", "ambiguous_revision", message)
            for run in runs
            if run.revision and run.revision.sha == sha
        ]
    return stored_sha_of


def _revision_question(shas: Iterable[str], project: Project) -> Statement:
    """The query for revisions: sha, key, ref, and whether each further field is set.

    After they were made: it also sees those that another upload made in the meantime. The first at
    or behind project and sha: see `cells.AT_KEY`.
    """
    return Statement(
        "SELECT known.sha, id, ref, url <> '', committed_at IS NOT NULL, parents <> '[]'"
        " FROM unnest(%s::bigint[], %s::text[]) AS wanted (project, sha) JOIN LATERAL (SELECT *"
        " FROM runs_revision WHERE (project_id, sha) >= (wanted.project, wanted.sha)"
        " ORDER BY project_id, sha LIMIT 1) AS known"
        " ON known.project_id = wanted.project AND known.sha = wanted.sha",
        tuple(map(list, zip(*((project.pk, sha) for sha in shas), strict=True))),
    )


def _revisions(runs: Sequence[GivenRun], rows: Rows) -> dict[str, int]:
    revisions = _given_revisions(runs)
    for row in rows:
        key, ref, *is_known = row[1:]
        _complete(key, revisions[row[0]], [bool(ref), *is_known])
    _add_refs(runs, {row[0]: (row[1], row[2]) for row in rows})
    return {row[0]: row[1] for row in rows}


def _add_refs(runs: Sequence[GivenRun], key_and_ref_of: Mapping[str, tuple[int, str]]) -> None:
    """A commit can be on several branches: keep each one that an upload names."""
    named_refs = {(run.revision.sha, run.revision.ref) for run in runs if run.revision}
    further_refs = [
        RevisionRef(revision_id=key_and_ref_of[sha][0], ref=ref)
        for sha, ref in sorted(named_refs)
        if ref and key_and_ref_of[sha][1] not in ("", ref)
    ]
    if further_refs:
        RevisionRef.objects.bulk_create(further_refs, ignore_conflicts=True)


def _complete(key: int, revision: GivenRevision, is_known: Sequence[bool]) -> None:
    """Add what was unknown about a revision; what is known stays."""
    added = {
        name: list(value) if name == "parents" else value
        for name, is_present in zip(
            ("ref", "url", "committed_at", "parents"), is_known, strict=True
        )
        if (value := getattr(revision, name)) and not is_present
    }
    if added:
        Revision.objects.filter(pk=key).update(**added)


def _unknown(run: GivenRun, name: str, slug: str) -> Fault:
    message = _("There is no %(kind)s “%(slug)s”.") % {"kind": name, "slug": slug}
    return Fault(f"{run.at}/{name}", f"{name}_unknown", message)


def keys(model: type[Model], column: str, values: Iterable[str]) -> Statement:
    """The query for text and key of the rows that have one of these values in `column`."""
    table = connection.ops.quote_name(model._meta.db_table)
    name = connection.ops.quote_name(column)
    # Plain SQL: the ORM takes longer to build this query than PostgreSQL to answer it.
    return Statement(
        f"SELECT {name}, id FROM {table} WHERE {name} = ANY(%s)",  # noqa: S608 -- our names
        (list(values),),
    )
