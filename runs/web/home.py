"""The first page: what runs now, the newest findings, the line through versions."""

from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from runs.models import Campaign, Cell
from runs.models.campaigns import Origin
from runs.selectors.access import projects
from runs.selectors.archive import archive
from runs.selectors.campaigns import campaigns, metrics
from runs.selectors.campaigns import factor_names as designs
from runs.selectors.compare.ratios import ratios_of_executed
from runs.selectors.operations.silences import silences
from runs.selectors.runs import runs as run_selectors
from runs.selectors.servers import servers
from runs.web.archive import versions
from runs.web.campaigns import page as campaign_page
from runs.web.changes import inbox

NEWEST = 6
NEWEST_FINDINGS = 3
MOST_CELLS = 200
# Of each step from a version to the next; the page of versions has the others.
NEWEST_PAIRS = 3


@require_safe
@vary_on_headers("HX-Request")
def home(request: HttpRequest) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    overview = servers.overview()
    newest, finished = campaigns.recent_and_finished(limit=NEWEST, to=request.user)
    running, latest = run_selectors.now_and_latest(NEWEST, to=request.user)
    context = {
        "running": running,
        "campaigns": newest,
        "latest": latest,
        "servers": overview,
        "silences": silences(),
        "finished": finished,
        "waiting": sum(row.queued for row in overview),
        "versions": len({each.version_num for row in overview for each in row.installations}),
    }
    if getattr(request, "htmx", False):
        return render(request, "home/_live.html", context)
    line = versions.context(request)
    context |= {
        "asked": list(archive.asked()),
        "newest_findings": _newest_findings(request.user),
        "new_changes": inbox.newest(request.user),
        "decisions": inbox.DECISIONS,
        "line": line["figure"],
        "measured": [pair for step in line["steps"] for pair in step.pairs[-NEWEST_PAIRS:]],
    }
    return render(request, "home/index.html", context)


def _newest_findings(
    to: projects.Reader,
) -> list[tuple[Campaign, list[campaign_page.Finding]]]:
    """The results of the campaigns that finished last, if they compare anything.

    One of hundreds of cells has its own page for what it says.
    """
    found = []
    executed = projects.visible(campaigns.of_origin(Origin.EXECUTED), to=to)
    wide = Cell.objects.filter(campaign=OuterRef("pk"), ordinal__gt=MOST_CELLS)
    # What the steps of a bisection say is part of its answer.
    alone = executed.filter(bisection_step=None)
    finished = alone.filter(~Exists(wide), state=Campaign.State.FINISHED)
    newest = metrics.primary_names(finished.select_related("scenario")[:NEWEST_FINDINGS])
    for campaign, rows in ratios_of_executed(newest).items():
        if rows:
            words = designs.words(campaign)
            found.append((campaign, campaign_page.findings(rows, words)))
    return found
