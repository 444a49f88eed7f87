"""Pages of topics: all of them, and each with everything that is known."""

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from runs.access import addresses
from runs.access.selectors import permissions
from runs.archive.selectors import version_line
from runs.archive.views import versions
from runs.charts import framed
from runs.shared import caching, chart_files, embedding
from runs.shared.chart_files import ChartFile
from runs.shared.formats import translated
from runs.topics.catalogue import BY_SLUG
from runs.topics.selectors import topics

# Addresses to which a topic leads those who may measure.
OFFERED = ("campaign-new",)


@addresses.page("topic-list")
def topic_list(request: HttpRequest) -> HttpResponse:
    """Every topic with its answer; first the newest step between versions."""
    used = version_line.used(version_line.READ, to=request.user)

    def newest_step() -> str:
        return str(versions.context(used)["answer"].sentence)

    step = caching.answer(
        ("topics", used), caching.versions(used.campaigns).results, newest_step
    )
    return render(
        request, "topics/list.html", {"cards": topics.cards(), "newest_step": step}
    )


@addresses.page("topic-chart")
@embedding.tagged
def topic_chart(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """All evidence of a topic as ratios, as a picture."""
    if slug not in BY_SLUG:
        raise Http404
    chosen_topic = BY_SLUG[slug]
    keys = topics.keys(chosen_topic, to=request.user)

    def make() -> ChartFile | None:
        answer = topics.answer(chosen_topic, to=request.user)
        if answer.figure is None:
            return None
        return ChartFile(
            [framed.tile(answer.figure)],
            title=translated(chosen_topic.question),
            texts=list(filter(None, (answer.sentence, answer.detail, answer.basis))),
            data=chart_files.say_dates(answer.years),
            path=f"/topics/{slug}/",
        )

    version = caching.versions(keys).results
    return chart_files.answer(request, form, ("topic", slug, keys), version, make)


@addresses.page("topic")
def topic(request: HttpRequest, slug: str) -> HttpResponse:
    """The answer, the evidence, what contradicts, and what nobody has measured."""
    if slug not in BY_SLUG:
        raise Http404
    chosen_topic = BY_SLUG[slug]
    keys = topics.keys(chosen_topic, to=request.user)

    def make() -> SafeString:
        context = {
            "answer": topics.answer(chosen_topic, to=request.user),
            "user": request.user,
        }
        return render_to_string("topics/detail.html#answer", context)

    offers = [permissions.is_offered(request.user, offer) for offer in OFFERED]
    html = caching.html(
        ("topic", slug, keys, *offers), caching.versions(keys).results, make
    )
    return render(request, "topics/detail.html", {"shown": html, "topic": chosen_topic})
