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
    found = {}
    for name in PROFILES:
        if given := _given_profiles(name, runs):
            found[name] = _profile_question(name, given)
    if hashes := {run.settings_hash for run in runs} - {""}:
        found["settings"] = keys(SettingsSnapshot, "content_hash", hashes)
    if revisions := _given_revisions(runs):
        found["new revisions"] = _making(revisions, project)
        found["revisions"] = _revision_question(revisions, project)
    return found


def resolve(
    runs: Sequence[GivenRun], known: Mapping[str, Rows], faults: list[Fault]
) -> list[Conditions]:
    """The conditions of each run, created if new; `known` has the results of the queries."""
    servers = _servers(runs, faults)
    hardware, environments = (
        _profiles(name, runs, known.get(name, []), faults) for name in PROFILES
    )
    settings = _settings(runs, known.get("settings", []))
    revisions = _revisions(runs, known.get("revisions", []))
    made = []
    for run in runs:
        server = servers.get(run.server)
        made.append(
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
    return made


def _servers(runs: Sequence[GivenRun], faults: list[Fault]) -> dict[str, Server]:
    slugs = {run.server for run in runs} - {""}
    if not slugs:
        return {}
    found = {server.slug: server for server in Server.objects.filter(slug__in=slugs)}
    faults += [
        _unknown(run, "server", run.server)
        for run in runs
        if run.server and run.server not in found
    ]
    return found


def _given_profiles(name: str, runs: Sequence[GivenRun]) -> dict[str, GivenProfile]:
    return {each.identity: each for run in runs if (each := getattr(run, name))}


def _profile_question(name: str, given: Mapping[str, GivenProfile]) -> Statement:
    """The query for keys by slug and by fingerprint."""
    by_content = keys(
        PROFILES[name], "fingerprint", [mark for mark, each in given.items() if not each.slug]
    )
    slugs = [mark for mark, each in given.items() if each.slug]
    if not slugs:
        return by_content
    by_slug = keys(PROFILES[name], "slug", slugs)
    both = (*by_content.parameters, *by_slug.parameters)
    return Statement(f"{by_content.sql} UNION ALL {by_slug.sql}", both)


def _profiles(
    name: str, runs: Sequence[GivenRun], rows: Rows, faults: list[Fault]
) -> dict[str, int]:
    given = _given_profiles(name, runs)
    found: dict[str, int] = dict(rows)
    missing = {mark: each for mark, each in given.items() if mark not in found and each.fields}
    if missing:
        model = PROFILES[name]
        made = [model(fingerprint=mark, **each.fields) for mark, each in sorted(missing.items())]
        model.objects.bulk_create(made, ignore_conflicts=True)  # type: ignore[arg-type]
        found = dict(perform([_profile_question(name, given)])[0])
    for run in runs:
        profile = getattr(run, name)
        if profile and profile.slug and profile.slug not in found:
            faults.append(_unknown(run, name, profile.slug))
    return found


def _settings(runs: Sequence[GivenRun], rows: Rows) -> dict[str, int]:
    given = {run.settings_hash: run.snapshot for run in runs if run.settings}
    found: dict[str, int] = dict(rows)
    missing = sorted(set(given) - set(found))
    if missing:
        SettingsSnapshot.objects.bulk_create(
            [SettingsSnapshot(content_hash=mark, settings=given[mark]) for mark in missing],
            ignore_conflicts=True,
        )
        found = dict(perform([keys(SettingsSnapshot, "content_hash", given)])[0])
    return found


def _given_revisions(runs: Sequence[GivenRun]) -> dict[str, GivenRevision]:
    return {run.revision.sha: run.revision for run in runs if run.revision}


def _making(given: Mapping[str, GivenRevision], project: Project) -> Statement:
    """Creates revisions that are new: a run of CI is that of a new commit.

    One of which a shorter or longer spelling is known is not made, but found by `spelled`: among
    shas in their order it would be next to it.
    """
    rows = [
        (sha, each.ref, each.url, each.committed_at, json.dumps(each.parents))
        for sha, each in sorted(given.items())
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
    found = {}
    for sha in sorted(missing):
        alike = Q(sha__startswith=sha) | Q(sha__in=spellings(sha))
        stored = Revision.objects.filter(alike, project=project).values_list("sha", flat=True)[:2]
        if len(stored) == 1:
            found[sha] = stored[0]
            continue
        message = _("Several commits begin with %(sha)s: give it whole.") % {"sha": sha}
        faults += [
            Fault(f"{run.at}/revision/sha", "ambiguous_revision", message)
            for run in runs
            if run.revision and run.revision.sha == sha
        ]
    return found


def _revision_question(given: Iterable[str], project: Project) -> Statement:
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
        tuple(map(list, zip(*((project.pk, sha) for sha in given), strict=True))),
    )


def _revisions(runs: Sequence[GivenRun], rows: Rows) -> dict[str, int]:
    given = _given_revisions(runs)
    for sha, key, ref, *is_known in rows:
        _complete(key, given[sha], [bool(ref), *is_known])
    _add_refs(runs, {row[0]: (row[1], row[2]) for row in rows})
    return {row[0]: row[1] for row in rows}


def _add_refs(runs: Sequence[GivenRun], known: Mapping[str, tuple[int, str]]) -> None:
    """A commit can be on several branches: keep each one that an upload names."""
    named = {(run.revision.sha, run.revision.ref) for run in runs if run.revision}
    further = [
        RevisionRef(revision_id=known[sha][0], ref=ref)
        for sha, ref in sorted(named)
        if ref and known[sha][1] not in ("", ref)
    ]
    if further:
        RevisionRef.objects.bulk_create(further, ignore_conflicts=True)


def _complete(key: int, given: GivenRevision, is_known: Sequence[bool]) -> None:
    """Add what was unknown about a revision; what is known stays."""
    added = {
        name: list(value) if name == "parents" else value
        for name, known in zip(("ref", "url", "committed_at", "parents"), is_known, strict=True)
        if (value := getattr(given, name)) and not known
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
