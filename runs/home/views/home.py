"""The first page: the line through versions, the newest campaigns, what runs now."""

from django.contrib.auth.models import User
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
from runs.histories.views import changes
from runs.models import Server
from runs.operations.selectors.readiness import silences
from runs.queue.selectors import runs
from runs.servers.selectors import fitness, servers
from runs.shared import caching, first_page, pages

NEWEST = 6


@addresses.page("home")
@vary_on_headers("HX-Request")
def home(request: HttpRequest) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    overview = servers.list_servers()
    newest, finished = campaigns.recent_and_finished(limit=NEWEST, to=request.user)
    running, latest = runs.now_and_latest(NEWEST, to=request.user)
    context = {
        "running": tuple(running),
        "latest": tuple(latest),
        "servers": tuple(fitness.judge_servers(overview, to=request.user)),
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
        "campaigns": campaign_answers.answered_rows(newest),
        **_line(request.user),
        "cards": first_page.cards(request),
    }
    return render(request, "home/index.html", context)


def _fitnesses(to: projects.Reader) -> list[fitness.Fitness]:
    """Whether the servers can measure, for who works here."""
    if not isinstance(to, User):
        return []
    return fitness.judge_servers(servers.measuring(limit=NEWEST), to=to)


def _line(to: projects.Reader) -> dict[str, str]:
    """The line through versions, the same for all who may see its campaigns.

    `lead` is what it says, `line` is drawn.
    """
    used = version_line.used(version_line.READ, to=to)

    def draw() -> list[str]:
        line_context = versions.context(used)
        answer = line_context["answer"]
        drawn = render_to_string(
            "home/index.html#line", {"figure": line_context["figure"], "answer": answer}
        )
        return [answer.sentence if line_context["pairs"] else "", drawn]

    cache_versions = caching.versions(used.campaigns)
    lead, line = caching.answer(("home", used), cache_versions.results, draw)
    return {"lead": lead, "line": SafeString(line)}
