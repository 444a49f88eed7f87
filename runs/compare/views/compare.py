"""The compare page: series of every origin side by side, two cells, and kept comparisons."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.vary import vary_on_headers

from runs.access import addresses
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import Reader
from runs.cells.selectors import provenance, series_cells
from runs.cells.selectors.level_names import Factors
from runs.cells.selectors.metrics import metric_title
from runs.cells.selectors.series_cells import SeriesKey
from runs.compare.selectors import answers
from runs.compare.selectors.address import candidates
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.address.candidates import Candidate, CandidateFilters
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.answers import AnswerRow
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.series_labels import spoken_level
from runs.compare.selectors.judge.cells import ComparedCells, Side, compared_cells
from runs.compare.selectors.judge.comparisons import compared, seen_campaigns
from runs.compare.services import compare as comparisons
from runs.compare.views import page as compare_page
from runs.compare.views import report
from runs.compare.views import words as compare_words
from runs.models import Campaign, Cell, SavedComparison
from runs.models.campaigns import Origin
from runs.shared import caching, pages, words
from runs.shared.formats import estimate
from runs.shared.pages import or_404
from runs.shared.whole_numbers import whole_number
from runs.templatetags.components import strip_indents


# Questions, what their comparisons show, and these: a campaign and the choices.
class _Example(NamedTuple):
    """A question to begin with, its series, and what the comparison shows."""

    question: object
    slug: str
    shows: object
    choices: dict[str, Any]


_EXAMPLES = (
    _Example(
        _("Is PostgreSQL 9.3 slower than 9.2 on 80 cores?"),
        "wg1-2013-2-2",
        _("Reads at 1 to 128 clients, two lines, ratios at each client count"),
        {"metric": "tps"},
    ),
    _Example(
        _("What do page checksums cost?"),
        "wg1-2013-2-3",
        _("9.3 with and without, against the one without"),
        {"metric": "tps", "x": "clients", "relative": True},
    ),
    _Example(
        _("What should be on the SSD?"),
        "wg1-2013-4-5",
        _("WAL, indexes, tables or all, for updates and for reads"),
        {"x": "load", "base": "wg1-2013-4-5~placement=all-hdd", "log_y": True},
    ),
    _Example(
        _("Did reads get slower from 13 to 14?"),
        "wg1-2021-read",
        _("Clients 1 to 192, ratios to 13"),
        {"metric": "tps", "relative": True},
    ),
    _Example(
        _("What does synchronous replication cost?"),
        "wg1-2017-8-10",
        _("Three standbys: none, asynchronous, mixed, synchronous"),
        {"metric": "tps", "x": "none"},
    ),
    _Example(
        _("How far does throughput scale with cores?"),
        "wg1-2013-2-5",
        _("8 to 80 cores with the Universal Scalability Law through them"),
        {"metric": "tps", "fit": "usl"},
    ),
)


def examples(reader: Reader) -> list[dict[str, Any]]:
    """Those whose campaigns are there. One query."""
    wanted_slugs = {example.slug for example in _EXAMPLES}
    visible_campaigns = projects.visible(
        Campaign.objects.filter(slug__in=wanted_slugs), to=reader
    )
    known_slugs = set(visible_campaigns.values_list("slug", flat=True))
    return [
        {
            "question": str(example.question),
            "shows": str(example.shows),
            "query": CompareState(
                series=(series_cells.parse(example.slug),), **example.choices
            ).query,
        }
        for example in _EXAMPLES
        if example.slug in known_slugs
    ]


def cells_shown(cells: ComparedCells, state: CompareState) -> dict[str, Any]:
    """Both cells, their metrics with verdicts, their runs, and in what they differ."""
    answer = answers.answer_cells(cells, state.effect)
    reasons = {code for row in answer.rows for code in row.result.inference.reasons}
    return {
        "found": cells,
        "printed": {"a": _printed(cells.a), "b": _printed(cells.b)},
        "lines": [_line(row) for row in answer.rows],
        "differences": [
            (
                compare_words.KINDS[difference.kind],
                series_labels.fact(difference.kind, difference.name),
                [
                    series_labels.fact_value(difference.name, value)
                    for value in difference.values
                ],
            )
            for difference in cells.differences
        ],
        "despite": answer.despite,
        "overrides": [
            (str(label), _address(cells, replace(state, ignore=(*state.ignore, name))))
            for name, label in compare_words.OVERRIDES.items()
            if f"{name}_differs" in reasons
        ],
        "swapped": _address(cells, state, swapped=True),
    }


def _printed(side: Side) -> list[tuple[str, str, list[str]]]:
    is_published = side.cell.campaign.origin == Origin.PUBLISHED
    return provenance.list_figures(side.cell.pk) if is_published else []


def _address(
    cells: ComparedCells, state: CompareState, *, swapped: bool = False
) -> str:
    a, b = cells.a.cell.pk, cells.b.cell.pk
    pair = f"a={b}&b={a}" if swapped else f"a={a}&b={b}"
    more_query = replace(state, series=()).query
    return f"{reverse('compare-cells')}?{pair}{'&' if more_query else ''}{more_query}"


def _line(row: AnswerRow) -> dict[str, Any]:
    return {
        "title": metric_title(row.metric),
        "a": estimate(row.base.value),
        "b": estimate(row.head.value),
        "ratio": row.result.ratio,
        "size": row.result.size,
        "interval": row.result.interval,
        "tone": row.result.tone,
        "verdict": row.result.word,
        "notes": row.result.why,
    }


FILTERS = ("version", "os", "topology", "hardware", "origin")
NEWEST_SAVED = 5


@addresses.page("compare")
@vary_on_headers("HX-Request")
def compare(request: HttpRequest) -> HttpResponse:
    """The comparison that the address says; a file of it; or what can be added, when htmx asks."""
    state, faults = compare_state.read(request.GET)
    if getattr(request, "htmx", False) and request.htmx.target == "candidates":  # type: ignore[attr-defined]
        return render(request, "compare/index.html#candidates", _search(request, state))
    if wanted_format := request.GET.get("format"):
        words = series_labels.wording({key.slug for key in state.series})
        page = compared(state, reader=request.user, wording=words)
        answer = answers.answer_series(page, words)
        response = report.answer(page, answer, words, wanted_format)
        if response is None:
            raise Http404(f"format={wanted_format}")
        return response
    kept_comparison = _kept(state, request.user)
    state = replace(state, series=kept_comparison.series)
    context = {
        **_beginning(request, state, is_empty=not kept_comparison.html),
        "shown": SafeString(kept_comparison.html),
        "lead": kept_comparison.lead,
        "faults": [*faults, *kept_comparison.faults],
        "state": state,
    }
    return render(request, "compare/index.html", context)


@addresses.page("compare-cells")
def compare_cells(request: HttpRequest) -> HttpResponse:
    """Two cells, A against B: `a` and `b`, or two of `cell` as the table's boxes send them."""
    chosen = [request.GET.get("a", ""), request.GET.get("b", "")]
    if not any(chosen):
        chosen = request.GET.getlist("cell")
    keys = [key for text in chosen if (key := whole_number(text)) is not None]
    if len(chosen) != 2 or len(keys) != 2:
        return render(request, "compare/choose_two.html", status=400)
    state, _faults = compare_state.read(request.GET)
    a, b = keys
    with or_404(Cell.DoesNotExist):
        cells = compared_cells(
            a,
            b,
            reader=request.user,
            ignore=state.ignored_codes,
            effect=state.effect / 100,
            wording=series_labels.wording(_slugs(a, b)),
        )
    return render(request, "compare/cells.html", cells_shown(cells, state))


@addresses.page("compare-saved")
def compare_saved(request: HttpRequest) -> HttpResponse:
    """Every kept comparison, the newest first."""
    saved = SavedComparison.objects.select_related("created_by")
    return render(
        request, "compare/saved.html", {"page": pages.page(saved, request.GET)}
    )


@addresses.page("compare-open")
def compare_open(request: HttpRequest, slug: str) -> HttpResponse:
    """A kept comparison: its address."""
    saved = get_object_or_404(SavedComparison, slug=slug)
    return redirect(f"{reverse('compare')}?{saved.query}")


@addresses.action("compare-save", Right.OWN)
def compare_save(request: HttpRequest) -> HttpResponse:
    """Keep the comparison whose query string the form carries."""
    state, _faults = compare_state.read(QueryDict(request.POST.get("query", "")))
    fields = request.POST
    with pages.refusals(request):
        comparisons.save_comparison(
            state=state,
            title=fields.get("title", ""),
            note=fields.get("note", ""),
            user=request.user,  # type: ignore[arg-type]
        )
        messages.success(
            request, _("The comparison was saved; everyone can find it in the list.")
        )
        return redirect("compare-saved")
    return redirect(f"{reverse('compare')}?{state.query}")


@dataclass(frozen=True)
class KeptComparison:
    """A comparison as it is kept for all who may see its campaigns, and have the same rights.

    `html` is empty where nothing can be compared. `lead` is the first sentence, for the title.
    `series` are those that were asked for, with all their levels written out.
    """

    html: str = ""
    lead: str = ""
    faults: tuple[str, ...] = ()
    series: tuple[SeriesKey, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For the cache, which keeps what JSON has."""
        return vars(self) | {"series": [key.to_json() for key in self.series]}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "KeptComparison":
        """As it was kept."""
        return cls(
            html=members["html"],
            lead=members["lead"],
            faults=tuple(members["faults"]),
            series=tuple(SeriesKey.from_json(key) for key in members["series"]),
        )


def _kept(state: CompareState, reader: User | AnonymousUser) -> KeptComparison:
    """The comparison of a state, made where it is not kept."""
    if not state.series:
        return KeptComparison()
    may_queue = permissions.may_act(reader, "bisection-new")
    campaigns = seen_campaigns(state, to=reader)
    versions = caching.versions(campaigns) if campaigns else caching.NEVER
    members = caching.answer(
        (state, may_queue),
        versions.results,
        lambda: _rendered(state, reader, campaigns, may_queue=may_queue).to_json(),
    )
    return KeptComparison.from_json(members)


def _rendered(
    state: CompareState,
    reader: User | AnonymousUser,
    campaigns: Collection[int],
    *,
    may_queue: bool,
) -> KeptComparison:
    words = series_labels.wording({key.slug for key in state.series})
    page = compared(state, reader=reader, wording=words, seen=campaigns)
    faults, series = page.loaded.faults, page.state.series
    if not page.loaded.series:
        return KeptComparison(faults=faults, series=series)
    answer = answers.answer_series(page, words)
    context = {
        **compare_page.context(page, answer, words),
        **compare_page.form(page, words),
        "may_queue": may_queue,
    }
    html = strip_indents(render_to_string("compare/_compared.html", context))
    lead = next(iter(answer.sentences), "")
    return KeptComparison(html=html, lead=lead, faults=faults, series=series)


def _beginning(
    request: HttpRequest, state: CompareState, *, is_empty: bool
) -> dict[str, Any]:
    """What can be added, while somebody searches or nothing is compared yet; examples at first."""
    is_picking = "q" in request.GET or is_empty
    # By their keys, which is their order in the list, too: an index has it.
    saved = SavedComparison.objects.select_related("created_by").order_by("-pk")[
        :NEWEST_SAVED
    ]
    search = (
        _search(request, state)
        if is_picking
        else {"q": "", "filters": CandidateFilters()}
    )
    return {
        **search,
        "is_picking": is_picking,
        "examples": examples(request.user) if is_empty else [],
        "saved": list(saved) if is_empty else [],
    }


def _search(request: HttpRequest, state: CompareState) -> dict[str, Any]:
    words = _text(request, "q")
    filters = CandidateFilters(
        **{name: _text(request, f"in_{name}") for name in FILTERS}
    )
    candidates_found = candidates.candidates(words, filters, reader=request.user)
    wording = series_labels.wording(
        {candidate.campaign.slug for candidate in candidates_found}
    )
    return {
        "q": words,
        "filters": filters,
        "state": state,
        "offers": [_offer(candidate, state, wording) for candidate in candidates_found],
    }


def _text(request: HttpRequest, name: str) -> str:
    """What was asked for; PostgreSQL has no null character in its texts."""
    return request.GET.get(name, "")[: words.LONGEST].replace("\0", "")


def _offer(candidate: Candidate, state: CompareState, words: Factors) -> dict[str, Any]:
    return {
        "campaign": candidate.campaign,
        "more": candidate.more,
        "all": state.add_series(candidate.key).query,
        "count": len(candidate.series) + candidate.more,
        "axis": words.title(candidate.axis) if candidate.axis else "",
        "series": [
            {
                "label": " · ".join(
                    spoken_level(words, name, level)
                    for name, level in offered.levels.items()
                ),
                "query": state.add_series(offered.key).query,
                "is_chosen": offered.key in state.series,
            }
            for offered in candidate.series
        ],
    }


def _slugs(*cells: int) -> set[str]:
    cells_found = Cell.objects.filter(pk__in=cells).order_by()
    return set(cells_found.values_list("campaign__slug", flat=True))
