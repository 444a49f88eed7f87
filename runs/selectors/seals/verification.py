"""Whether sealed data is unchanged: follows each chain, and checks each run again."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef

from runs.models import (
    Project,
    Run,
    Seal,
    SealRequest,
)
from runs.models.campaigns import Origin
from runs.selectors.seals.chain import (
    BEGINNING,
    changed_parts,
    entry_hash,
    is_signed,
)
from runs.selectors.seals.contents import Content, Shared, of

CHUNK = 200
CONTENTS = (Seal.Kind.SEALED, Seal.Kind.AMENDED)
COUNTED = (Run.State.FINISHED, Run.State.WITHDRAWN)
Ends = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """A difference from what was sealed. `run` is the run's key, None for the chain itself."""

    project: str
    run: int | None
    code: str
    message: str


@dataclass
class Tally:
    """What was checked."""

    entries: int = 0
    runs: int = 0
    waiting: int = 0
    amended: list[tuple[int, str]] = field(default_factory=list)


def findings(*, trusted: Collection[bytes], ends: Ends, tally: Tally) -> Iterator[Finding]:
    """All differences, project by project. Reads every sealed run: minutes for a million.

    Run it in one transaction with a consistent snapshot. `ends` come from `services.seals.keys`.
    """
    shared = Shared()
    for project in Project.objects.order_by("pk"):
        yield from _chain(project, trusted, ends.get(project.slug, ()), shared, tally)
    known = set(Project.objects.values_list("slug", flat=True))
    for slug in sorted(ends.keys() - known):
        yield Finding(slug, None, "chain_missing", "The project of a chain is gone.")
    yield from _never_sealed(tally)


def _chain(
    project: Project,
    trusted: Collection[bytes],
    ends: Sequence[Mapping[str, Any]],
    shared: Shared,
    tally: Tally,
) -> Iterator[Finding]:
    previous, number = BEGINNING, 0
    awaited = {each["number"]: each["hash"] for each in ends}
    entries = Seal.objects.filter(project=project).order_by("number")
    chunk: list[Seal] = []
    for entry in entries.iterator(CHUNK):
        tally.entries += 1
        yield from _entry(project, entry, number, previous, trusted)
        number, previous = entry.number, bytes(entry.hash)
        if awaited.pop(number, previous.hex()) != previous.hex():
            yield Finding(project.slug, entry.run, "chain_cut", _cut(number))
        chunk.append(entry)
        if len(chunk) == CHUNK:
            yield from _runs(project, chunk, shared, tally)
            chunk.clear()
    yield from _runs(project, chunk, shared, tally)
    for missing in sorted(awaited):
        yield Finding(project.slug, None, "chain_cut", _cut(missing))


def _cut(number: int) -> str:
    return f"Entry {number} of the chain was sealed, and is gone or is another one now."


def _entry(
    project: Project, entry: Seal, before: int, previous: bytes, trusted: Collection[bytes]
) -> Iterator[Finding]:
    """Whether an entry follows the one before, and is signed."""
    if entry.number != before + 1:
        message = f"Entries {before + 1} to {entry.number - 1} of the chain are missing."
        yield Finding(project.slug, None, "chain_gap", message)
        # What came before is unknown: only the signature of this entry can be checked.
        digest = bytes(entry.hash)
    else:
        names = ("number", "kind", "run", "at", "reason", "content")
        told = {name: getattr(entry, name) for name in names}
        digest = entry_hash(previous=previous, project=project.slug, **told)
    if digest != bytes(entry.hash):
        message = f"Entry {entry.number} of the chain is another one than was sealed."
        yield Finding(project.slug, entry.run, "entry_changed", message)
    elif bytes(entry.key) not in trusted:
        message = f"Entry {entry.number} is signed with a key that is not trusted here."
        yield Finding(project.slug, entry.run, "key_unknown", message)
    elif not is_signed(digest=digest, signature=entry.signature, key=entry.key):
        message = f"The signature of entry {entry.number} is wrong."
        yield Finding(project.slug, entry.run, "signature_wrong", message)


def _runs(
    project: Project, chunk: Sequence[Seal], shared: Shared, tally: Tally
) -> Iterator[Finding]:
    """The runs whose last content is in this part of the chain."""
    every = Seal.objects.filter(run__in={each.run for each in chunk}).order_by("number")
    last: dict[int, Seal] = {}
    said: dict[int, str] = {}
    for entry in every.filter(project=project).defer("content"):
        said[entry.run] = entry.kind
        if entry.kind in CONTENTS:
            last[entry.run] = entry
    here = {each.run: each for each in chunk if last.get(each.run) == each}
    tally.amended += [(each.run, each.reason) for each in chunk if each.kind == Seal.Kind.AMENDED]
    tally.runs += len(here)
    found = of(here, shared)
    states = dict(Run.objects.filter(pk__in=here).order_by().values_list("pk", "state"))
    asked = SealRequest.objects.filter(run__in=here).order_by().values_list("run", flat=True)
    waiting = set(asked)
    for run, entry in here.items():
        for code, message in _run(run, entry, found.get(run), states):
            yield Finding(project.slug, run, code, message)
        if run in states and run not in waiting:
            yield from _state(project, run, states[run], said[run])


def _run(
    run: int, entry: Seal, found: Content | None, states: Mapping[int, str]
) -> Iterator[tuple[str, str]]:
    if found is None:
        yield "run_missing", f"Run {run} was sealed and is gone."
        return
    if states[run] not in COUNTED:
        yield "run_changed", f"Run {run} had finished, and is now: {states[run]}."
    try:
        sealed = json.loads(entry.content)
    except ValueError:
        return  # reported as a changed entry
    if parts := changed_parts(sealed, found):
        yield "run_changed", f"Run {run} has changed: {'; '.join(parts)}."


def _state(project: Project, run: int, state: str, said: str) -> Iterator[Finding]:
    """Whether a run is in use or withdrawn, as its last entry says."""
    if state in COUNTED and (state == Run.State.WITHDRAWN) != (said == Seal.Kind.WITHDRAWN):
        message = f"Run {run} is {state}, and the chain says: {said}."
        yield Finding(project.slug, run, "state_differs", message)


def _never_sealed(tally: Tally) -> Iterator[Finding]:
    """Runs in use that are in no chain; those that wait are only counted."""
    tally.waiting = SealRequest.objects.count()
    sealed = Seal.objects.filter(run=OuterRef("pk"), kind=Seal.Kind.SEALED)
    waiting = SealRequest.objects.filter(run=OuterRef("pk"))
    runs = Run.objects.filter(~Exists(sealed), ~Exists(waiting), state__in=COUNTED)
    unknown = runs.exclude(origin=Origin.PUBLISHED).order_by("pk")
    for run, project in unknown.values_list("pk", "campaign__project__slug").iterator(CHUNK):
        message = f"Run {run} was never sealed: it was not stored by BenchLab, or its row was."
        yield Finding(project or "default", run, "never_sealed", message)
