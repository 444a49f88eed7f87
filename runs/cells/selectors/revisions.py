"""Revisions of a campaign's history, in the order in which they were made."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.access.selectors.projects import DEFAULT
from runs.analysis.lineage import Commit, Spellings, left_behind
from runs.models import Campaign, Cell, Project, Revision, RevisionRef, Run


def made_at(path: str = "") -> Coalesce:
    """When the revision at the path was committed; else when the first run of it began.

    `created_at` stands for a revision without any run only. The runs are looked for where a commit
    has no date.
    """
    revision_key = OuterRef(f"{path}_id" if path else "pk")
    runs = (
        Run.objects.filter(cell__revision=revision_key)
        .order_by()
        .values("cell__revision")
    )
    first_start = Subquery(runs.annotate(at=Min("started_at")).values("at"))
    name = f"{path}__" if path else ""
    return Coalesce(f"{name}committed_at", first_start, f"{name}created_at")


def moment_of(revision: Revision) -> datetime:
    """The same of one revision. One query, none where the commit has a date."""
    if revision.committed_at is not None:
        return revision.committed_at
    revisions_with_time = Revision.objects.annotate(at=made_at()).values_list(
        "at", flat=True
    )
    moment: datetime = revisions_with_time.get(pk=revision.pk)
    return moment


MADE_AT = made_at()
SHORTEST_SHA = 4
# Of SHA-1 and SHA-256.
WHOLE_SHA = (40, 64)
MOST_ANCESTORS = 1000
# So many commits that a branch has left behind are looked past.
MOST_LEFT = 20


class UnknownRevision(ValueError):
    """The campaign has no such revision, or several start like this; the message is its code."""


def measured(campaign: Campaign) -> QuerySet[Revision]:
    """The revisions that a campaign has cells for, the newest first, as `made_at` says."""
    cells = Cell.objects.filter(campaign=campaign, revision=OuterRef("pk"))
    return (
        Revision.objects.filter(Exists(cells))
        .annotate(made_at=MADE_AT)
        .order_by(MADE_AT.desc(), "-pk")
    )


def _project_commits(campaign: Campaign) -> Q:
    """Commits of the campaign's project, which is the default one where it names none."""
    if campaign.project_id is not None:
        return Q(project=campaign.project_id)
    return Q(project=Subquery(Project.objects.filter(slug=DEFAULT).values("pk")[:1]))


def _newest(
    rows: QuerySet[Revision],
    campaign: Campaign,
    number: int,
    *,
    until: datetime | None = None,
) -> list[Revision]:
    """So many of these of a campaign's measured() ones, the newest first; none after `until`.

    An index has commits in the order of their dates, so that a long history costs what a short one
    does. All of those without a date are read.
    """
    own_revisions = rows.filter(_project_commits(campaign)).order_by()
    dated, undated = (
        own_revisions.filter(committed_at__isnull=False),
        own_revisions.filter(committed_at=None),
    )
    if until is not None:
        dated = dated.filter(committed_at__lte=until)
        undated = undated.filter(made_at__lte=until)  # type: ignore[misc]  # annotated
    ordered = (
        dated.order_by("-committed_at", "-pk")[:number],
        undated.order_by(MADE_AT.desc(), "-pk")[:number],
    )
    both = ordered[0].union(ordered[1], all=True)
    newest = both.order_by("-made_at", "-id")  # type: ignore[misc]
    return list(newest[:number])


def _first(rows: QuerySet[Revision], campaign: Campaign) -> Revision | None:
    return next(iter(_newest(rows, campaign, 1)), None)


def tracked(campaign: Campaign) -> QuerySet[Revision]:
    """The revisions of the campaign's history branch; all, if it names none."""
    revisions = measured(campaign)
    return (
        revisions.filter(match_ref(campaign.tracked_ref))
        if campaign.tracked_ref
        else revisions
    )


def match_ref(ref: str, arrived: int | None = None) -> Q:
    """The condition that a revision is on a branch or tag, one of those it was uploaded with.

    If a run is given, those that were known when it was stored.
    """
    further_refs = RevisionRef.objects.filter(revision=OuterRef("pk"), ref=ref)
    if arrived is not None:
        arrival = Run.objects.filter(pk=arrived).values("queued_at")
        further_refs = further_refs.filter(
            Q(known_at=None) | Q(known_at__lte=Subquery(arrival))
        )
    return Q(ref=ref) | Q(Exists(further_refs))


def baseline(campaign: Campaign, head: Revision, ref: str) -> Revision | None:
    """What a commit is compared with on a branch, the nearest of line_before(): never itself."""
    return next(iter(last(campaign, head, ref, 1)), None)


@dataclass(frozen=True)
class Line:
    """Measured commits before a head, the newest first.

    They are its ancestors, by the commits' own `parents`. Where these lead to no measured commit,
    `is_by_time`: the branch's commits that are not newer, and are not known to be no ancestors.
    """

    revisions: tuple[Revision, ...]
    is_by_time: bool = False


def last(
    campaign: Campaign,
    head: Revision,
    ref: str,
    number: int,
    *,
    arrived: int | None = None,
) -> list[Revision]:
    """The revisions of line_before()."""
    return list(line_before(campaign, head, ref, number, arrived=arrived).revisions)


def line_before(
    campaign: Campaign,
    head: Revision,
    ref: str,
    number: int,
    *,
    arrived: int | None = None,
) -> Line:
    """The last measured commits that a commit is based on; never the commit itself.

    They are those of the branch, of all branches where none is named, without those that it has
    left behind; if a run is given, those of which that one or an earlier one was stored. Where the
    line of parents ends at a commit of which none is known, those before it are told by their time:
    before the merge base, where that is known.
    Four queries at most.
    """
    on_branch = measured(campaign).exclude(pk=head.pk)
    if ref:
        on_branch = on_branch.filter(match_ref(ref, arrived))
    if arrived is not None:
        stored = Run.objects.filter(campaign=campaign, cell__revision=OuterRef("pk"))
        on_branch = on_branch.filter(Exists(stored.filter(pk__lte=arrived)))
    parents, spellings = _parents(head)
    parents[head.sha] = spellings.known_shas(_head_parents(head))
    lineage = _ancestors(head, parents)
    measured_there = (
        {revision.sha: revision for revision in on_branch.filter(sha__in=lineage)}
        if lineage
        else {}
    )
    measured_revisions = [
        measured_there[sha] for sha in lineage if sha in measured_there
    ][:number]
    if len(measured_revisions) == number:
        return Line(tuple(measured_revisions))
    oldest = measured_revisions[-1] if measured_revisions else head
    until = head.merge_base_at if not measured_revisions else None
    rest = _earlier_revisions(
        on_branch, campaign, oldest, ref, number + len(measured_revisions), until=until
    )
    ends = [sha for sha in lineage if not parents.get(sha)]
    if head.merge_base:
        # Nothing that follows it on a branch is an ancestor.
        ends = [spellings.known_sha(head.merge_base)]
    known_keys = {revision.pk for revision in measured_revisions}
    further = [
        revision
        for revision in rest
        if revision.pk not in known_keys and not _is_after(revision, ends, parents)
    ]
    is_by_time = not measured_revisions and bool(further) and until is None
    return Line((*measured_revisions, *further)[:number], is_by_time=is_by_time)


def _is_after(
    revision: Revision, ends: Sequence[str], parents: Mapping[str, list[str]]
) -> bool:
    """Whether a commit is based on all commits at which the line of a head ends: no ancestor."""
    return bool(ends) and set(ends) <= set(_ancestors(revision, parents))


def _earlier_revisions(
    rows: QuerySet[Revision],
    campaign: Campaign,
    revision: Revision,
    ref: str,
    number: int,
    *,
    until: datetime | None = None,
) -> list[Revision]:
    """Those of a branch by their time, without those that it has left behind.

    They are not newer than the revision, or than `until`, where that is known.
    """
    moment = until or moment_of(revision)
    revisions_found = _newest(rows, campaign, number + MOST_LEFT, until=moment)
    is_on_branch = revision.ref == ref or not ref
    line = [*reversed(revisions_found), *([revision] if is_on_branch else [])]
    left_shas = left_behind(
        Commit(commit.sha, ref or commit.ref, commit.parents) for commit in line
    )
    return [commit for commit in revisions_found if commit.sha not in left_shas][
        :number
    ]


def left(campaign: Campaign, number: int) -> frozenset[str]:
    """Those of the newest commits that the history's branch has left behind. One query."""
    ref = campaign.tracked_ref
    newest_ones = tracked(campaign).values_list("sha", "ref", "parents")[:number]
    commits = [
        Commit(sha, ref or own_ref, parents)
        for sha, own_ref, parents in reversed(newest_ones)
    ]
    return left_behind(commits)


def following(campaign: Campaign, revision: Revision, number: int) -> list[Revision]:
    """The next revisions of the history after a commit, the oldest first. One query."""
    others = tracked(campaign).exclude(pk=revision.pk)
    later = others.filter(made_at__gte=moment_of(revision))  # type: ignore[misc]  # annotated
    return list(later.reverse()[:number])


def arrived(campaign: Campaign, revisions: Iterable[Revision]) -> int:
    """The last run of these commits: what was stored after it is later than they are. One query."""
    runs = Run.objects.filter(campaign=campaign, cell__revision__in=list(revisions))
    return int(runs.aggregate(last=Max("pk"))["last"] or 0)


def _parents(head: Revision) -> tuple[dict[str, list[str]], Spellings]:
    """What the project's newest commits are based on, and how these are written.

    One query: what is older is no baseline.
    """
    newest_ones = Revision.objects.filter(project=head.project_id).order_by("-pk")
    rows = list(
        newest_ones.values_list("sha", "parents", "merge_base")[:MOST_ANCESTORS]
    )
    spellings = Spellings(sha for sha, _parents_given, _merge_base in rows)
    parents = {
        sha: spellings.known_shas(_join_parents(merge_base, parents_given))
        for sha, parents_given, merge_base in rows
    }
    return parents, spellings


def _head_parents(head: Revision) -> list[str]:
    return _join_parents(head.merge_base, head.parents)


def _join_parents(merge_base: str, parents: Sequence[str]) -> list[str]:
    """The commits that one is based on: the merge base stands for those between that are unknown.

    A commit that its parents lead to as well only gets a further way there.
    """
    return [
        *parents,
        *([merge_base] if merge_base and merge_base not in parents else []),
    ]


def _ancestors(head: Revision, parents: Mapping[str, list[str]]) -> list[str]:
    """The known ancestors of a commit: each before its own, and the nearest first."""
    ancestors_found: dict[str, None] = {}
    generation = list(parents.get(head.sha, head.parents))
    while generation and len(ancestors_found) < MOST_ANCESTORS:
        fresh = [
            sha for sha in generation if sha not in ancestors_found and sha != head.sha
        ]
        ancestors_found.update(dict.fromkeys(fresh))
        generation = [parent for sha in fresh for parent in parents.get(sha, ())]
    return _children_first(list(ancestors_found), parents)


def _children_first(shas: Sequence[str], parents: Mapping[str, list[str]]) -> list[str]:
    """By the longest way from the head: a merge has what it merged after all that followed that."""
    waiting = Counter(
        parent for sha in shas for parent in set(parents.get(sha, ())) if parent != sha
    )
    distance = dict.fromkeys(shas, 0)
    ready = [sha for sha in shas if not waiting[sha]]
    while ready:
        sha = ready.pop()
        for parent in set(parents.get(sha, ())) - {sha}:
            if parent not in distance:
                continue
            distance[parent] = max(distance[parent], distance[sha] + 1)
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return sorted(shas, key=distance.__getitem__)


def newest(campaign: Campaign) -> Revision | None:
    """The newest revision of the history."""
    return _first(tracked(campaign), campaign)


def previous(campaign: Campaign, revision: Revision) -> Revision | None:
    """The one in the history before a revision, which need not be in the history itself."""
    return next(iter(last(campaign, revision, campaign.tracked_ref, 1)), None)


# A whole commit may be known by fewer digits; in a project hardly ever by several numbers of them.
MOST_SPELLINGS = 4


def spellings(sha: str) -> list[str]:
    """By which digits a commit may be stored: by seven of them or more."""
    return [sha[:end] for end in range(7, len(sha) + 1)]


def _begins_with(campaign: Campaign, sha: str) -> Q:
    """Digits sort before letters in every collation, and g after all that a sha has."""
    of_project = _project_commits(campaign)
    if len(sha) not in WHOLE_SHA:
        return of_project & Q(sha__startswith=sha, sha__gte=sha, sha__lt=f"{sha}g")
    spelled_revisions = Revision.objects.filter(
        of_project, sha__in=spellings(sha)
    ).order_by("-sha")
    # Without a limit PostgreSQL expects one of each, and reads all cells of the campaign.
    return Q(pk__in=spelled_revisions.values("pk")[:MOST_SPELLINGS])


def is_branch(campaign: Campaign, name: str) -> bool:
    """Whether a measured commit is on this branch or tag. Two queries at most."""
    # To find out that a name is no branch, all commits are read: a whole sha is looked up before.
    of_sha = measured(campaign).filter(_begins_with(campaign, name.lower()))
    if len(name) in WHOLE_SHA and of_sha.exists():
        return False
    return _first(measured(campaign).filter(match_ref(name)), campaign) is not None


def named(campaign: Campaign, text: str) -> Revision:
    """The revision with that sha or prefix, else the newest of that branch or tag.

    Raises UnknownRevision `unknown_revision` or `ambiguous_revision`. At most two queries.
    """
    if len(text) >= SHORTEST_SHA:
        revisions_found = list(
            measured(campaign).filter(_begins_with(campaign, text.lower()))[:2]
        )
        if len(revisions_found) == 1 or (
            revisions_found and revisions_found[0].sha == text.lower()
        ):
            return revisions_found[0]
        if revisions_found:
            raise UnknownRevision("ambiguous_revision")
    of_ref = _first(measured(campaign).filter(match_ref(text)), campaign)
    if of_ref is None:
        raise UnknownRevision("unknown_revision")
    return of_ref
