"""The versions page: from 9.2 to the newest, by every pair that was measured on one machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import get_template, render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access import addresses
from runs.access.selectors import permissions
from runs.archive.selectors import version_line as lines
from runs.archive.selectors import version_line_rules, version_pairs
from runs.archive.selectors.version_line import Line, Undocumented, Used
from runs.archive.selectors.version_pairs import Pair
from runs.cells.selectors import provenance, versions
from runs.charts import version_line as drawing
from runs.charts.figure import Figure
from runs.models.campaigns import Origin
from runs.models.servers import TopologyKind
from runs.shared import caching

# Addresses to which the page leads those who may measure.
OFFERED = ("campaign-new", "observation-new")
THEMES = (lines.READ, lines.UPDATE)
FACETS = {
    "machine": gettext_lazy("by machine"),
    "os": gettext_lazy("by operating system"),
    "arrangement": gettext_lazy("by arrangement"),
}
LONGEST = 9  # digits of a number of clients
# Of each step from a version to the next on the first page; the page of versions has the others.
NEWEST_PAIRS = 3


@dataclass(frozen=True)
class Step:
    """Two neighbouring versions and what measured them; without anything, many are one step."""

    majors: tuple[str, ...]
    pairs: list[Pair]
    pictures: list[Undocumented]

    @property
    def years(self) -> str:
        """When its versions after the first came out: 2014–2016."""
        first, last = lines.RELEASED[self.majors[1]], lines.RELEASED[self.majors[-1]]
        return f"{first}–{last}" if first < last else f"{last}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it."""
        return not self.pairs and not self.pictures


@addresses.page("versions")
def version_page(request: HttpRequest) -> HttpResponse:
    """The line, and a row for each step with the campaigns behind it."""
    given = request.GET
    theme = _one_of(given.get("theme", ""), THEMES, lines.READ)
    used = lines.used(theme, to=request.user)
    base = _one_of(given.get("base", ""), lines.MAJORS, "")
    version = caching.versions(used.campaigns).results
    clients, by = _number(given.get("clients", "")), _one_of(given.get("by", ""), lines.FACETS, "")
    # What anybody may write into an address is kept only where it is a choice.
    choices = caching.answer(("clients", used), version, lambda: lines.counts(used))
    if clients not in choices:
        clients = None

    def make() -> SafeString:
        found = context(used, clients=clients, base=base, by=by)
        pairs = list(rows("archive/versions/index.html#pair", found["steps"]))
        found |= {"told": pairs, "user": request.user}
        return render_to_string("archive/versions/index.html#line", found)

    offers = [permissions.is_offered(request.user, each) for each in OFFERED]
    shown = caching.html(("versions", used, clients, base, by, *offers), version, make)
    return render(request, "archive/versions/index.html", {"shown": shown})


def context(
    used: Used, *, clients: int | None = None, base: str = "", by: str = ""
) -> dict[str, Any]:
    """What the page and the first page's line show of these campaigns, the same for all readers."""
    line = lines.read(used, clients=clients)
    base = base or _base(line.pairs)
    steps = _steps(line.pairs, line.undocumented)
    parts = lines.facets(line, by) if by else []
    return {
        "themes": [(lines.READ, _("Reading")), (lines.UPDATE, _("Updating"))],
        "theme": used.theme,
        "counts": line.counts,
        "clients": line.clients,
        "bases": lines.MAJORS,
        "base": base,
        "figure": figure(line, base),
        "facets": [(_facet(by, name), figure(part, base)) for name, part in parts],
        "by": by,
        "choices": [(each, FACETS[each]) for each in lines.FACETS],
        "steps": steps,
        "sentences": version_pairs.sentences(line.pairs),
        "pairs": line.pairs,
        "leaves_out": line.leaves_out,
        "most_executed": version_line_rules.MOST_EXECUTED,
        "least_repeats": version_line_rules.LEAST_REPEATS,
        "least_seconds": version_line_rules.LEAST_SECONDS,
    }


def _facet(by: str, name: str) -> str:
    if by == "arrangement" and name:
        return str(TopologyKind(name).label)
    return name or _("not known")


def rows(template: str, steps: Sequence[Step]) -> Iterator[tuple[Step, list[SafeString]]]:
    """Each step with a row of this template for each of its pairs."""
    row = get_template(template)
    for step in steps:
        shown = [{"pair": each, "year": lines.RELEASED[each.ends[1]]} for each in step.pairs]
        yield step, [SafeString(row.render(each)) for each in shown]


def _one_of(given: str, known: Sequence[str], otherwise: str) -> str:
    return given if given in known else otherwise


def _number(given: str) -> int | None:
    return int(given) if given.isdecimal() and len(given) <= LONGEST else None


def _base(pairs: Sequence[Pair]) -> str:
    """The oldest version about which anything is known."""
    known = {end for pair in pairs for end in pair.ends}
    return next((major for major in lines.MAJORS if major in known), lines.MAJORS[0])


def figure(line: Line, base: str) -> Figure | None:
    """The chart of a line; None where it has no pair."""
    drawn = [
        _drawn(line, base, origin, machine, dash)
        for origin, dash in ((Origin.PUBLISHED, "solid"), (Origin.EXECUTED, "dot"))
        for machine in line.machines(origin)
    ]
    if not drawn:
        return None
    return drawing.version_line(
        drawn,
        lines.RELEASED,
        x_title=_("PostgreSQL version, year of its release"),
        y_title=_("Throughput, base = 1"),
        narrow_x_title=_("PostgreSQL version"),
        words=drawing.Words(
            _("index"), _("interval (95 %)"), _("base"), _("runs that are not valid")
        ),
    )


def _drawn(line: Line, base: str, origin: Origin, machine: str, dash: str) -> drawing.Origin:
    """Of each version the newest campaign; in doubt where a run of its step is not valid."""
    of_machine = [each for each in line.pairs if each.base.machine == machine]
    pairs = [each for each in of_machine if each.campaign.origin == origin]
    newest = {version: pair.campaign.slug for pair in pairs for version in pair.ends}
    if origin == Origin.PUBLISHED:
        notes = {name: provenance.hover(found) for name, found in line.records.items()}
    else:  # what of the newest step to each version may be its build's doing
        notes = {pair.ends[1]: pair.caution for pair in of_machine if pair.caution}
    return drawing.Origin(
        f"{origin.label} · {machine}" if machine else str(origin.label),
        line.trend(origin, base, machine=machine).chains,
        {version: reverse("campaign-detail", args=[slug]) for version, slug in newest.items()},
        dash,
        doubtful=frozenset(pair.ends[1] for pair in pairs if pair.comparison.judged.has_doubts),
        minors=_minors(line, origin, machine),
        notes=notes,
    )


def _minors(line: Line, origin: Origin, machine: str) -> tuple[drawing.Minor, ...]:
    return tuple(
        drawing.Minor(
            pair.head.version,
            pair.ends[1],
            pair.comparison.ratio,
            reverse("campaign-detail", args=[pair.campaign.slug]),
        )
        for pair in line.minors
        if pair.campaign.origin == origin and pair.base.machine == machine and pair.comparison.ratio
    )


def _steps(pairs: Sequence[Pair], pictures: Sequence[Undocumented]) -> list[Step]:
    """Every step from one major version to the next; longer jumps are listed at their newer end."""
    found: list[Step] = []
    for step in _each_step(pairs, pictures):
        if found and found[-1].is_empty and step.is_empty:
            found[-1] = replace(step, majors=(*found[-1].majors, step.majors[-1]))
        else:
            found.append(step)
    return found


def _each_step(pairs: Sequence[Pair], pictures: Sequence[Undocumented]) -> list[Step]:
    return [
        Step(
            (base, head),
            [pair for pair in pairs if pair.ends[1] == head],
            [
                each
                for each in pictures
                if head in {versions.major(version) for version in each.versions[1:]}
            ],
        )
        for base, head in pairwise(lines.MAJORS)
    ]
