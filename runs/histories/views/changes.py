"""Changes: the inbox of what histories found, and the webhooks that report it."""

from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import BigIntegerField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from runs.access import addresses
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.access.services import projects as project_service
from runs.histories.filters import ChangeFilters
from runs.histories.selectors import causes, machines
from runs.histories.selectors import webhooks as webhook_selectors
from runs.histories.services import webhooks
from runs.histories.services.webhooks import EVENTS
from runs.models import Change, Project, Webhook
from runs.queue.selectors import runs
from runs.shared import pages

ROWS = 50
NEWEST = 5
WHICH = (
    ("new", _("new"), (Change.Decision.OPEN,)),
    ("confirmed", _("confirmed"), (Change.Decision.CONFIRMED,)),
    ("dismissed", _("dismissed"), Change.GONE),
    ("all", _("all"), tuple(Change.Decision)),
)
DECISIONS = [
    (change_decision.value, change_decision.label)
    for change_decision in Change.Decision
    if change_decision != "refuted"
]


@addresses.page("change-list")
def change_list(request: HttpRequest) -> HttpResponse:
    """Changes of all campaigns by cause, the newest first, by what was decided about them."""
    filters = ChangeFilters(request.GET, Change.objects.all(), request=request)
    names = {name: decisions for name, _title, decisions in WHICH}
    usual = "all" if filters.fields else "new"
    which = request.GET.get("which", usual)
    which = which if which in names else usual
    decided = filters.qs.filter(decision__in=names[which])
    before_text = request.GET.get("before", "")
    is_later = before_text.isascii() and before_text.isdigit()
    before = (
        min(int(before_text[:20]), BigIntegerField.MAX_BIGINT) if is_later else None
    )
    page = causes.page(decided, number=ROWS, before=before, to=request.user)
    context = {
        "which": which,
        "filters": filters,
        "choices": [(name, title) for name, title, _decisions in WHICH],
        "rows": _rows(page),
        "older": page.older,
        "is_first": not before_text,
        "decisions": DECISIONS,
    }
    return render(request, "histories/changes/list.html", context)


def newest(to: projects.Reader) -> list[dict[str, Any]]:
    """The newest causes that nobody has decided about, for the first page. One query if none."""
    open_ones = Change.objects.filter(decision=Change.Decision.OPEN)
    return _rows(causes.page(open_ones, number=NEWEST, to=to))


def _rows(causes_page: causes.Page) -> list[dict[str, Any]]:
    again = machines.again(causes_page.causes)
    return [
        {
            "cause": cause,
            "job_url": runs.job_address(cause.first.run.labels),
            "again": urlencode(again.get(cause.sha, {})),
        }
        for cause in causes_page.causes
    ]


class WebhookForm(forms.Form):
    """The address to report to, what listens there, the project, and the events."""

    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )
    kind = forms.ChoiceField(
        label=_("What listens there"),
        choices=Webhook.Kind.choices,
        initial=Webhook.Kind.SIGNED,
    )
    project = forms.ModelChoiceField(
        Project.objects.order_by("name", "pk"),
        label=_("Project"),
        to_field_name="slug",
        empty_label=None,
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(event, event) for event in EVENTS],
        initial=list(EVENTS),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data)
        project: Any = self.fields["project"]
        maintained = permissions.may_in(user, Right.WEBHOOKS)
        if maintained is not None:
            project.queryset = project.queryset.filter(pk__in=maintained)


@addresses.form("webhook-list", Right.WEBHOOKS)
@never_cache
def webhook_list(request: HttpRequest) -> HttpResponse:
    """The webhooks with their last reports, and the form of a new one. For maintainers."""
    user = cast(User, request.user)
    project_service.default()  # creates the default project, so that one can be chosen
    form = WebhookForm(request.POST if request.method == "POST" else None, user=user)
    new_webhook = None
    if form.is_valid():
        with pages.faults_of(form):
            # No redirect: the secret is nowhere but in this answer.
            new_webhook = webhooks.create(**form.cleaned_data)
            form = WebhookForm(user=user)
    webhooks_found = webhook_selectors.list_with_deliveries(user)
    return render(
        request,
        "histories/webhooks/list.html",
        {"form": form, "made": new_webhook, "webhooks": webhooks_found},
    )


@addresses.action("webhook-ping", Right.WEBHOOKS)
def webhook_ping(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Queue a report without an event."""
    webhooks.ping(webhook=_seen(request, webhook_id))
    messages.success(
        request, _("A ping is on its way; its result appears in the list.")
    )
    return redirect("webhook-list")


@addresses.action("webhook-remove", Right.WEBHOOKS)
def webhook_remove(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Remove a webhook, and what waits for it."""
    webhook = _seen(request, webhook_id)
    webhooks.remove(webhook=webhook)
    messages.success(
        request, _("The webhook to %(url)s was removed.") % {"url": webhook.url}
    )
    return redirect("webhook-list")


def _seen(request: HttpRequest, webhook_id: int) -> Webhook:
    webhook: Webhook = get_object_or_404(
        webhook_selectors.webhooks(to=request.user), pk=webhook_id
    )
    return webhook
