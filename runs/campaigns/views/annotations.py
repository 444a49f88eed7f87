"""Annotations: added, changed and deleted in place; forms that work without JavaScript too."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.archive.selectors.chart import Plot
from runs.campaigns.selectors import annotations as annotation_selectors
from runs.campaigns.services import annotations
from runs.cells.selectors import factor_names, series_cells
from runs.charts.figure import Figure, Mark, marked
from runs.charts.scaling import Point
from runs.models import Annotation, Campaign, Cell
from runs.shared import caching, pages
from runs.shared.caching import NEVER, Versions
from runs.shared.errors import ServiceError
from runs.shared.whole_numbers import whole_number

# A list of more points to choose from is none.
MOST_CELLS = 400
NO_WORDS = factor_names.Words({}, {})


def context(
    request: HttpRequest, campaign: Campaign, versions: Versions = NEVER
) -> dict[str, Any]:
    """What the part of the page needs, in up to three queries; the points to choose are kept."""
    user = cast(User, request.user)
    annotations_found = annotation_selectors.list_annotations(campaign)
    is_about_points = any(
        annotation.cell is not None for annotation in annotations_found
    )
    words = factor_names.words(campaign) if is_about_points else NO_WORDS
    return {
        "annotations": [
            {
                "annotation": annotation,
                "point": _point(annotation.cell, words),
                "may_change": annotations.may_change(annotation, user),
            }
            for annotation in annotations_found
        ],
        "annotation_kinds": Annotation.Kind.choices,
        "annotation_options": caching.html(
            ("points", campaign.pk), versions.results, lambda: _points(campaign)
        )
        if user.is_authenticated
        else "",
        "most_characters": annotations.MOST_CHARACTERS,
    }


@addresses.action("annotation-add", Right.ANNOTATE, of="campaign")
def annotation_add(request: HttpRequest, slug: str) -> HttpResponse:
    """Add to a campaign, or to one of its cells."""
    visible_campaigns = projects.visible(
        Campaign.objects.select_related("scenario"), to=request.user
    )
    campaign = get_object_or_404(visible_campaigns, slug=slug)
    key = whole_number(request.POST.get("cell", ""))
    cell = None if key is None else get_object_or_404(campaign.cells, pk=key)
    text, kind = (
        request.POST.get("text", ""),
        request.POST.get("kind", Annotation.Kind.NOTE),
    )
    fields = {"campaign": campaign, "text": text, "kind": kind, "cell": cell}
    return _done(request, campaign, annotations.add, **fields)


@addresses.action("annotation-change", Right.ANNOTATE)
def annotation_change(request: HttpRequest, annotation_id: int) -> HttpResponse:
    """Change its text."""
    annotation = _annotation(request, annotation_id)
    fields = {"annotation": annotation, "text": request.POST.get("text", "")}
    return _done(request, annotation.campaign, annotations.change, **fields)


@addresses.action("annotation-delete", Right.ANNOTATE)
def annotation_delete(request: HttpRequest, annotation_id: int) -> HttpResponse:
    """Take it away."""
    annotation = _annotation(request, annotation_id)
    return _done(
        request, annotation.campaign, annotations.delete, annotation=annotation
    )


def mark_lines(
    figure: Figure, campaign: Campaign, values: Mapping[int, float], factor: str
) -> Figure:
    """The chart of a campaign with marks at the points that have notes. One query.

    `values` are those that are drawn, by cell.
    """
    noted = _noted(campaign)
    if not noted:
        return figure
    places = {
        cell.pk: (level, values[cell.pk])
        for cell, _texts in noted
        if cell.pk in values
        and isinstance(level := cell.levels.get(factor), int | float)
    }
    return _marked(figure, noted, places)


def mark_bars(figure: Figure, campaign: Campaign, bars: Iterable[Point]) -> Figure:
    """The same for bars, each of which leads to its cell. One query."""
    noted = _noted(campaign)
    if not noted:
        return figure
    place_of = {bar.url: (bar.x, bar.value) for bar in bars}
    places = {
        cell.pk: place_of[f"#cell-{cell.pk}"]
        for cell, _texts in noted
        if f"#cell-{cell.pk}" in place_of
    }
    return _marked(figure, noted, places)


def mark_plots(figure: Figure, campaign: Campaign, plots: list[Plot]) -> Figure:
    """The same for a published chart."""
    noted = _noted(campaign)
    by_name = figure["layout"]["xaxis"].get("type") == "category"
    spots = {
        cell.pk: spot
        for cell, _texts in noted
        for plot in plots
        if (spot := plot.spot(cell, by_name=by_name))
    }
    return _marked(figure, noted, spots)


def _marked(
    figure: Figure,
    noted: list[tuple[Cell, list[Annotation]]],
    places: dict[int, tuple[Any, float]],
) -> Figure:
    marks = [
        Mark(
            *places[cell.pk],
            "\n".join(annotation.text for annotation in written),
            f"#annotation-{written[0].pk}",
        )
        for cell, written in noted
        if cell.pk in places
    ]
    return marked(figure, marks, label=_("Notes"))


def _noted(campaign: Campaign) -> list[tuple[Cell, list[Annotation]]]:
    annotations_of: dict[int, tuple[Cell, list[Annotation]]] = {}
    for annotation in annotation_selectors.list_annotations(campaign):
        if annotation.cell is not None:
            annotations_of.setdefault(annotation.cell.pk, (annotation.cell, []))[
                1
            ].append(annotation)
    return list(annotations_of.values())


def _annotation(request: HttpRequest, annotation_id: int) -> Annotation:
    visible_campaigns = projects.visible(Campaign.objects.all(), to=request.user)
    all_annotations = annotation_selectors.listed().select_related("campaign__scenario")
    return get_object_or_404(
        all_annotations.filter(campaign__in=visible_campaigns), pk=annotation_id
    )


def _done(
    request: HttpRequest, subject: Campaign, act: Callable[..., object], **fields: Any
) -> HttpResponse:
    """Act; then the part of the page for htmx, without it a redirect to the page."""
    error = None
    try:
        act(**fields, by=cast(User, request.user))
    except ServiceError as refusal:
        error = refusal
    if getattr(request, "htmx", False):
        page_context = {
            "campaign": subject,
            "user": request.user,
            **context(request, subject),
        }
        page_context |= {
            "annotation_error": error,
            "typed": request.POST.get("text", "") if error else "",
        }
        return render(request, "campaigns/_parts.html#annotations", page_context)
    if error:
        pages.refused(request, error)
    address = reverse("campaign-detail", args=[subject.slug])
    return redirect(f"{address}#annotations")


def _points(campaign: Campaign) -> SafeString:
    """The points that a campaign's page shows as options; of its names those that it has now.

    Of uploads they are those of the newest commit: the others have the same conditions.
    """
    words = factor_names.words(
        Campaign.objects.select_related("scenario").get(pk=campaign.pk)
    )
    cells = series_cells.current(campaign)[:MOST_CELLS]
    return format_html_join(
        "",
        '<option value="{}">{}</option>',
        ((cell.pk, _point(cell, words)) for cell in cells),
    )


def _point(cell: Cell | None, words: factor_names.Words) -> str:
    """Version 16.14, Clients 8; empty for what is about the campaign as such."""
    if cell is None:
        return ""
    levels = sorted(
        cell.levels.items(), key=lambda name_and_level: name_and_level[0] != "version"
    )
    return words.listed(dict(levels))
