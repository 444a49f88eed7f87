"""The compare page: series of every origin side by side, two cells, and kept comparisons."""

from dataclasses import replace
from typing import Any

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
from runs.compare.selectors.address import candidates
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.address.candidates import Candidate, CandidateFilters
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.series_labels import spoken_level
from runs.compare.selectors.describe.verdict_words import missing, sentence, size, verdict_word
from runs.compare.selectors.judge.cells import ComparedCells, MetricRow, Side, compared_cells
from runs.compare.selectors.judge.comparisons import compared
from runs.compare.services import compare as comparisons
from runs.compare.views import page as compare_page
from runs.compare.views import report as compare_exports
from runs.compare.views import words as compare_words
from runs.models import Campaign, Cell, SavedComparison
from runs.models.campaigns import Origin
from runs.shared import caching, pages, words
from runs.shared.formats import estimate, ratio, tone
from runs.shared.pages import or_404
from runs.templatetags.components import without_indents

# Questions, what their comparisons show, and these: a campaign and the choices.
_EXAMPLES = (
    (
        _("Is PostgreSQL 9.3 slower than 9.2 on 80 cores?"),
        "wg1-2013-2-2",
        _("Reads at 1 to 128 clients, two lines, ratios at each client count"),
        {"metric": "tps"},
    ),
    (
        _("What do page checksums cost?"),
        "wg1-2013-2-3",
        _("9.3 with and without, against the one without"),
        {"metric": "tps", "x": "clients", "relative": True},
    ),
    (
        _("What should be on the SSD?"),
        "wg1-2013-4-5",
        _("WAL, indexes, tables or all, for updates and for reads"),
        {"x": "load", "base": "wg1-2013-4-5~placement=all-hdd", "log_y": True},
    ),
    (
        _("Did reads get slower from 13 to 14?"),
        "wg1-2021-read",
        _("Clients 1 to 192, ratios to 13"),
        {"metric": "tps", "relative": True},
    ),
    (
        _("What does synchronous replication cost?"),
        "wg1-2017-8-10",
        _("Three standbys: none, asynchronous, mixed, synchronous"),
        {"metric": "tps", "x": "none"},
    ),
    (
        _("How far does throughput scale with cores?"),
        "wg1-2013-2-5",
        _("8 to 80 cores with the Universal Scalability Law through them"),
        {"metric": "tps", "fit": "usl"},
    ),
)


def examples(reader: Reader) -> list[dict[str, Any]]:
    """Those whose campaigns are there. One query."""
    wanted = {slug for _question, slug, _shows, _choices in _EXAMPLES}
    shown = projects.visible(Campaign.objects.filter(slug__in=wanted), to=reader)
    known = set(shown.values_list("slug", flat=True))
    return [
        {
            "question": str(question),
            "shows": str(shows),
            "query": CompareState(series=(series_cells.parse(slug),), **choices).query,
        }
        for question, slug, shows, choices in _EXAMPLES
        if slug in known
    ]


def cells_shown(found: ComparedCells, state: CompareState) -> dict[str, Any]:
    """Both cells, their metrics with verdicts, their runs, and in what they differ."""
    reasons = dict.fromkeys(code for row in found.rows for code in row.comparison.reasons)
    despite = dict.fromkeys(code for row in found.rows for code in row.comparison.despite)
    return {
        "found": found,
        "printed": {"a": _printed(found.a), "b": _printed(found.b)},
        "lines": [_line(row) for row in found.rows],
        "differences": [
            (
                compare_words.KINDS[each.kind],
                series_labels.fact(each.kind, each.name),
                [series_labels.fact_value(each.name, value) for value in each.values],
            )
            for each in found.differences
        ],
        "despite": sentence(despite),
        "overrides": [
            (str(label), _address(found, replace(state, ignore=(*state.ignore, name))))
            for name, label in compare_words.OVERRIDES.items()
            if f"{name}_differs" in reasons
        ],
        "swapped": _address(found, state, swapped=True),
    }


def _printed(side: Side) -> list[tuple[str, str, list[str]]]:
    is_published = side.cell.campaign.origin == Origin.PUBLISHED
    return provenance.of_cell(side.cell.pk) if is_published else []


def _address(found: ComparedCells, state: CompareState, *, swapped: bool = False) -> str:
    a, b = found.a.cell.pk, found.b.cell.pk
    pair = f"a={b}&b={a}" if swapped else f"a={a}&b={b}"
    more = replace(state, series=()).query
    return f"{reverse('compare-cells')}?{pair}{'&' if more else ''}{more}"


def _line(row: MetricRow) -> dict[str, Any]:
    found = row.comparison
    return {
        "title": metric_title(row.metric),
        "a": estimate(row.a.median if found.base_value is None else found.base_value),
        "b": estimate(row.b.median if found.head_value is None else found.head_value),
        "ratio": ratio(found.ratio),
        "size": size(found),
        "interval": f"{found.low:.3f} – {found.high:.3f}" if found.low and found.high else "–",
        "tone": tone(found.verdict),
        "verdict": verdict_word(found),
        "notes": sentence(found.reasons) or missing(found),
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
    if wanted := request.GET.get("format"):
        words = series_labels.wording({key.slug for key in state.series})
        page = compared(state, reader=request.user, wording=words)
        answer = compare_exports.answer(page, words, wanted)
        if answer is None:
            raise Http404(f"format={wanted}")
        return answer
    shown = _shown(state, request.user)
    context = _context(request, shown) | {"faults": [*faults, *shown["faults"]]}
    return render(request, "compare/index.html", context)


@addresses.page("compare-cells")
def compare_cells(request: HttpRequest) -> HttpResponse:
    """Two cells, A against B: `a` and `b`, or two of `cell` as the table's boxes send them."""
    chosen = [request.GET.get("a", ""), request.GET.get("b", "")]
    if not any(chosen):
        chosen = request.GET.getlist("cell")
    if len(chosen) != 2 or not all(text.isdecimal() for text in chosen):
        return render(request, "compare/choose_two.html", status=400)
    state, _faults = compare_state.read(request.GET)
    a, b = (int(text) for text in chosen)
    with or_404(Cell.DoesNotExist):
        found = compared_cells(
            a,
            b,
            reader=request.user,
            ignore=state.ignored_codes,
            effect=state.effect / 100,
            wording=series_labels.wording(_slugs(a, b)),
        )
    return render(request, "compare/cells.html", cells_shown(found, state))


@addresses.page("compare-saved")
def compare_saved(request: HttpRequest) -> HttpResponse:
    """Every kept comparison, the newest first."""
    saved = SavedComparison.objects.select_related("created_by")
    return render(request, "compare/saved.html", {"page": pages.page(saved, request.GET)})


@addresses.page("compare-open")
def compare_open(request: HttpRequest, slug: str) -> HttpResponse:
    """A kept comparison: its address."""
    saved = get_object_or_404(SavedComparison, slug=slug)
    return redirect(f"{reverse('compare')}?{saved.query}")


@addresses.action("compare-save", Right.OWN)
def compare_save(request: HttpRequest) -> HttpResponse:
    """Keep the comparison whose query string the form carries."""
    state, _faults = compare_state.read(QueryDict(request.POST.get("query", "")))
    given = request.POST
    with pages.refusals(request):
        comparisons.save_comparison(
            state=state,
            title=given.get("title", ""),
            note=given.get("note", ""),
            user=request.user,  # type: ignore[arg-type]
        )
        messages.success(request, _("The comparison was saved; everyone can find it in the list."))
        return redirect("compare-saved")
    return redirect(f"{reverse('compare')}?{state.query}")


def _shown(state: CompareState, reader: User | AnonymousUser) -> dict[str, Any]:
    """The comparison, kept for all who may see its campaigns and have the same right to queue."""
    if not state.series:
        return {"shown": SafeString(), "state": state, "faults": (), "lead": ""}
    may_queue = permissions.may_act(reader, "bisection-new")
    slugs = frozenset(key.slug for key in state.series)
    campaigns: list[int] = []

    def make() -> tuple[str, str, tuple[str, ...], str]:
        words = series_labels.wording(slugs)
        page = compared(state, reader=reader, wording=words, seen=campaigns)
        if not page.loaded.series:
            return "", page.state.query, page.loaded.faults, ""
        context = {**compare_page.context(page, words), **compare_page.form(page, words)}
        html = render_to_string("compare/_compared.html", {**context, "may_queue": may_queue})
        lead = next(iter(context["summaries"]), "")
        return without_indents(html), page.state.query, page.loaded.faults, lead

    named = Campaign.objects.filter(slug__in=slugs).order_by()
    campaigns += projects.visible(named, to=reader).values_list("pk", flat=True)
    known = caching.versions(campaigns) if campaigns else caching.NEVER
    html, query, faults, lead = caching.answer((state, may_queue), known.results, make)
    written, _faults = compare_state.read(QueryDict(query))
    return {"shown": SafeString(html), "state": written, "faults": faults, "lead": lead}


def _context(request: HttpRequest, shown: dict[str, Any]) -> dict[str, Any]:
    """The comparison; before there is one, examples and what can be added."""
    searched = "q" in request.GET or not shown["shown"]
    # By their keys, which is their order in the list, too: an index has it.
    saved = SavedComparison.objects.select_related("created_by").order_by("-pk")[:NEWEST_SAVED]
    return {
        **shown,
        **(
            _search(request, shown["state"])
            if searched
            else {"q": "", "filters": CandidateFilters()}
        ),
        "is_picking": searched,
        "examples": [] if shown["shown"] else examples(request.user),
        "saved": [] if shown["shown"] else list(saved),
    }


def _search(request: HttpRequest, state: CompareState) -> dict[str, Any]:
    words = _text(request, "q")
    filters = CandidateFilters(**{name: _text(request, f"in_{name}") for name in FILTERS})
    found = candidates.candidates(words, filters, reader=request.user)
    wording = series_labels.wording({each.campaign.slug for each in found})
    return {
        "q": words,
        "filters": filters,
        "state": state,
        "offers": [_offer(each, state, wording) for each in found],
    }


def _text(request: HttpRequest, name: str) -> str:
    """What was asked for; PostgreSQL has no null character in its texts."""
    return request.GET.get(name, "")[: words.LONGEST].replace("\0", "")


def _offer(each: Candidate, state: CompareState, words: Factors) -> dict[str, Any]:
    return {
        "campaign": each.campaign,
        "more": each.more,
        "all": state.with_series(each.key).query,
        "count": len(each.series) + each.more,
        "axis": words.title(each.axis) if each.axis else "",
        "series": [
            {
                "label": " · ".join(
                    spoken_level(words, name, level) for name, level in offered.levels.items()
                ),
                "query": state.with_series(offered.key).query,
                "is_chosen": offered.key in state.series,
            }
            for offered in each.series
        ],
    }


def _slugs(*cells: int) -> set[str]:
    found = Cell.objects.filter(pk__in=cells).order_by()
    return set(found.values_list("campaign__slug", flat=True))
