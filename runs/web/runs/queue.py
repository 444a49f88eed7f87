"""Steering the queue: pause, resume, retry, priority, and maintenance of a server."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from runs.models import Campaign, Run, Server
from runs.selectors.access.projects import visible
from runs.services.campaigns import campaigns, repeats
from runs.services.runs import attempts
from runs.services.servers import maintenance
from runs.web import pages


class PriorityForm(forms.Form):
    """A campaign's place among those that wait."""

    priority = forms.IntegerField()


class RoundsForm(forms.Form):
    """How many more rounds."""

    rounds = forms.IntegerField(min_value=1)


class MaintenanceForm(forms.Form):
    """Why no run should start, and until when (in the site's time zone)."""

    reason = forms.CharField(max_length=200, required=False)
    until = forms.DateTimeField(required=False)


def campaign_pause(request: HttpRequest, slug: str) -> HttpResponse:
    """Start no further run."""
    campaign = _campaign(request, slug)
    _try(request, lambda: campaigns.pause(campaign=campaign), _("The campaign is paused."))
    return redirect("campaign-detail", slug=slug)


def campaign_resume(request: HttpRequest, slug: str) -> HttpResponse:
    """Let runs start again."""
    campaign = _campaign(request, slug)
    _try(request, lambda: campaigns.resume(campaign=campaign), _("The campaign goes on."))
    return redirect("campaign-detail", slug=slug)


def campaign_retry(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue all runs again that ended without success."""
    campaign = _campaign(request, slug)
    done = _("The runs that did not finish are queued again.")
    _try(request, lambda: campaigns.retry(campaign=campaign, by=request.user), done)
    return redirect("campaign-detail", slug=slug)


def campaign_rounds(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue more rounds of a campaign that leaves something undecided."""
    campaign, form = _campaign(request, slug), RoundsForm(request.POST)
    if form.is_valid():
        rounds = form.cleaned_data["rounds"]
        done = _("The further rounds are queued.")
        _try(request, lambda: repeats.add_rounds(campaign=campaign, rounds=rounds), done)
    else:
        messages.error(request, _("Rounds are a whole number."))
    return redirect("campaign-detail", slug=slug)


def campaign_priority(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a campaign's place among those that wait."""
    campaign, form = _campaign(request, slug), PriorityForm(request.POST)
    if form.is_valid():
        priority = form.cleaned_data["priority"]
        done = _("The priority is now %(priority)d.") % {"priority": priority}
        _try(request, lambda: campaigns.prioritise(campaign=campaign, priority=priority), done)
    else:
        messages.error(request, _("A priority is a whole number."))
    return redirect("campaign-detail", slug=slug)


def run_retry(request: HttpRequest, run_id: int) -> HttpResponse:
    """Queue a run again that ended without success."""
    run = get_object_or_404(visible(Run.objects.all(), to=request.user), pk=run_id)
    _try(request, lambda: attempts.retry(run=run, by=request.user), _("The run is queued again."))
    return redirect("run-detail", run_id=run_id)


def server_maintain(request: HttpRequest, slug: str) -> HttpResponse:
    """Start no run on a server."""
    server, form = get_object_or_404(Server, slug=slug), MaintenanceForm(request.POST)
    if form.is_valid():
        given = form.cleaned_data
        _try(
            request,
            lambda: maintenance.begin(server=server, reason=given["reason"], until=given["until"]),
            _("No run starts on this server until its maintenance is over."),
        )
    else:
        messages.error(request, _("Give the end as date and time, such as 2026-07-01 18:00."))
    return redirect("server-detail", slug=slug)


def server_release(request: HttpRequest, slug: str) -> HttpResponse:
    """End a server's maintenance."""
    server = get_object_or_404(Server, slug=slug)
    _try(request, lambda: maintenance.end(server=server), _("Runs start on this server again."))
    return redirect("server-detail", slug=slug)


def _campaign(request: HttpRequest, slug: str) -> Campaign:
    shown: QuerySet[Campaign] = visible(Campaign.objects.all(), to=request.user)
    return get_object_or_404(shown, slug=slug)


def _try(request: HttpRequest, act: Callable[[], object], done: str) -> None:
    with pages.refusals(request):
        act()
        messages.success(request, done)
