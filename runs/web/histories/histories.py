"""Histories of uploads: the page with the changes, deciding about them, and what is expected."""

from datetime import timedelta
from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from runs.models import Campaign, Change
from runs.models.campaigns import Origin
from runs.selectors.access import projects
from runs.selectors.histories import histories
from runs.services.changes import changes, webhooks
from runs.services.changes import missing_uploads as watchdog
from runs.web.histories import page as history_page
from runs.web.histories.forms import DecisionForm, WatchForm


@require_safe
def campaign_history(request: HttpRequest, slug: str) -> HttpResponse:
    """The histories of a campaign that was uploaded, under levels given as clients=8."""
    campaign = get_object_or_404(_uploaded(request), slug=slug)
    texts = [text.partition("=") for text in request.GET.getlist("level")]
    levels = [(name, level) for name, equals, level in texts if equals]
    context = history_page.context(campaign, request.GET.get("metric", ""), levels)
    hours = campaign.expected_every.total_seconds() / 3600 if campaign.expected_every else None
    form = WatchForm(initial={"hours": hours, "ref": campaign.tracked_ref})
    return render(
        request, "campaigns/history.html", {"section": "campaigns", "form": form, **context}
    )


@require_POST
def change_decide(request: HttpRequest, change_id: int) -> HttpResponse:
    """Confirm or dismiss a change, with a note."""
    shown = projects.visible(histories.all_changes(), to=request.user)
    change: Change = get_object_or_404(shown, pk=change_id)
    form = DecisionForm(request.POST)
    if form.is_valid():
        changes.decide(change=change, by=cast(User, request.user), **form.cleaned_data)
        messages.success(request, _("The decision is kept."))
    else:
        messages.error(request, _("This is no decision: confirm the change or dismiss it."))
    if request.POST.get("from") == "inbox":
        return redirect("change-list")
    return redirect(webhooks.history_path(change.cell.campaign, change))


@require_POST
def campaign_watch(request: HttpRequest, slug: str) -> HttpResponse:
    """Set how often uploads are expected, and the branch of the history."""
    campaign = get_object_or_404(_uploaded(request), slug=slug)
    form = WatchForm(request.POST)
    if form.is_valid():
        hours = form.cleaned_data["hours"]
        every = timedelta(hours=hours) if hours else None
        watchdog.expect(campaign=campaign, every=every)
        watchdog.track(campaign=campaign, ref=form.cleaned_data["ref"])
        messages.success(request, _("What is expected of this campaign is kept."))
    else:
        messages.error(request, _("Give a number of hours from 0.1 to 8760, or nothing."))
    return redirect("campaign-history", slug=slug)


def _uploaded(request: HttpRequest) -> QuerySet[Campaign]:
    found = Campaign.objects.filter(origin=Origin.UPLOADED).select_related("scenario", "project")
    return projects.visible(found, to=request.user)
