"""Hardware: what machines are made of, and what was measured on each."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs.models import HardwareProfile
from runs.scenarios.metrics import TPS
from runs.selectors.campaigns import noise
from runs.selectors.servers import hardware as selectors
from runs.web import pages

PAGE_SIZE = 50
MOST_CAMPAIGNS = 20
LONGEST_SEARCH = 200


@require_safe
def hardware_list(request: HttpRequest) -> HttpResponse:
    """All profiles, or those with some words."""
    words = request.GET.get("q", "")[:LONGEST_SEARCH]
    found = selectors.listed(to=request.user, words=words)
    page = pages.page(found, request.GET, size=PAGE_SIZE, by="name")
    context = {
        "section": "servers",
        "words": words,
        "page": page,
        "query": f"{urlencode({'q': words})}&" if words else "",
        "rows": selectors.rows(page.rows, to=request.user),
    }
    return render(request, "hardware/list.html", context)


@require_safe
def hardware_detail(request: HttpRequest, hardware_id: int) -> HttpResponse:
    """One profile: its facts, its servers, how repeats scatter on it, and its campaigns."""
    try:
        row = selectors.detail(hardware_id, to=request.user)
    except HardwareProfile.DoesNotExist as error:
        raise Http404 from error
    context = {
        "section": "servers",
        "row": row,
        "hardware": row.hardware,
        "facts": row.facts,
        "noise": noise.of_hardware(row.hardware, TPS.name, to=request.user),
        "campaigns": selectors.used_by(row.hardware, to=request.user, limit=MOST_CAMPAIGNS),
    }
    return render(request, "hardware/detail.html", context)
