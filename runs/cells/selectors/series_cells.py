"""The keys of compared series, which cells they name, and which factors vary among them."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from runs import foreign_json
from runs.cells.selectors import revisions
from runs.models import Campaign, Cell
from runs.models.campaigns import Origin

SLUG = re.compile(r"[-\w]+")


class BadSeriesKey(ValueError):
    """A text that is not a key of a series; the message says which part is wrong."""


@dataclass(frozen=True)
class SeriesKey:
    """A campaign by its slug, and the levels that are fixed in it, each as text.

    A factor that the key leaves open is the x axis, or gives a series for each of its levels.
    """

    slug: str
    levels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        fixed = [f"{_encoded(name)}={_encoded(level)}" for name, level in self.levels]
        return "~".join([self.slug, *fixed])

    def matches(self, levels: Mapping[str, Any]) -> bool:
        """Whether a cell with these levels belongs to the series."""
        return all(
            level_text(levels.get(name, "")) == text
            or (name == "revision" and str(levels.get(name, "")).startswith(text))
            for name, text in self.levels
        )

    def fixed(self, levels: Iterable[tuple[str, str]]) -> "SeriesKey":
        """The same series with more levels fixed."""
        return SeriesKey(self.slug, (*self.levels, *levels))

    def to_json(self) -> dict[str, Any]:
        """Its parts, for what is kept."""
        return {"slug": self.slug, "levels": self.levels}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "SeriesKey":
        """The key of these parts."""
        return cls(
            members["slug"], tuple((name, text) for name, text in members["levels"])
        )


def parse(text: str) -> SeriesKey:
    """Read a key. Raises BadSeriesKey, which names the unreadable part."""
    if "\0" in unquote(text):
        raise BadSeriesKey(
            _("A series has a null character in it, which no level can have.")
        )
    slug, *level_texts = text.split("~")
    if not SLUG.fullmatch(slug):
        raise BadSeriesKey(
            _("“%(slug)s” in “%(text)s” is not the short name of a campaign.")
            % {"slug": slug, "text": text}
        )
    levels: dict[str, str] = {}
    for level_text in level_texts:
        name, equals, level = level_text.partition("=")
        name = unquote(name)
        if not name or not equals:
            raise BadSeriesKey(
                _(
                    "“%(part)s” in “%(text)s” must be a factor and its level, as in version=16."
                )
                % {"part": level_text, "text": text}
            )
        if name in levels:
            raise BadSeriesKey(
                _("“%(text)s” fixes the factor %(name)s twice.")
                % {"name": name, "text": text}
            )
        levels[name] = unquote(level)
    return SeriesKey(slug, tuple(levels.items()))


def level_text(level: Any) -> str:
    """A level as a key has it: "16", "0.5", "true"; text as it is."""
    if type(level) is int:  # for most of them: json takes a hundred times as long
        return str(level)
    return level if isinstance(level, str) else json.dumps(level, sort_keys=True)


def have_levels(
    levels: Mapping[str, Any], wanted_levels: Iterable[tuple[str, str]]
) -> bool:
    """Whether a cell with these levels has those that are wanted, each as text."""
    return all(level_text(levels.get(name, "")) == text for name, text in wanted_levels)


def level_forms(text: str) -> list[Any]:
    """The stored levels with this text: "9.3" may be a text or a number."""
    try:
        typed = foreign_json.loads(text)
    except ValueError:
        return [text]
    # Stored JSON has no NaN and no overlong numbers; the database refuses them.
    is_number = isinstance(typed, int | float) and math.isfinite(typed)
    return [text, typed] if is_number or typed is None else [text]


@lru_cache(maxsize=4096)
def _encoded(text: str) -> str:
    # quote() considers the tilde harmless; here it separates the levels.
    return quote(text, safe="").replace("~", "%7E")


VERSION, REVISION = "version", "revision"
# The factor of a campaign over several servers; its levels are their slugs.
SERVER = "server"
# The factor of a campaign with several configurations; its levels are their slugs.
CONFIGURATION = "configuration"
# The factor of an A/A campaign.
SIDE = "side"
# What is measured, as opposed to its conditions.
SUBJECTS = (VERSION, "build", "bindir", REVISION)
MADE_AT = revisions.made_at("revision")


def wanted(
    keys: Sequence[SeriesKey], campaigns: Mapping[str, Campaign], x: str
) -> QuerySet[Cell]:
    """The cells that the keys name; of uploads those of the newest revision, unless asked for."""
    condition = Q(pk__in=[])
    for key in keys:
        campaign = campaigns[key.slug]
        of_key = Q(campaign=campaign)
        for name, text in key.levels:
            of_key &= _has_level(name, text)
        if (
            campaign.origin == Origin.UPLOADED
            and x != REVISION
            and REVISION not in dict(key.levels)
        ):
            of_key &= _newest_cells(campaign)
        condition |= of_key
    return Cell.objects.filter(condition)


def current(campaign: Campaign) -> QuerySet[Cell]:
    """The cells that a campaign's own tables and charts show, in their order.

    All of them, but for each series of uploads only the newest revision: the others have the same
    levels, and are the campaign's history.
    """
    cells = campaign.cells.order_by("ordinal", "pk")
    if campaign.origin != Origin.UPLOADED:
        return cells
    return cells.filter(_newest_cells(campaign))


def _has_level(name: str, text: str) -> Q:
    if name == REVISION:
        return Q(revision__sha__startswith=text)
    condition = Q(pk__in=[])
    for level in level_forms(text):
        condition |= Q(levels__contains={name: level})
    if not text:
        condition |= ~Q(levels__has_key=name)
    return condition | Q(version=text) if name == VERSION else condition


def _newest_cells(campaign: Campaign) -> Q:
    """Of each series the newest revision, else the cells without one; a history does the same."""
    revised = Cell.objects.filter(campaign=campaign, revision__isnull=False).order_by()
    bare = Q(revision=None) & ~Q(series_key__in=revised.values("series_key"))
    in_order = revised.order_by("series_key", MADE_AT.desc(), "-revision_id")
    return bare | Q(pk__in=in_order.distinct("series_key").values("pk"))


def levels_of(cell: Cell) -> dict[str, Any]:
    """A cell's levels, including its version and its revision."""
    levels = {VERSION: cell.version} if cell.version else {}
    levels |= cell.levels
    if cell.revision is not None:
        levels[REVISION] = str(cell.revision)
    return levels


def open_factors(cells: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The factors that vary among cells with these levels, with the number of their levels."""
    level_rows = list(cells)
    names = dict.fromkeys(name for levels in level_rows for name in levels)
    counts = {
        name: len({level_text(cell_levels.get(name, "")) for cell_levels in level_rows})
        for name in names
    }
    return {name: count for name, count in counts.items() if count > 1}


def best_axis(factors: Mapping[str, int]) -> str | None:
    """The default factor for the x axis: clients, else the one with the most levels.

    Not what is measured: versions and builds are compared, and so are revisions. Servers are also
    compared, unless nothing else varies.
    """
    offered = [name for name in factors if name not in SUBJECTS]
    return max(offered, key=lambda name: fitness(name, factors[name]), default=None)


def fitness(name: str, levels: int) -> tuple[bool, bool, bool, bool, int, str]:
    """How well a factor with this many levels serves as an x axis: higher is better.

    Clients do best where their number varies, and servers where nothing else does.
    """
    varies, is_clients, is_server = levels > 1, name == "clients", name == SERVER
    return (
        varies and is_clients,
        varies and not is_server,
        is_clients,
        not is_server,
        levels,
        name,
    )
