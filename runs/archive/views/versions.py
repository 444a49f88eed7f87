"""The versions page: from 9.2 to the newest, by every pair that was measured on one machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import get_template, render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access import addresses
from runs.access.selectors import permissions
from runs.archive.selectors import version_answers, version_line, version_line_rules
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
THEMES = (version_line.READ, version_line.UPDATE)
FACETS = {
    "machine": gettext_lazy("by machine"),
    "os": gettext_lazy("by operating system"),
    "arrangement": gettext_lazy("by arrangement"),
}
LONGEST = 9  # digits of a number of clients


@dataclass(frozen=True)
class Step:
    """Two neighbouring versions and what measured them; without anything, many are one step."""

    majors: tuple[str, ...]
    pairs: list[Pair]
    pictures: list[Undocumented]

    @property
    def years(self) -> str:
        """When its versions after the first came out: 2014–2016."""
        first_year, last_year = (
            version_line.RELEASED[self.majors[1]],
            version_line.RELEASED[self.majors[-1]],
        )
        return f"{first_year}–{last_year}" if first_year < last_year else f"{last_year}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it."""
        return not self.pairs and not self.pictures


@addresses.page("versions")
def version_page(request: HttpRequest) -> HttpResponse:
    """The line, and a row for each step with the campaigns behind it."""
    version_question = question(request)
    also = _also(request, version_question)

    def make() -> SafeString:
        page_context = context(
            version_question.used,
            clients=version_question.clients,
            base=version_question.base,
            by=version_question.by,
            ends=version_question.ends,
        )
        page_context["chart_address"] = version_question.chart
        page_context["also"] = also
        pairs = list(rows("archive/versions/index.html#pair", page_context["steps"]))
        page_context |= {"told": pairs, "user": request.user}
        return render_to_string("archive/versions/index.html#line", page_context)

    offers = [permissions.is_offered(request.user, offer) for offer in OFFERED]
    html = caching.html(
        ("versions", version_question, *offers, *also), version_question.version, make
    )
    return render(request, "archive/versions/index.html", {"shown": html})


def _also(request: HttpRequest, asked: "Question") -> list[tuple[str, str]]:
    """The same way under the other load, and at any number of clients where one was chosen.

    Each as its sentence and the query that leads to it.
    """
    others = [] if asked.clients is None else [replace(asked, clients=None)]
    for theme in THEMES:
        if theme != asked.used.theme:
            used = version_line.used(theme, to=request.user)
            version = caching.versions(used.campaigns).results
            others.append(replace(asked, used=used, version=version, clients=None))
    return [(_sentence(other), other.query) for other in others]


def _sentence(asked: "Question") -> str:
    """What is known of the way. Kept as long as what it is made of."""
    old, new = asked.ends

    def make() -> str:
        line = version_line.read(asked.used, clients=asked.clients)
        theme = asked.used.theme
        return version_answers.answer(line, theme, base=old, head=new).sentence

    key = ("version sentence", asked.used, asked.clients, old, new)
    return caching.answer(key, asked.version, make)


@dataclass(frozen=True)
class Question:
    """What an address asks of the line, and the campaigns that may answer.

    `version` is that of what is kept about them.
    """

    used: Used
    version: str | None
    clients: int | None
    base: str
    by: str
    ends: tuple[str, str]

    @property
    def query(self) -> str:
        """What of an address asks for the way between its versions."""
        old, new = self.ends
        named = {"from": old, "to": new, "theme": self.used.theme}
        return urlencode({name: value for name, value in named.items() if value})

    @property
    def chart(self) -> str:
        """The address of the line as a picture."""
        named = {"theme": self.used.theme, "clients": self.clients, "base": self.base}
        query = {name: value for name, value in named.items() if value}
        return f"{reverse('version-chart', args=['svg'])}?{urlencode(query)}"


def question(request: HttpRequest) -> Question:
    """As the address has it; what is no choice is left out."""
    query = request.GET
    theme = _one_of(query.get("theme", ""), THEMES, version_line.READ)
    used = version_line.used(theme, to=request.user)
    clients = _number(query.get("clients", ""))
    # What anybody may write into an address is kept only where it is a choice.
    version = caching.versions(used.campaigns).results
    choices = caching.answer(
        ("clients", used), version, lambda: version_line.counts(used)
    )
    return Question(
        used,
        version,
        clients=clients if clients in choices else None,
        base=_one_of(query.get("base", ""), version_line.MAJORS, ""),
        by=_one_of(query.get("by", ""), version_line.FACETS, ""),
        ends=(
            _one_of(query.get("from", ""), version_line.MAJORS, ""),
            _one_of(query.get("to", ""), version_line.MAJORS, ""),
        ),
    )


def context(
    used: Used,
    *,
    clients: int | None = None,
    base: str = "",
    by: str = "",
    ends: Sequence[str] = ("", ""),
) -> dict[str, Any]:
    """What the page and the first page's line show of these campaigns, the same for all readers.

    `ends` are the versions that the answer is about, or empty texts.
    """
    line = version_line.read(used, clients=clients)
    old, new = ends
    answer = version_answers.answer(line, used.theme, base=old, head=new)
    base = base or _base(line.pairs)
    steps = _steps(line.pairs, line.undocumented)
    facet_lines = version_line.facets(line, by) if by else []
    return {
        "answer": answer,
        "otherwise": answer.otherwise_than(old, new),
        "known_steps": sum(step.state != "unknown" for step in answer.every_step),
        "themes": [
            (version_line.READ, _("Reading")),
            (version_line.UPDATE, _("Updating")),
        ],
        "theme": used.theme,
        "counts": line.counts,
        "clients": line.clients,
        "bases": version_line.MAJORS,
        "base": base,
        "figure": figure(line, base),
        "facets": [
            (_facet(by, name), figure(line, base)) for name, line in facet_lines
        ],
        "by": by,
        "choices": [(facet, FACETS[facet]) for facet in version_line.FACETS],
        "steps": steps,
        "sentences": version_answers.sentences(line.pairs),
        "pairs": line.pairs,
        "leaves_out": line.leaves_out,
        "most_executed": version_line_rules.MOST_EXECUTED,
        "least_repeats": version_line_rules.LEAST_REPEATS,
        "least_seconds": version_line_rules.LEAST_SECONDS,
    }


def _facet(facet_name: str, name: str) -> str:
    if facet_name == "arrangement" and name:
        return str(TopologyKind(name).label)
    return name or _("not known")


def rows(
    template: str, steps: Sequence[Step]
) -> Iterator[tuple[Step, list[SafeString]]]:
    """Each step with a row of this template for each of its pairs."""
    row = get_template(template)
    for step in steps:
        pair_contexts = [
            {"pair": pair, "year": version_line.RELEASED[pair.ends[1]]}
            for pair in step.pairs
        ]
        yield (
            step,
            [SafeString(row.render(pair_context)) for pair_context in pair_contexts],
        )


def _one_of(value_given: str, choices: Sequence[str], otherwise: str) -> str:
    return value_given if value_given in choices else otherwise


def _number(number_text: str) -> int | None:
    return (
        int(number_text)
        if number_text.isdecimal() and len(number_text) <= LONGEST
        else None
    )


def _base(pairs: Sequence[Pair]) -> str:
    """The oldest version about which anything is known."""
    known_majors = {end for pair in pairs for end in pair.ends}
    return next(
        (major for major in version_line.MAJORS if major in known_majors),
        version_line.MAJORS[0],
    )


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
        version_line.RELEASED,
        x_title=_("PostgreSQL version, year of its release"),
        y_title=_("Throughput, base = 1"),
        narrow_x_title=_("PostgreSQL version"),
        words=drawing.Words(
            _("index"), _("interval (95 %)"), _("base"), _("doubtful runs")
        ),
    )


def _drawn(
    line: Line, base: str, origin: Origin, machine: str, dash: str
) -> drawing.Origin:
    """Of each version the newest campaign; in doubt where a run of its step is not valid."""
    of_machine = [pair for pair in line.pairs if pair.base.machine == machine]
    pairs = [pair for pair in of_machine if pair.campaign.origin == origin]
    newest = {version: pair.campaign.slug for pair in pairs for version in pair.ends}
    if origin == Origin.PUBLISHED:
        notes = {
            name: provenance.hover(record_lines)
            for name, record_lines in line.records.items()
        }
    else:  # what of the newest step to each version may be its build's doing
        notes = {pair.ends[1]: pair.caution for pair in of_machine if pair.caution}
    return drawing.Origin(
        f"{origin.label} · {machine}" if machine else str(origin.label),
        line.trend(origin, base, machine=machine).chains,
        {
            version: reverse("campaign-detail", args=[slug])
            for version, slug in newest.items()
        },
        dash,
        doubtful=frozenset(
            pair.ends[1] for pair in pairs if pair.comparison.judged.has_doubts
        ),
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
        if pair.campaign.origin == origin
        and pair.base.machine == machine
        and pair.comparison.ratio
    )


def _steps(pairs: Sequence[Pair], pictures: Sequence[Undocumented]) -> list[Step]:
    """Every step from one major version to the next; longer jumps are listed at their newer end."""
    steps: list[Step] = []
    for step in _each_step(pairs, pictures):
        if steps and steps[-1].is_empty and step.is_empty:
            steps[-1] = replace(step, majors=(*steps[-1].majors, step.majors[-1]))
        else:
            steps.append(step)
    return steps


def _each_step(pairs: Sequence[Pair], pictures: Sequence[Undocumented]) -> list[Step]:
    steps = []
    for base, head in pairwise(version_line.MAJORS):
        pairs_of_step = [pair for pair in pairs if pair.ends[1] == head]
        pictures_of_step = [
            picture for picture in pictures if _has_step_to(picture, head)
        ]
        steps.append(Step((base, head), pairs_of_step, pictures_of_step))
    return steps


def _has_step_to(picture: Undocumented, head: str) -> bool:
    return any(versions.major(version) == head for version in picture.versions[1:])
