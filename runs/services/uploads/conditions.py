"""Under what uploaded runs were measured: servers, hardware, environments, settings, revisions.

Each is stored once per content. All runs of a batch are looked up at once, and what nobody has
named costs no query.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import (
    Environment,
    HardwareProfile,
    Project,
    Revision,
    Server,
    SettingsSnapshot,
)
from runs.services.errors import Fault
from runs.services.uploads import lookup
from runs.services.uploads.given import GivenProfile, GivenRevision, GivenRun

Profile = type[HardwareProfile] | type[Environment]


@dataclass(frozen=True)
class Conditions:
    """The keys of a run's conditions in the database; None where nothing is known."""

    server_id: int | None = None
    hardware_id: int | None = None
    environment_id: int | None = None
    settings_id: int | None = None
    revision_id: int | None = None


def resolve(runs: Sequence[GivenRun], project: Project, faults: list[Fault]) -> list[Conditions]:
    """The conditions of each run, made where they are new."""
    servers = _servers(runs, faults)
    hardware = _profiles(HardwareProfile, "hardware", runs, faults)
    environments = _profiles(Environment, "environment", runs, faults)
    settings = _settings(runs)
    revisions = _revisions(runs, project)
    made = []
    for run in runs:
        server = servers.get(run.server)
        made.append(
            Conditions(
                server_id=server.pk if server else None,
                hardware_id=hardware.get(_identity(run.hardware))
                or (server.hardware_id if server else None),
                environment_id=environments.get(_identity(run.environment))
                or (server.environment_id if server else None),
                settings_id=settings.get(_hash(_snapshot(run.settings))) if run.settings else None,
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


def _profiles(
    model: Profile, name: str, runs: Sequence[GivenRun], faults: list[Fault]
) -> dict[str, int]:
    """Keys by slug and by fingerprint."""
    given = {_identity(profile): profile for run in runs if (profile := getattr(run, name))}
    if not given:
        return {}
    found = _known_profiles(model, given)
    missing = {mark: each for mark, each in given.items() if mark not in found and each.fields}
    if missing:
        made = [model(fingerprint=mark, **each.fields) for mark, each in sorted(missing.items())]
        model.objects.bulk_create(made, ignore_conflicts=True)  # type: ignore[arg-type]
        found = _known_profiles(model, given)
    for run in runs:
        profile = getattr(run, name)
        if profile and profile.slug and profile.slug not in found:
            faults.append(_unknown(run, name, profile.slug))
    return found


def _known_profiles(model: Profile, given: Mapping[str, GivenProfile]) -> dict[str, int]:
    marks = [mark for mark, each in given.items() if each.fields]
    slugs = [mark for mark, each in given.items() if each.slug]
    found: dict[str, int] = {}
    if marks:
        found |= lookup.keys(model, "fingerprint", marks)
    if slugs:
        found |= lookup.keys(model, "slug", slugs)
    return found


def _identity(profile: GivenProfile | None) -> str:
    if profile is None:
        return ""
    return profile.slug or _hash(dict(profile.fields))


def _settings(runs: Sequence[GivenRun]) -> dict[str, int]:
    given = {_hash(content): content for run in runs if (content := _snapshot(run.settings))}
    if not given:
        return {}

    def known() -> dict[str, int]:
        return lookup.keys(SettingsSnapshot, "content_hash", given)

    def make(missing: Sequence[str]) -> None:
        SettingsSnapshot.objects.bulk_create(
            [SettingsSnapshot(content_hash=mark, settings=given[mark]) for mark in missing],
            ignore_conflicts=True,
        )

    return _made(list(given), known, make)


def _snapshot(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Settings as a server's `pg_settings` are stored. Their unit is part of the text given."""
    return {
        name: {"setting": value, "unit": "", "source": "uploaded"}
        for name, value in settings.items()
    }


def _revisions(runs: Sequence[GivenRun], project: Project) -> dict[str, int]:
    given = {run.revision.sha: run.revision for run in runs if run.revision}
    if not given:
        return {}
    found = {each.sha: each for each in Revision.objects.filter(project=project, sha__in=given)}
    missing = sorted(set(given) - set(found))
    if missing:
        made = [Revision(project=project, **vars(given[sha])) for sha in missing]
        for revision in made:
            revision.parents = list(revision.parents)
        Revision.objects.bulk_create(made, ignore_conflicts=True)
        rows = Revision.objects.filter(project=project, sha__in=given)
        found = {each.sha: each for each in rows}
    for sha, revision in found.items():
        _complete(revision, given[sha])
    return {sha: revision.pk for sha, revision in found.items()}


def _complete(known: Revision, given: GivenRevision) -> None:
    """Add what was not known of a revision; what is known stays."""
    changed = []
    for name in ("ref", "url", "committed_at", "parents"):
        value = getattr(given, name)
        if value and not getattr(known, name):
            setattr(known, name, list(value) if name == "parents" else value)
            changed.append(name)
    if changed:
        known.save(update_fields=changed)


def _made(
    wanted: Sequence[str],
    known: Callable[[], dict[str, int]],
    make: Callable[[Sequence[str]], None],
) -> dict[str, int]:
    """What is known; made and looked up again where something is missing."""
    found = known()
    missing = sorted(set(wanted) - set(found))
    if missing:
        make(missing)
        found = known()
    return found


def _unknown(run: GivenRun, name: str, slug: str) -> Fault:
    message = _("There is no %(kind)s “%(slug)s”.") % {"kind": name, "slug": slug}
    return Fault(f"{run.at}/{name}", f"{name}_unknown", message)


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
