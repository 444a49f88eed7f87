"""What differs from what was sealed: the chains, their runs, and the summaries made of these."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from runs.access.selectors import macs
from runs.export_reader import SEALED_FORM, changed_parts, figures_changed, form_of
from runs.models import AuditLink, Project, Run, Seal, SealRequest
from runs.seals.selectors.sealed_content import Content, Shared, contents_of
from runs.seals.selectors.seals import (
    AUDIT,
    BEGINNING,
    HEAD,
    entry_hash,
    is_signed,
    is_updating,
)
from runs.shared import queries

CHUNK = 200
CONTENTS = (Seal.Kind.SEALED, Seal.Kind.AMENDED, Seal.Kind.JUDGED)
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
    """What was looked at."""

    entries: int = 0
    runs: int = 0
    waiting: int = 0
    acknowledged: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Trusted:
    """What is known outside the database; from `seals.services.seal_keys`, and the data files.

    `acknowledged` are entries (project, number, hash), `published` slugs of campaigns of the
    archive, which `archive.services.comparison` compares with its data files.
    """

    keys: Collection[bytes]
    ends: Ends = field(default_factory=dict)
    acknowledged: Collection[tuple[str, int, str]] = ()
    published: Collection[str] = ()


def findings(trusted: Trusted, tally: Tally) -> Iterator[Finding]:
    """All differences, project by project. Reads every sealed run: minutes for a million.

    Run it in one transaction with a consistent snapshot.
    """
    named_findings: list[Finding] = []
    for finding in _check_runs(trusted, tally):
        named_findings.append(finding)
        yield finding
    yield from _summaries(trusted.published, named_findings)
    yield from _check_others()


def _check_runs(trusted: Trusted, tally: Tally) -> Iterator[Finding]:
    shared = Shared()
    forged = set()
    for request, message in _forged_requests(tally):
        forged.add(request.pk)
        owner = Project.objects.filter(campaigns__runs=request.run).first()
        slug = owner.slug if owner else "default"
        yield Finding(slug, request.run, "request_forged", message)
    for project in Project.objects.order_by("pk"):
        yield from _chain(project, trusted, forged, shared, tally)
    known_slugs = {*Project.objects.values_list("slug", flat=True), AUDIT}
    for slug in sorted(trusted.ends.keys() - known_slugs):
        yield Finding(slug, None, "chain_missing", "The project of a chain is gone.")
    yield from _never_sealed(trusted.published, forged)


def _forged_requests(tally: Tally) -> Iterator[tuple[SealRequest, str]]:
    """Requests to seal that BenchLab did not write; those that it wrote are counted."""
    is_in_update = is_updating()
    for request in SealRequest.objects.order_by("pk").iterator():
        is_own = macs.is_marked(request.mark, macs.REQUEST, *request.marked)
        if not request.refused and (is_own or (is_in_update and not request.mark)):
            tally.waiting += 1
            continue
        why = request.refused or "not_marked"
        message = (
            f"Request {request.pk} to seal run {request.run} ({request.kind}: {request.reason!r})"
            f" is not BenchLab's own ({why}), and was not signed."
        )
        yield request, message


def _chain(
    project: Project,
    trusted: Trusted,
    forged: Collection[int],
    shared: Shared,
    tally: Tally,
) -> Iterator[Finding]:
    previous, number = BEGINNING, 0
    awaited = {end["number"]: end["hash"] for end in trusted.ends.get(project.slug, ())}
    entries = Seal.objects.filter(project=project).order_by("number").iterator(CHUNK)
    while chunk := list(islice(entries, CHUNK)):
        tally.entries += len(chunk)
        for entry in chunk:
            yield from _entry(project, entry, number, previous, trusted.keys)
            if entry.kind == Seal.Kind.AMENDED:
                yield from _amended(project, entry, trusted, tally)
            number, previous = entry.number, bytes(entry.hash)
            if awaited.pop(number, previous.hex()) != previous.hex():
                yield Finding(project.slug, entry.run, "chain_cut", _cut(number))
        yield from _runs(project, chunk, forged, shared, tally)
    for missing in sorted(awaited):
        yield Finding(project.slug, None, "chain_cut", _cut(missing))


def _amended(
    project: Project, entry: Seal, trusted: Trusted, tally: Tally
) -> Iterator[Finding]:
    """A change that BenchLab signed: a person with the key says that it was meant."""
    if (project.slug, entry.number, entry.digest) in trusted.acknowledged:
        tally.acknowledged.append((entry.run, entry.reason))
        return
    message = (
        f"Run {entry.run} was amended after it was sealed (entry {entry.number}): {entry.reason}."
        f" If that is right: manage.py acknowledge {project.slug} {entry.number} --reason WHY"
    )
    yield Finding(project.slug, entry.run, "amended", message)


def _cut(number: int) -> str:
    return f"Entry {number} of the chain was sealed, and is gone or is another one now."


def _entry(
    project: Project,
    entry: Seal,
    before: int,
    previous: bytes,
    trusted: Collection[bytes],
) -> Iterator[Finding]:
    """Whether an entry follows the one before, and is signed."""
    if entry.number != before + 1:
        message = (
            f"Entries {before + 1} to {entry.number - 1} of the chain are missing."
        )
        yield Finding(project.slug, None, "chain_gap", message)
        # What came before is unknown: only the signature of this entry can be checked.
        digest = bytes(entry.hash)
    else:
        names = ("number", "kind", "run", "at", "reason", "content")
        values = {name: getattr(entry, name) for name in names}
        digest = entry_hash(previous=previous, project=project.slug, **values)
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
    project: Project,
    chunk: Sequence[Seal],
    forged: Collection[int],
    shared: Shared,
    tally: Tally,
) -> Iterator[Finding]:
    """The runs whose last content is in this part of the chain."""
    every = Seal.objects.filter(run__in={seal.run for seal in chunk}).order_by("number")
    last_seals: dict[int, Seal] = {}
    kinds: dict[int, str] = {}
    for entry in every.filter(project=project).defer("content"):
        kinds[entry.run] = entry.kind
        if entry.kind in CONTENTS:
            last_seals[entry.run] = entry
    here = {seal.run: seal for seal in chunk if last_seals.get(seal.run) == seal}
    tally.runs += len(here)
    old = {run for run, entry in here.items() if _form(entry) != SEALED_FORM}
    contents = contents_of(here.keys() - old, shared)
    contents |= contents_of(old, shared, form=1) if old else {}
    yield from _check_entries(project, here)
    states = dict(Run.objects.filter(pk__in=here).order_by().values_list("pk", "state"))
    requests = SealRequest.objects.filter(run__in=here).exclude(pk__in=forged)
    waiting = set(requests.order_by().values_list("run", flat=True))
    for run, entry in here.items():
        for code, message in _run(run, entry, contents.get(run), states):
            yield Finding(project.slug, run, code, message)
        if run in states and run not in waiting:
            yield from _state(project, run, states[run], kinds[run])


def _form(entry: Seal) -> int:
    try:
        return form_of(json.loads(entry.content))
    except (ValueError, AttributeError):
        return SEALED_FORM  # reported as a changed entry


def _check_entries(project: Project, here: Mapping[int, Seal]) -> Iterator[Finding]:
    """Figures that differ from entry to entry: no entry makes them right."""
    again = {run for run, entry in here.items() if entry.kind != Seal.Kind.SEALED}
    entries = Seal.objects.filter(project=project, run__in=again).exclude(content="")
    before: dict[int, Mapping[str, Any]] = {}
    for entry in entries.order_by("number").iterator(CHUNK):
        try:
            sealed = json.loads(entry.content)
        except ValueError:
            continue  # reported as a changed entry
        if figures := figures_changed(before.get(entry.run, sealed), sealed):
            message = (
                f"Run {entry.run} has other figures in entry {entry.number} than in the one before:"
                f" {'; '.join(figures)}."
            )
            yield Finding(project.slug, entry.run, "run_changed", message)
        before[entry.run] = sealed


def _run(
    run: int, entry: Seal, content_now: Content | None, states: Mapping[int, str]
) -> Iterator[tuple[str, str]]:
    if content_now is None:
        yield "run_missing", f"Run {run} was sealed and is gone."
        return
    if states[run] not in Run.WITH_RESULT:
        yield "run_changed", f"Run {run} had finished, and is now: {states[run]}."
    try:
        sealed = json.loads(entry.content)
    except ValueError:
        return  # reported as a changed entry
    if changed_names := changed_parts(sealed, content_now):
        yield "run_changed", f"Run {run} has changed: {'; '.join(changed_names)}."


def _state(project: Project, run: int, state: str, kind: str) -> Iterator[Finding]:
    """Whether a run is in use or withdrawn, as its last entry says."""
    if state in Run.WITH_RESULT and (state == Run.State.WITHDRAWN) != (
        kind == Seal.Kind.WITHDRAWN
    ):
        message = f"Run {run} is {state}, and the chain says: {kind}."
        yield Finding(project.slug, run, "state_differs", message)


def _never_sealed(
    published: Collection[str], forged: Collection[int]
) -> Iterator[Finding]:
    """Runs in use that are in no chain, do not wait for it, and are in no data file."""
    sealed = Seal.objects.filter(run=OuterRef("pk"), kind=Seal.Kind.SEALED)
    waiting = SealRequest.objects.filter(run=OuterRef("pk")).exclude(pk__in=forged)
    runs = Run.objects.filter(
        ~Exists(sealed), ~Exists(waiting), state__in=Run.WITH_RESULT
    )
    unknown = runs.exclude(campaign__slug__in=published).order_by("pk")
    for run, project in unknown.values_list("pk", "campaign__project__slug").iterator(
        CHUNK
    ):
        message = f"Run {run} was never sealed: it was not stored by BenchLab, or its row was."
        yield Finding(project or "default", run, "never_sealed", message)


# Rows whose own links and copies contradict one another. Pages read either.
COPIES = """
SELECT run.id, project.slug, campaign.slug, other.slug
  FROM runs_run run JOIN runs_cell cell ON cell.id = run.cell_id
  JOIN runs_campaign campaign ON campaign.id = run.campaign_id
  JOIN runs_campaign other ON other.id = cell.campaign_id
  LEFT JOIN runs_project project ON project.id = campaign.project_id
 WHERE cell.campaign_id <> run.campaign_id
 ORDER BY run.id
"""
COMMITS = """
SELECT cell.id, project.slug, campaign.slug, revision.sha
  FROM runs_cell cell JOIN runs_revision revision ON revision.id = cell.revision_id
  JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
  LEFT JOIN runs_project project ON project.id = campaign.project_id
 WHERE cell.commit_at IS DISTINCT FROM coalesce(revision.committed_at, revision.created_at)
 ORDER BY cell.id
"""


def _check_others() -> Iterator[Finding]:
    for run, project, *campaigns in queries.rows(COPIES):
        message = f"Run {run} of {campaigns[0]} is in a cell of {campaigns[1]}."
        yield Finding(project or "default", run, "cell_of_another", message)
    for cell, project, *campaign_and_sha in queries.rows(COMMITS):
        campaign, sha = campaign_and_sha
        message = f"Cell {cell} of {campaign} has another date than its commit {sha}."
        yield Finding(project or "default", None, "commit_differs", message)


# With the same formulas as `cells.services.summaries`; sums in another order differ a little.
SUMMARIES = """
WITH own AS (
  SELECT cell.id FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = campaign_id
   WHERE campaign.slug <> ALL(%(published)s)
), again AS (
  SELECT cell_id, metric_id, count(*) AS n,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median,
         min(value) AS minimum, max(value) AS maximum, avg(value) AS mean,
         CASE WHEN min(value) > 0 THEN avg(log) END AS log_mean,
         CASE WHEN min(value) > 0 THEN var_samp(log) END AS log_variance
    FROM (SELECT run.cell_id, metric_id, value, ln(CASE WHEN value > 0 THEN value END) AS log
            FROM runs_run run JOIN runs_measurement measurement ON measurement.run_id = run.id
           WHERE run.state = %(finished)s) AS found
   WHERE cell_id IN (SELECT id FROM own)
   GROUP BY cell_id, metric_id
), stored AS (
  SELECT * FROM runs_cellsummary WHERE cell_id IN (SELECT id FROM own)
)
SELECT cell.id, campaign.slug, coalesce(project.slug, 'default'), metric.name,
       stored.n, stored.median, again.n, again.median
  FROM again FULL JOIN stored USING (cell_id, metric_id)
  JOIN runs_cell cell ON cell.id = cell_id
  JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
  JOIN runs_metric metric ON metric.id = metric_id
  LEFT JOIN runs_project project ON project.id = campaign.project_id
 WHERE stored.n IS DISTINCT FROM again.n OR {differing}
 ORDER BY cell.id, metric.name
"""
DIFFERING = """(stored.{0} IS NULL) <> (again.{0} IS NULL)
    OR abs(stored.{0} - again.{0}) > 1e-9 * greatest(abs(stored.{0}), abs(again.{0}), {1})"""
# A column, and the size below which its rounding counts as none: logarithms are of the order of 10.
COLUMNS = {
    "median": 0,
    "minimum": 0,
    "maximum": 0,
    "mean": 0,
    "log_mean": 10,
    "log_variance": 1e-3,
}


def _summaries(
    published: Collection[str], named_findings: Sequence[Finding]
) -> Iterator[Finding]:
    """Summaries that are not those of the figures, but for runs named before. One statement."""
    runs = {finding.run for finding in named_findings if finding.run is not None}
    cells = set(
        Run.objects.filter(pk__in=runs).order_by().values_list("cell_id", flat=True)
    )
    with_missing = {
        finding.project for finding in named_findings if finding.code == "run_missing"
    }
    differing = " OR ".join(DIFFERING.format(*column) for column in COLUMNS.items())
    values: dict[str, Any] = {
        "published": list(published),
        "finished": Run.State.FINISHED.value,
    }
    rows = queries.rows(SUMMARIES.format(differing=differing), values)
    for row in map(_SummaryRow._make, rows):
        has_more = (row.n or 0) > (row.own_n or 0)
        if row.cell in cells or (row.project in with_missing and has_more):
            continue
        stored = f"{row.median} of {row.n} runs"
        if row.n is None and row.median is None:
            stored = "missing"
        own_text = (
            "there are none"
            if row.own_n is None
            else f"{row.own_median} of {row.own_n}"
        )
        message = (
            f"The summary of {row.metric} in cell {row.cell} of {row.campaign} is {stored};"
            f" by its figures: {own_text}."
        )
        yield Finding(row.project, None, "summary_changed", message)


class _SummaryRow(NamedTuple):
    """A row of `SUMMARIES`: what is stored, and what the figures give."""

    cell: int
    campaign: str
    project: str
    metric: str
    n: int | None
    median: float | None
    own_n: int | None
    own_median: float | None


def heads_missing(lines: Sequence[str], keys: Collection[bytes]) -> Iterator[Finding]:
    """Published heads (`manage.py seal_head`) that the chains here do not have."""
    for line in lines:
        match line.split():
            case ["benchlab-head", chain, number, digest, at, key, signature] if (
                number.isdigit()
            ):
                signed = f"{chain} {number} {digest} {at}".encode()
                proof = {"signature": _hex(signature), "key": _hex(key), "domain": HEAD}
                if _hex(key) not in keys or not is_signed(digest=signed, **proof):
                    yield Finding(
                        chain, None, "head_unsigned", f"Not signed by our key: {line}"
                    )
                elif _hash_at(chain, int(number)) != digest:
                    message = f"Entry {number} was {digest} at {at}, and is gone or another one."
                    yield Finding(chain, None, "head_missing", message)
            case _:
                yield Finding(
                    "", None, "head_unsigned", f"Not a line of seal_head: {line[:200]}"
                )


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _hash_at(chain: str, number: int) -> str:
    links: QuerySet[Any] = Seal.objects.filter(project__slug=chain, number=number)
    if chain == AUDIT:
        links = AuditLink.objects.filter(number=number)
    hashes = links.values_list("hash", flat=True).first()
    return bytes(hashes).hex() if hashes else ""
