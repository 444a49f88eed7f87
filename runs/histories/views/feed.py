"""The Atom feed of a project: changes in its histories, and the answers of finished campaigns."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.feedgenerator import Atom1Feed
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors import projects
from runs.campaigns.selectors import answers
from runs.control_characters import neutralised
from runs.histories.selectors import causes
from runs.histories.services import webhooks
from runs.models import Campaign, Change, Project
from runs.models.campaigns import Origin
from runs.shared import embedding
from runs.shared.formats import translate_field

# A reader that asks once a day misses nothing of a busy project.
MOST_CHANGES, MOST_CAMPAIGNS = 50, 20


@dataclass(frozen=True)
class Entry:
    """One piece of news. `key` names it for ever, whatever its words are later."""

    key: str
    title: str
    text: str
    path: str
    at: datetime


@addresses.page("project-feed")
@embedding.tagged
def project_feed(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The newest changes and answers of a project as an Atom feed."""
    seen_projects = Project.objects.exclude(pk__in=projects.hidden(request.user))
    project: Project = get_object_or_404(seen_projects, slug=slug)
    site = embedding.site(request)
    feed = Atom1Feed(
        title=neutralised(_("BenchLab: %(project)s") % {"project": project.name}),
        link=f"{site}/changes/",
        description="",
        language=get_language(),
        feed_url=f"{site}{request.path}",
        feed_guid=f"{site}{request.path}",
    )
    entries = [*_change_entries(request, project), *_campaign_entries(request, project)]
    for entry in sorted(entries, key=lambda entry: entry.at, reverse=True):
        feed.add_item(
            title=neutralised(entry.title),
            link=f"{site}{entry.path}",
            description=neutralised(entry.text),
            unique_id=f"{site}{request.path}#{entry.key}",
            updateddate=entry.at,
            pubdate=entry.at,
        )
    response = HttpResponse(content_type=feed.content_type)
    feed.write(response, "utf-8")
    return embedding.opened(request, response)


def _change_entries(request: HttpRequest, project: Project) -> Iterator[Entry]:
    """A commit, or day, each; what was dismissed or refuted is no news."""
    standing = Change.objects.exclude(decision__in=Change.GONE).filter(
        _project_filter(project, "campaign__")
    )
    page = causes.page(standing, number=MOST_CHANGES, to=request.user)
    for cause in page.causes:
        campaign = cause.first.cell.campaign
        yield Entry(
            key=f"{campaign.slug}-{cause.beginning}",
            title=f"{translate_field(campaign, 'title')}: {cause.sentence}",
            text="\n".join(cause.further_lines),
            path=webhooks.history_path(campaign, cause.first),
            at=max(change.found_at for change in cause.changes),
        )


def _campaign_entries(request: HttpRequest, project: Project) -> Iterator[Entry]:
    """Campaigns that were executed here and have ended with an answer."""
    ended = Campaign.objects.filter(
        _project_filter(project), origin=Origin.EXECUTED, state=Campaign.State.FINISHED
    ).order_by("-pk")
    newest_campaigns = list(
        projects.newest(ended, to=request.user, number=MOST_CAMPAIGNS)
    )
    answer_of, dates_of = (
        answers.read_known_answers(newest_campaigns),
        answers.dates_of(newest_campaigns),
    )
    for campaign in newest_campaigns:
        answer = answer_of.get(campaign.pk)
        last = dates_of[campaign.pk].last
        if answer and answer.is_there and last:
            yield Entry(
                key=campaign.slug,
                title=f"{translate_field(campaign, 'title')}: {answer.sentence}",
                text="\n".join(answer.sentences[1:]),
                path=webhooks.campaign_path(campaign),
                at=last,
            )


def _project_filter(project: Project, path: str = "") -> Q:
    """Of this project; what names none is of the default one."""
    in_project = Q(**{f"{path}project": project})
    if project.slug == projects.DEFAULT:
        return in_project | Q(**{f"{path}project": None})
    return in_project
