"""Scenarios that BenchLab can run: a list, and what each varies, keeps and measures."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.access import addresses
from runs.access.selectors import projects
from runs.campaigns.selectors import answers, campaigns
from runs.scenarios import registry
from runs.shared.pages import or_404

NEWEST = 10


@addresses.page("scenario-list")
def scenario_list(request: HttpRequest) -> HttpResponse:
    """All scenarios."""
    return render(
        request, "workloads/scenarios/list.html", {"scenarios": registry.every()}
    )


@addresses.page("scenario-detail")
def scenario_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One scenario, and the newest campaigns with it."""
    with or_404(KeyError):
        scenario = registry.get(slug)
    scenario_campaigns = campaigns.listed().filter(scenario__slug=slug)
    context = {
        "scenario": scenario,
        "campaigns": answers.listed_campaigns(
            projects.visible(scenario_campaigns, to=request.user)[:NEWEST]
        ),
    }
    return render(request, "workloads/scenarios/detail.html", context)
