"""Schedules: the list, making one of a campaign, and switching it."""

from datetime import date, timedelta
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import visible
from runs.models import Campaign, Schedule
from runs.schedules.selectors import schedules as schedule_selectors
from runs.schedules.services import schedules
from runs.shared import pages

A_MONDAY = date(2024, 1, 1)


class ScheduleForm(forms.Form):
    """When a campaign's design is queued again."""

    title = forms.CharField(label=_("Title"), max_length=200)
    kind = forms.ChoiceField(
        label=_("Begins"), choices=Schedule.Kind.choices, widget=forms.RadioSelect
    )
    weekdays = forms.TypedMultipleChoiceField(
        label=_("Weekdays"),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    at = forms.TimeField(
        label=_("Time of day"),
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        max_length=60,
        help_text=_("Such as UTC or Asia/Tokyo."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        days = [
            (number, A_MONDAY + timedelta(days=number - 1))
            for number in schedules.EVERY_DAY
        ]
        choices = [(number, date_format(day, "l")) for number, day in days]
        cast(forms.TypedMultipleChoiceField, self.fields["weekdays"]).choices = choices


@addresses.page("schedule-list")
def schedule_list(request: HttpRequest) -> HttpResponse:
    """All schedules, and what they did last."""
    context = {"schedules": schedule_selectors.listed(to=request.user)}
    return render(request, "schedules/list.html", context)


@addresses.form("schedule-new", Right.QUEUE, of="campaign")
def schedule_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue a campaign again automatically."""
    campaign = get_object_or_404(
        visible(Campaign.objects.all(), to=request.user), slug=slug
    )
    initial = {
        "title": campaign.title,
        "kind": Schedule.Kind.TIMES,
        "weekdays": schedules.EVERY_DAY,
        "at": "02:00",
        "time_zone": "UTC",
    }
    form = ScheduleForm(
        request.POST if request.method == "POST" else None, initial=initial
    )
    if form.is_valid():
        with pages.faults_of(form):
            _create(request, form.cleaned_data, campaign)
            return redirect("schedule-list")
    return render(request, "schedules/form.html", {"form": form, "campaign": campaign})


@addresses.action("schedule-switch", Right.QUEUE)
def schedule_switch(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Switch a schedule on or off."""
    schedule = _schedule(request, schedule_id)
    schedules.enable(schedule=schedule, enabled=not schedule.enabled)
    return redirect("schedule-list")


@addresses.action("schedule-delete", Right.QUEUE)
def schedule_delete(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Remove a schedule; its campaigns stay."""
    schedules.delete(schedule=_schedule(request, schedule_id))
    messages.success(request, _("The schedule is removed; its campaigns stay."))
    return redirect("schedule-list")


def _schedule(request: HttpRequest, schedule_id: int) -> Schedule:
    return get_object_or_404(schedule_selectors.listed(to=request.user), pk=schedule_id)


def _create(request: HttpRequest, fields: dict[str, Any], campaign: Campaign) -> None:
    time_of_day = fields.pop("at")
    schedules.create(
        campaign=campaign,
        hour=time_of_day.hour,
        minute=time_of_day.minute,
        by=cast(User, request.user),
        may_prioritise=permissions.may_for(
            request.user, Right.PRIORITISE, campaign.project
        ),
        **fields,
    )
