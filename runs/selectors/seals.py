"""Seals: the form of a chain's entries, what is sealed of a run, and whether it has changed.

The parts correspond to the run's lines in an export (`docs/seals.md`), so an export can be checked
without a database.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db.models import Exists, OuterRef

from runs.models import (
    Artifact,
    Campaign,
    Cell,
    Command,
    Environment,
    HardwareProfile,
    Measurement,
    Project,
    Run,
    Seal,
    SealRequest,
    Series,
    SettingsSnapshot,
)
from runs.models.campaigns import Origin
from runs.selectors import exchange


def entries_of(run_id: int) -> list[Seal]:
    """What the chain says about a run, the newest first; empty while it waits. One query."""
    entries = Seal.objects.filter(run=run_id).select_related("project").order_by("-number")
    return list(entries.defer("content"))


# A prefix for what is signed, so that our signature can never be taken for one of something else.
DOMAIN = b"benchlab seal 1\n"
# The hash before the first entry of a chain.
BEGINNING = bytes(32)


def canonical(value: Any) -> str:
    """JSON in the canonical form in which it is hashed."""
    return json.dumps(
        value,
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
        default=_moment,
    )


def entry_hash(*, previous: bytes, **entry: Any) -> bytes:
    """SHA-256 of an entry (project, number, kind, run, at, reason, content) and the hash before."""
    return hashlib.sha256(canonical({**entry, "previous": bytes(previous).hex()}).encode()).digest()


def is_signed(*, digest: bytes, signature: bytes | memoryview, key: bytes | memoryview) -> bool:
    """Whether the owner of this public key signed the entry with this hash."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes(key)).verify(
            bytes(signature), DOMAIN + bytes(digest)
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def changed_parts(sealed: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """How a run differs now from its sealed content, in words."""
    parts = sorted(
        name
        for name in (sealed.keys() | found.keys()) - {"figures"}
        if sealed.get(name) != found.get(name)
    )
    was, now = sealed.get("figures", {}), found.get("figures", {})
    figures = [
        f"{name} is {_shown(now.get(name))}, sealed as {_shown(was.get(name))}"
        for name in sorted(was.keys() | now.keys())
        if was.get(name) != now.get(name)
    ]
    return [*figures, *parts]


def _shown(figure: Any) -> str:
    return "not there" if figure is None else str(figure[0])


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in a seal")


Row = dict[str, Any]
Content = dict[str, Any]

# Fields of the export's lines; those left out may change, or differ elsewhere.
CAMPAIGN = ("slug", "origin", "parameters", "treatment", "scenario", "configuration")
CELL = ("levels", "version", "version_num", "revision")
RUN = (
    *("repeat", "position", "origin", "attempt", "server_version", "tool_name", "tool_version"),
    *("quality", "external_id", "round", "labels", "queued_at", "started_at", "finished_at"),
)
HARDWARE = tuple(name for name in exchange.HARDWARE if name not in {"slug", "name"})
ENVIRONMENT = tuple(name for name in exchange.ENVIRONMENT if name != "slug")
ARTIFACT = ("name", "media_type", "size", "sha256")


class Shared:
    """Digests of rows that many runs share, read once each."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int | None], str] = {}

    def digest(self, model: Any, key: int | None, fields: tuple[str, ...]) -> str:
        """The digest of the row with this key; empty for none."""
        mark = (model.__name__, key)
        if mark not in self.known:
            row = model.objects.filter(pk=key).values(*fields).first() if key else None
            self.known[mark] = digest_of(row) if row else ""
        return self.known[mark]


def contents_of(run_ids: Collection[int], shared: Shared | None = None) -> dict[int, Content]:
    """The content to seal of these runs. A fixed number of queries, plus one for each profile.

    Expensive for runs with long series: they are read completely, one after the other.
    """
    shared = shared or Shared()
    rows = Run.objects.filter(pk__in=run_ids).order_by()
    keys = ("pk", "plan", "campaign_id", "cell_id", "hardware_id", "environment_id", "settings_id")
    runs = {row["pk"]: row for row in rows.values(*keys, *RUN, server_slug=_slug())}
    campaigns = _campaigns({row["campaign_id"] for row in runs.values()})
    cells = _cells({row["cell_id"] for row in runs.values()})
    figures, metrics = _figures(run_ids)
    parts = {
        "commands": _digests(Command, exchange.COMMAND, ("attempt", "ordinal"), run_ids),
        "series": _digests(Series, exchange.SERIES, ("name",), run_ids),
        "artifacts": _digests(Artifact, ARTIFACT, ("name",), run_ids),
    }
    contents: dict[int, Content] = {}
    for key, row in runs.items():
        described = {
            "campaign": campaigns[row["campaign_id"]],
            "cell": cells[row["cell_id"]],
            "metrics": metrics.get(key, {}),
            "run": _told(row),
        }
        content = {
            "run": digest_of(described),
            "figures": figures.get(key, {}),
            "plan": digest_of(_plan(row)) if row["plan"] is not None else "",
            "hardware": shared.digest(HardwareProfile, row["hardware_id"], HARDWARE),
            "environment": shared.digest(Environment, row["environment_id"], ENVIRONMENT),
            "settings": shared.digest(SettingsSnapshot, row["settings_id"], exchange.SETTINGS),
            **{name: digests.get(key, "") for name, digests in parts.items()},
        }
        contents[key] = {name: value for name, value in content.items() if value}
    return contents


def _slug() -> Any:
    return exchange.named("run")["link_server"]


def _campaigns(keys: Collection[int]) -> dict[int, Row]:
    links = exchange.named("campaign")
    wanted = {name: links[f"link_{name}"] for name in CAMPAIGN if f"link_{name}" in links}
    fields = [name for name in CAMPAIGN if name not in wanted]
    rows = Campaign.objects.filter(pk__in=keys).order_by()
    named = {f"link_{name}": path for name, path in wanted.items()}
    return {row.pop("pk"): _without_links(row) for row in rows.values("pk", *fields, **named)}


def _cells(keys: Collection[int]) -> dict[int, Row]:
    rows = Cell.objects.filter(pk__in=keys).order_by()
    fields = [name for name in CELL if name != "revision"]
    named = exchange.named("cell")
    return {row.pop("pk"): _without_links(row) for row in rows.values("pk", *fields, **named)}


def _without_links(row: Row) -> Row:
    return {name.removeprefix("link_"): value for name, value in row.items()}


def _told(row: Row) -> Row:
    """The run's own fields, as an export has them."""
    labels = dict(row["labels"])
    elsewhere = labels.pop(exchange.ELSEWHERE, None)
    told = {name: row[name] for name in RUN}
    return {**told, "labels": labels, "server": row["server_slug"] or elsewhere}


def _plan(row: Row) -> Row:
    plan: Row = row["plan"]
    return {name: value for name, value in plan.items() if name not in exchange.SECRET_IN_PLAN}


def _figures(run_ids: Collection[int]) -> tuple[dict[int, Row], dict[int, Row]]:
    """For each run: value, n and statistic by metric, and unit and direction of the metrics."""
    figures: dict[int, Row] = defaultdict(dict)
    metrics: dict[int, Row] = defaultdict(dict)
    rows = Measurement.objects.filter(run__in=run_ids).order_by()
    for run, metric, unit, direction, value, n, statistic in rows.values_list(
        *("run_id", "metric__name", "metric__unit", "metric__direction", "value", "n", "statistic")
    ):
        figures[run][f"{metric}:{statistic}"] = [value, n]
        metrics[run][metric] = [unit, direction]
    return figures, metrics


def _digests(
    model: Any, fields: tuple[str, ...], order: tuple[str, ...], run_ids: Collection[int]
) -> Mapping[int, str]:
    """SHA-256 of the rows of each run, one line each. Only a few are in memory at a time."""
    hashes: dict[int, Any] = defaultdict(hashlib.sha256)
    for row in _rows(model, fields, order, run_ids):
        run = row.pop("run_id")
        hashes[run].update(canonical(row).encode() + b"\n")
    return {run: found.hexdigest() for run, found in hashes.items()}


def _rows(
    model: Any, fields: tuple[str, ...], order: tuple[str, ...], run_ids: Collection[int]
) -> Iterator[Row]:
    rows = model.objects.filter(run__in=run_ids).order_by("run_id", *order)
    yield from rows.values("run_id", *fields).iterator(50)


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

    Run it in one transaction with a consistent snapshot. `ends` come from `services.seals`.
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
    found = contents_of(here, shared)
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
