"""The page that shows every component in every variant."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.charts.scaling import Axes, Line, Point, scaling
from runs.compare.selectors.describe.verdict_words import VERDICTS
from runs.models import Campaign, Run, Server, Topology
from runs.shared.pages import Page
from runs.workloads.filters import TopologyFilters

SURFACES = ("page", "surface", "sunken", "line", "ink", "soft", "accent")


class SampleForm(forms.Form):
    """One field of each kind."""

    name = forms.CharField(label=_("Name"), help_text=_("Display name"))
    number = forms.IntegerField(label=_("Number"), required=False)
    choice = forms.ChoiceField(label=_("Choice"), choices=[("1", "PostgreSQL 16")])
    several = forms.MultipleChoiceField(
        label=_("Several"),
        choices=[("16", "PostgreSQL 16"), ("18", "PostgreSQL 18")],
        widget=forms.CheckboxSelectMultiple,
    )
    text = forms.CharField(label=_("Text"), required=False, widget=forms.Textarea)


@addresses.page("styleguide")
def styleguide(request: HttpRequest) -> HttpResponse:
    """Badges, tables, charts, forms ... with made-up contents."""
    context = {
        "run_states": Run.State.choices,
        "campaign_states": Campaign.State.choices,
        "server_states": Server.State.choices,
        "verdicts": VERDICTS.items(),
        "surfaces": SURFACES,
        "chart_colours": range(1, 9),
        "rows": [("PostgreSQL 16", "12,345"), ("PostgreSQL 18", "987.6")],
        "versions": ("16", "18"),
        "filters": TopologyFilters({"kind": "?"}, Topology.objects.none()),
        "page": Page([], "before=20", "after=11"),
        "form": SampleForm(initial={"several": ["18"]}, auto_id="sample_%s"),
        "invalid_form": SampleForm({"number": "1.5"}, auto_id="invalid_%s"),
        "figure": _figure(),
    }
    return render(request, "home/styleguide/index.html", context)


def _figure() -> dict[str, object]:
    levels = (1, 2, 4, 8)
    return scaling(
        [
            Line(
                label=f"PostgreSQL {major}",
                major=major,
                points=tuple(
                    Point(
                        level, rate * level, rate * level * 0.94, rate * level * 1.05, 3
                    )
                    for level in levels
                ),
            )
            for major, rate in (("16", 1000.0), ("18", 1180.0))
        ],
        Axes("Clients", "tps"),
    )
