"""The first page: what runs now, the newest findings, the line through versions."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.vary import vary_on_headers

from runs.access import addresses
from runs.access.selectors import projects
from runs.archive.selectors import answers, version_line
from runs.archive.views import versions
from runs.campaigns.selectors import answers as campaign_answers
from runs.campaigns.selectors import campaigns, waiting
from runs.campaigns.views import ratios
from runs.cells.selectors import factor_names as designs
from runs.cells.selectors import metrics
from runs.compare.selectors.judge.ratios import ratios_of_executed
from runs.histories.views import changes
from runs.models import BisectionStep, Campaign, Server
from runs.models.campaigns import Origin
from runs.operations.selectors.readiness import silences
from runs.queue.selectors import runs as run_selectors
from runs.servers.selectors import fitness, servers
from runs.shared import caching, first_page, pages

NEWEST = 6
NEWEST_FINDINGS = 3


@addresses.page("home")
@vary_on_headers("HX-Request")
def home(request: HttpRequest) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    overview = servers.at_a_glance()
    newest, finished = campaigns.recent_and_finished(limit=NEWEST, to=request.user)
    running, latest = run_selectors.now_and_latest(NEWEST, to=request.user)
    context = {
        "running": tuple(running),
        "campaigns": tuple(newest),
        "latest": tuple(latest),
        "servers": tuple(overview),
        "fitnesses": _fitnesses(request.user),
        "silences": silences(),
        "hindrances": waiting.held_up(
            [
                row.slug
                for row in overview
                if row.queued and row.state != Server.State.READY
            ]
        ),
        "finished": finished,
        "waiting": sum(row.queued for row in overview),
    }
    if getattr(request, "htmx", False):
        return pages.live(request, "home/index.html#live", context)
    context |= {
        "answers": tuple(answers.answers()),
        "new_changes": changes.newest(request.user),
        "decisions": changes.DECISIONS,
        **_finished_things(request.user),
        "cards": first_page.cards(request),
    }
    return render(request, "home/index.html", context)


def _fitnesses(to: projects.Reader) -> list[fitness.Fitness]:
    """Whether the servers can measure, for who works here."""
    if not isinstance(to, User):
        return []
    return fitness.of_servers(servers.measuring(limit=NEWEST), to=to)


def _finished_things(to: projects.Reader) -> dict[str, str]:
    """Findings and line, the same for all who may see both.

    `lead` is what the line says, `findings` and `line` are drawn.
    """
    used = version_line.used(version_line.READ, to=to)
    newest = tuple(_newest(to))
    template = "home/index.html#finished"

    def draw_findings() -> SafeString:
        return render_to_string(template, {"newest_findings": _findings(newest)})

    def draw_line() -> list[str]:
        line_context = versions.context(used)
        answer = line_context["answer"]
        drawn = render_to_string(
            template, {"figure": line_context["figure"], "answer": answer}
        )
        return [answer.sentence if line_context["pairs"] else "", drawn]

    # Each by itself: a run that finishes changes the line, and nothing of what has ended.
    of_newest, of_line = caching.versions(newest), caching.versions(used.campaigns)
    lead, line = caching.answer(("home", used), of_line.results, draw_line)
    findings = caching.html(("findings", newest), of_newest.results, draw_findings)
    return {"lead": lead, "line": SafeString(line), "findings": findings}


def _newest(to: projects.Reader) -> list[int]:
    """The campaigns that finished last. One query, which reads no older ones.

    Those of hundreds of cells and the steps of bisections say what they found elsewhere.
    """
    executed = Campaign.objects.filter(
        origin=Origin.EXECUTED, state=Campaign.State.FINISHED
    )
    # No anti-joins, for which all campaigns would be read.
    steps = BisectionStep.objects.filter(campaign=OuterRef("pk")).values("pk")[:1]
    few = executed.alias(
        last=Coalesce(campaign_answers.last_cell(), 0), step=Subquery(steps)
    )
    alone = few.filter(last__lte=campaign_answers.MOST_CELLS, step=None)
    return projects.newest_keys(alone.order_by("-pk"), to=to, number=NEWEST_FINDINGS)


def _findings(
    campaign_keys: Sequence[int],
) -> list[tuple[Campaign, dict[str, list[ratios.Finding]]]]:
    """The results of these campaigns, if they decide anything or may, the newest first."""
    newest = metrics.primary_names(campaigns.listed().filter(pk__in=campaign_keys))
    rows_of_campaign = ratios_of_executed(newest)
    campaigns_sorted = sorted(
        rows_of_campaign, key=lambda campaign: campaign.pk, reverse=True
    )
    return [
        (
            campaign,
            ratios.folded(
                ratios.findings(rows_of_campaign[campaign], designs.words(campaign))
            ),
        )
        for campaign in campaigns_sorted
        if any(
            row.comparison.verdict != "too_few_runs"
            for row in rows_of_campaign[campaign]
        )
    ]
