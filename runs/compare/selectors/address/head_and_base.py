"""The two sides of a verdict: cells that a request names by campaign, revision or run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.db.models import BigIntegerField, QuerySet
from django.utils.translation import gettext as _

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference.job_scatter import BASELINE, ENOUGH_JOBS
from runs.cells.selectors import revisions, series_cells
from runs.cells.selectors.revisions import UnknownRevision
from runs.cells.selectors.series_cells import BadSeriesKey
from runs.models import Campaign, Cell, Revision, Run, Token
from runs.shared.whole_numbers import whole_number

MOST_CELLS = 500


class BadSide(ValueError):
    """A side that cannot be found: the parameter that names it, a stable code, and a message."""

    def __init__(self, parameter: str, code: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.code = code
        self.message = message


class NoBaseline(Exception):
    """There is nothing to compare the head with yet: it is the baseline."""

    def __init__(self, head: "Side") -> None:
        super().__init__()
        self.head = head


@dataclass(frozen=True)
class Side:
    """One side as it was named, with its cells. `run` is set if it was named by a run.

    `find` gives the cells, and may raise BadSide. `levels` are those of each cell, the version
    among them and the revision not. `points` are the revisions of a history, where the side is one;
    `is_by_time` says that a base was found by its time, as no parents lead to it.
    """

    text: str
    campaign: Campaign
    find: Callable[[], tuple[Cell, ...]]
    revision: Revision | None = None
    run: int | None = None
    fixed: frozenset[str] = frozenset()
    points: int = 0
    is_by_time: bool = False

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Its cells, found when they are first asked for."""
        return self.find()

    @cached_property
    def levels(self) -> dict[int, dict[str, Any]]:
        """The levels of its cells by their key."""
        levels = {cell.pk: series_cells.levels_of(cell) for cell in self.cells}
        return {
            key: {
                name: level
                for name, level in cell_levels.items()
                if name != series_cells.REVISION
            }
            for key, cell_levels in levels.items()
        }

    @property
    def label(self) -> str:
        """Its name for readers: the revision, the run, else the campaign."""
        if self.revision is not None:
            ref = f" ({self.revision.ref})" if self.revision.ref else ""
            return f"{self.revision.sha[:12]}{ref}"
        if self.points:
            words = {"points": self.points, "branch": self.text.partition(":")[2]}
            if self.points == 1:
                return _("the last point of %(branch)s") % words
            return _("the last %(points)d points of %(branch)s") % words
        if self.run is not None:
            return _("run %(id)d") % {"id": self.run}
        return self.text.partition(":")[2] if ":" in self.text else self.campaign.title


def campaign_of(slug: str, *, reader: Reader, parameter: str = "campaign") -> Campaign:
    """The campaign with this slug, if the reader may see it. Raises BadSide `unknown_campaign`.

    A token also names its project's campaigns as their uploads do.
    """
    visible_campaigns = projects.visible(
        Campaign.objects.select_related("scenario", "project"), to=reader
    )
    campaign = visible_campaigns.filter(slug=slug).first()
    if campaign is None and isinstance(reader, Token):
        campaign = visible_campaigns.filter(
            project=reader.project_id, uploaded_as=slug
        ).first()
    if campaign is None:
        message = _("There is no campaign %(slug)s.") % {"slug": slug}
        raise BadSide(parameter, "unknown_campaign", message)
    return campaign


def both(
    base: str, head: str, *, campaign: str, reader: Reader, is_found: bool = True
) -> tuple[Side, Side]:
    """The sides that are named; within a campaign they may be left out.

    The head is then its newest revision, and the base the revision before the head. A branch as
    base means the commit on it that the head is based on, never the head itself. Raises BadSide,
    and NoBaseline if the campaign has no other revision. At most twelve queries. Unless `is_found`,
    BadSide may also be raised where the cells of a side are asked for.
    """
    sides = _both(base, head, campaign, reader)
    if is_found:
        for side in reversed(sides):
            _found = side.cells
    return sides


def find_newest(base: str, *, campaign: Campaign, reader: Reader) -> tuple[Side, Side]:
    """The newest commit of a campaign and its base: what a CI job on its branch asks.

    Raises as both().
    """
    head = _newest(campaign)
    ref = campaign.tracked_ref or (head.revision.ref if head.revision else "")
    base_asked = base or (f"history:{ref}" if ref else "")
    return both(base_asked, head.text, campaign=campaign.slug, reader=reader)


def _both(base: str, head: str, campaign: str, reader: Reader) -> tuple[Side, Side]:
    within = campaign_of(campaign, reader=reader) if campaign else None
    head_side = _named("head", head, within, reader) if head else _newest(within)
    if not base:
        return _side_before(within, head_side), head_side
    if base.startswith("history:"):
        return _history(base, within, head_side), head_side
    names_revision = base.startswith("revision:") and base != "revision:"
    if within is not None and head_side.revision is not None and names_revision:
        return _baseline(base, within, head_side, head_side.revision), head_side
    return _named("base", base, within, reader), head_side


def _history(text: str, within: Campaign | None, head: Side) -> Side:
    """The last points of a branch before the head, the newest first."""
    name = text.partition(":")[2]
    if within is None or head.revision is None or not name:
        message = _("history:<branch> takes a campaign and a commit as head.")
        raise BadSide("base", "not_a_side", message)
    arrived = revisions.arrived(within, [head.revision])
    line = revisions.line_before(within, head.revision, name, BASELINE, arrived=arrived)
    before = line.revisions
    if not before or (len(before) < ENOUGH_JOBS and _is_in_one_job(before[0], head)):
        return _baseline(f"revision:{name}", within, head, head.revision)
    position_of = {revision.pk: number for number, revision in enumerate(before)}
    # Of the head's conditions only: those of ten commits together may be many.
    keys = {cell.series_key for cell in head.cells}
    cells = Cell.objects.filter(
        campaign=within, revision__in=position_of, series_key__in=keys
    )
    base_cells = sorted(
        _loaded("base", cells, BASELINE),
        key=lambda cell: position_of[cell.revision_id or 0],
    )
    return Side(
        text,
        within,
        lambda: tuple(base_cells),
        points=len(before),
        is_by_time=line.is_by_time,
    )


def _is_in_one_job(base: Revision, head: Side) -> bool:
    """Whether a job measured both commits: then it says by itself how they differ. One query."""
    runs = Run.objects.filter(
        cell__in=[cell.pk for cell in head.cells], labels__has_key="job"
    )
    jobs = runs.values("labels__job")
    return Run.objects.filter(
        campaign=head.campaign, cell__revision=base, labels__job__in=jobs
    ).exists()


def _baseline(text: str, within: Campaign, head: Side, revision: Revision) -> Side:
    """The side of a base that is named by a commit or branch."""
    name = text.partition(":")[2]
    other_cells = Cell.objects.filter(campaign=within, revision__isnull=False).exclude(
        revision=revision
    )
    if revisions.is_branch(within, name):
        line = revisions.line_before(within, revision, name, 1)
        if line.revisions:
            side = _revision_side(text, line.revisions[0], within, "base")
            return replace(side, is_by_time=line.is_by_time)
        raise NoBaseline(head)
    if not other_cells.exists():
        raise NoBaseline(head)
    side = _commit_side("base", text, name, within)
    if side.revision == revision:
        message = _("Base and head are the same commit: name another base.")
        raise BadSide("base", "same_commit", message)
    return side


def _named(parameter: str, text: str, within: Campaign | None, reader: Reader) -> Side:
    kind, _colon, name = text.partition(":")
    if kind == "campaign" and name:
        return _campaign_side(parameter, text, name, reader)
    if kind == "run" and name.isascii() and name.isdigit():
        return _run_side(parameter, text, whole_number(name) or 0, reader)
    if kind != "revision" or not name:
        message = _(
            "“%(text)s” is not campaign:<slug>, revision:<sha or branch>, history:<branch> or "
            "run:<id>."
        )
        raise BadSide(parameter, "not_a_side", message % {"text": text})
    if within is None:
        message = _("Revisions belong to a campaign: give campaign=<slug> as well.")
        raise BadSide(parameter, "campaign_missing", message)
    return _commit_side(parameter, text, name, within)


def _campaign_side(parameter: str, text: str, name: str, reader: Reader) -> Side:
    try:
        key = series_cells.parse(name)
    except BadSeriesKey as error:
        raise BadSide(parameter, "not_a_side", str(error)) from error
    campaign = campaign_of(key.slug, reader=reader, parameter=parameter)
    return Side(
        text,
        campaign,
        lambda: _loaded(
            parameter, series_cells.wanted([key], {key.slug: campaign}, "")
        ),
        fixed=frozenset(name for name, _level in key.levels),
    )


def _commit_side(parameter: str, text: str, name: str, within: Campaign) -> Side:
    try:
        revision = revisions.named(within, name)
    except UnknownRevision as error:
        code = str(error)
        messages = {
            "unknown_revision": _(
                "%(campaign)s has no revision, branch or tag %(name)s."
            ),
            "ambiguous_revision": _(
                "Several revisions of %(campaign)s begin with %(name)s."
            ),
        }
        words = {"campaign": within.slug, "name": name}
        raise BadSide(parameter, code, messages[code] % words) from error
    return _revision_side(text, revision, within, parameter)


def _revision_side(
    text: str, revision: Revision, within: Campaign, parameter: str
) -> Side:
    cells = _loaded(parameter, Cell.objects.filter(campaign=within, revision=revision))
    return Side(text, within, lambda: cells, revision=revision)


def _run_side(parameter: str, text: str, key: int, reader: Reader) -> Side:
    """The cell of the run: all repeats made under its conditions."""
    visible_runs = projects.visible(Run.objects.all(), to=reader).filter(
        pk=min(key, BigIntegerField.MAX_BIGINT)
    )
    run = visible_runs.select_related(
        "campaign__scenario", "campaign__project", "cell__revision"
    ).first()
    if run is None:
        message = _("There is no run %(id)s.") % {"id": key}
        raise BadSide(parameter, "unknown_run", message)
    cells = (run.cell,)
    return Side(
        text, run.campaign, lambda: cells, revision=run.cell.revision, run=run.pk
    )


def _newest(within: Campaign | None) -> Side:
    revision = revisions.newest(within) if within else None
    if within is None or revision is None:
        message = _(
            "Name a side; it can be left out for a campaign that has revisions."
        )
        raise BadSide("head", "required", message)
    return _revision_side(f"revision:{revision.sha}", revision, within, "head")


def _side_before(within: Campaign | None, head: Side) -> Side:
    within = within or (head.campaign if head.revision else None)
    revision = (
        revisions.previous(within, head.revision) if within and head.revision else None
    )
    if within is None or revision is None:
        message = _("Name the base: there is no revision before the head.")
        raise BadSide("base", "required", message)
    return _revision_side(f"revision:{revision.sha}", revision, within, "base")


def _loaded(parameter: str, cells: QuerySet[Cell], points: int = 1) -> tuple[Cell, ...]:
    most = MOST_CELLS * points
    cells_found = tuple(
        cells.select_related("revision").order_by("ordinal", "pk")[: most + 1]
    )
    if len(cells_found) > most:
        message = _("These are more than %(most)d conditions: choose some by level=.")
        raise BadSide(parameter, "too_many", message % {"most": most})
    return cells_found
