"""Webhooks: the list with their deliveries, a new one, whose secret is shown once, and removing."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs.models import Webhook
from runs.selectors.changes import webhooks as webhook_selectors
from runs.services.access import projects
from runs.services.changes import webhooks
from runs.services.changes.webhooks import NewWebhook
from runs.services.errors import ServiceError
from runs.web import notices
from runs.web.changes.webhook_forms import WebhookForm


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_list(request: HttpRequest) -> HttpResponse:
    """The webhooks with their last reports, and the form of a new one. For maintainers."""
    user = cast(User, request.user)
    projects.default()  # creates the default project, so that one can be chosen
    if request.method != "POST":
        return _page(request, WebhookForm(user=user))
    form = WebhookForm(request.POST, user=user)
    if form.is_valid():
        try:
            made = webhooks.create(**form.cleaned_data)
        except ServiceError as error:
            notices.into_form(form, error)
        else:
            # No redirect: the secret is nowhere but in this answer.
            return _page(request, WebhookForm(user=user), made=made)
    return _page(request, form)


@require_POST
def webhook_ping(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Queue a report without an event."""
    webhooks.ping(webhook=_seen(request, webhook_id))
    messages.success(request, _("A ping is on its way; its result appears in the list."))
    return redirect("webhook-list")


@require_POST
def webhook_remove(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Remove a webhook, and what waits for it."""
    webhook = _seen(request, webhook_id)
    webhooks.remove(webhook=webhook)
    messages.success(request, _("The webhook to %(url)s was removed.") % {"url": webhook.url})
    return redirect("webhook-list")


def _seen(request: HttpRequest, webhook_id: int) -> Webhook:
    found: Webhook = get_object_or_404(webhook_selectors.of(request.user), pk=webhook_id)
    return found


def _page(request: HttpRequest, form: WebhookForm, made: NewWebhook | None = None) -> HttpResponse:
    context = {
        "section": "tokens",
        "form": form,
        "made": made,
        "webhooks": webhook_selectors.with_deliveries(request.user),
    }
    return render(request, "webhooks/list.html", context)
