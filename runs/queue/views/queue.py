"""Steering the queue: pause, cancel, retry, priority, and maintenance of a server."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import visible
from runs.campaigns.services import campaigns, repeats
from runs.models import Campaign, Run, Server
from runs.queue.services import attempts, transitions, withdrawals
from runs.servers.services import maintenance, shared_machines
from runs.shared import pages


class PriorityForm(forms.Form):
    """A campaign's place among those that wait."""

    priority = forms.IntegerField()


class RoundsForm(forms.Form):
    """How many more rounds."""

    rounds = forms.IntegerField(min_value=1)


class ReasonForm(forms.Form):
    """Why a run counts or not; the service refuses what is no reason."""

    reason = forms.CharField(required=False)


class MaintenanceForm(forms.Form):
    """Why no run should start, and until when (in the site's time zone)."""

    reason = forms.CharField(max_length=200, required=False)
    until = forms.DateTimeField(required=False)


@dataclass(frozen=True)
class Button:
    """What a button does and then says, and the right that it needs.

    `form` is typed with it, `wrong` says that it is none.
    """

    right: Right
    act: Callable[..., object]
    done: Any
    form: type[forms.Form] = forms.Form
    wrong: Any = ""


BUTTONS = {
    "campaign-pause": Button(
        Right.QUEUE,
        campaigns.pause,
        _("The campaign is paused."),
    ),
    "campaign-resume": Button(
        Right.QUEUE,
        campaigns.resume,
        _("The campaign goes on."),
    ),
    "campaign-retry": Button(
        Right.QUEUE,
        campaigns.retry,
        _("The runs that did not finish are queued again."),
    ),
    "campaign-cancel": Button(
        Right.QUEUE,
        campaigns.cancel,
        _("The campaign is being cancelled; what has finished is kept."),
    ),
    "campaign-rounds": Button(
        Right.QUEUE,
        repeats.add_rounds,
        _("The further rounds are queued."),
        RoundsForm,
        _("Rounds are a whole number."),
    ),
    "campaign-await": Button(
        Right.QUEUE,
        repeats.await_quiet,
        _("The invalid runs are queued, and start when their machines are free."),
    ),
    "campaign-priority": Button(
        Right.PRIORITISE,
        campaigns.prioritise,
        _("The priority is now %(priority)d."),
        PriorityForm,
        _("A priority is a whole number."),
    ),
    "run-retry": Button(
        Right.QUEUE,
        attempts.retry,
        _("The run is queued again."),
    ),
    "run-cancel": Button(
        Right.QUEUE,
        transitions.cancel,
        _("The run is being cancelled."),
    ),
    "run-withdraw": Button(
        Right.WITHDRAW,
        withdrawals.withdraw,
        _("The run is withdrawn."),
        ReasonForm,
    ),
    "run-restore": Button(
        Right.WITHDRAW,
        withdrawals.restore,
        _("The run counts again."),
        ReasonForm,
    ),
    "server-maintain": Button(
        Right.MAINTAIN,
        maintenance.begin,
        _("No run starts on this server until its maintenance is over."),
        MaintenanceForm,
        _("Give the end as date and time, such as 2026-07-01 18:00."),
    ),
    "server-release": Button(
        Right.MAINTAIN,
        maintenance.end,
        _("Runs start on this server again."),
    ),
    "server-separate": Button(
        Right.SERVERS,
        shared_machines.set_apart,
        _("It is measured as a machine of its own from now on."),
    ),
    "server-join": Button(
        Right.SERVERS,
        shared_machines.join,
        _("It takes turns with other registrations of its machine."),
    ),
}
KINDS: dict[str, type[Model]] = {"campaign": Campaign, "run": Run, "server": Server}


for name, button in BUTTONS.items():
    addresses.action(name, button.right)(button.act)


def press(request: HttpRequest, **objects_by_name: Any) -> HttpResponse:
    """Press the button that the address names, and show the object's page again."""
    address = str(request.resolver_match and request.resolver_match.view_name)
    return pressed(
        request, BUTTONS[address], KINDS[address.partition("-")[0]], **objects_by_name
    )


def pressed(
    request: HttpRequest, button: Button, kind: type[Model], **objects_by_name: Any
) -> HttpResponse:
    """Do what a button does with the object of this kind that the address names."""
    word = str(kind._meta.model_name)
    (name, value), *_others = objects_by_name.items()
    rows: Any = visible(kind._default_manager.all(), to=request.user)
    row = get_object_or_404(rows, **{"slug" if name == "slug" else "pk": value})
    form = button.form(request.POST)
    if form.is_valid():
        who = {"by": request.user} if "by" in signature(button.act).parameters else {}
        with pages.refusals(request):
            button.act(**{word: row}, **form.cleaned_data, **who)
            messages.success(request, button.done % form.cleaned_data)
    else:
        messages.error(request, button.wrong)
    return HttpResponseRedirect(reverse(f"{word}-detail", kwargs=objects_by_name))
