"""Logins: the gate before all pages, signing up, and a person's account in the audit trail."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from allauth.account import forms
from allauth.account import signals as account
from allauth.account.adapter import get_adapter
from allauth.mfa import signals as mfa
from allauth.socialaccount import signals as social
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from rest_framework.permissions import SAFE_METHODS

from runs.models import AuditEntry
from runs.selectors.access import permissions
from runs.selectors.access.permission_table import Right
from runs.services.access import audit

# Of one kind and one account: a flood of guesses must not bury the rest of the trail.
MOST = 10
WITHIN = timedelta(minutes=10)
# What somebody types as a name may be their password: a name that nobody has is not kept.
UNKNOWN = "account of nobody"


def watch() -> None:
    """Listen from now on. Being called again changes nothing."""
    user_login_failed.connect(_refused, dispatch_uid="audit")
    mfa.authentication_failed.connect(_refused_second_factor, dispatch_uid="audit")
    for signal, action in (
        (user_logged_in, "logged_in"),
        (user_logged_out, "logged_out"),
        (account.password_changed, "password_changed"),
        (account.password_set, "password_set"),
        (account.password_reset, "password_reset"),
        (account.email_changed, "email_changed"),
        (account.user_signed_up, "account_made"),
        (mfa.authenticator_added, "second_factor_added"),
        (mfa.authenticator_removed, "second_factor_removed"),
        (mfa.authenticator_reset, "second_factor_renewed"),
        (social.social_account_added, "login_elsewhere_added"),
        (social.social_account_removed, "login_elsewhere_removed"),
    ):
        signal.connect(_noting(action), weak=False, dispatch_uid=f"audit {action}")


def _refused(request: HttpRequest | None, credentials: dict[str, Any], **_details: Any) -> None:
    """A wrong password. Nothing of what was typed is kept, except the name of an account."""
    typed = str(credentials.get("username") or credentials.get("email") or "")
    found = Q(username=typed) | Q(email__iexact=typed)
    user = User.objects.filter(found).first() if typed else None
    _note("login_refused", request, user, is_known=False)


def _refused_second_factor(request: HttpRequest, user: User, **_details: Any) -> None:
    _note("second_factor_refused", request, user, is_known=False)


def _noting(action: str) -> Any:
    def noted(request: HttpRequest, user: User | None = None, **details: Any) -> None:
        elsewhere = details.get("sociallogin") or details.get("socialaccount")
        owner = elsewhere.user if elsewhere else user
        kind = {"kind": details["authenticator"].type} if "authenticator" in details else {}
        if owner is not None:  # who logs out may be nobody
            _note(action, request, owner, **kind)

    return noted


def _note(
    action: str,
    request: HttpRequest | None,
    user: User | None,
    *,
    is_known: bool = True,
    **details: Any,
) -> None:
    """Add an entry; the last one before others are left out for a while says so."""
    subject = f"account {user.get_username()}" if user else UNKNOWN
    since = timezone.now() - WITHIN
    same = AuditEntry.objects.filter(subject=subject[:300], action=action).order_by("-pk")
    recent = sum(at >= since for at in same.values_list("at", flat=True)[:MOST])
    if recent >= MOST:
        return
    if is_known and user is not None and not audit.present().name:
        audit.become(user.get_username(), "page")
    if recent == MOST - 1:
        details["further_ones"] = f"not recorded for {WITHIN.total_seconds() / 60:.0f} minutes"
    if request is not None and "REMOTE_ADDR" in request.META:
        details["address"] = get_adapter().get_client_ip(request)
    audit.record(action, subject, after=details)


class SignupForm(forms.SignupForm):  # type: ignore[misc]
    """As allauth's; our templates say by themselves which fields are optional."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail")


Answer = Callable[[HttpRequest], HttpResponse]


class Gate:
    """Middleware that checks the table of permissions for pages: who may, by which methods."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response
        # Only requests log somebody in: control and workers load nothing of all this.
        watch()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let it through: the view is known only after the address was resolved."""
        with audit.acting(audit.Actor()):
            return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, _args: Any, named: dict[str, Any]
    ) -> HttpResponse | None:
        """Refuse what is not allowed. Absent and hidden objects are not found (404)."""
        match = request.resolver_match
        address = match.view_name if match else ""
        if address.startswith("api:") or hasattr(view, "cls"):
            return None  # a door of the API, which asks the table itself
        if view.__module__.startswith("runs.web."):
            methods = permissions.methods_of(address)
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
        if request.method not in SAFE_METHODS:
            audit.become(request.user.get_username(), "page")
        right = permissions.right_of(address, request.method or "GET")
        if right is None or right == Right.LOOK:
            return None
        try:
            if permissions.decide(request.user, right, address, named) is None:
                return None
        except permissions.NotThereError as error:
            raise Http404 from error
        if request.user.is_authenticated:
            raise PermissionDenied(_("Your role does not allow this."))
        return _to_login(request)


def _to_login(request: HttpRequest) -> HttpResponse:
    """A page redirects to the login and back to itself. An action is refused with a message.

    Of an act the login leads back to the page that it came from: by its own address it would be
    asked for as a page, which it is not. A part of a page (htmx) is answered 401, so that what
    was typed there stays.
    """
    if getattr(request, "htmx", False):
        return HttpResponse(_("Log in first."), status=401, content_type="text/plain")
    if request.method in SAFE_METHODS:
        return redirect_to_login(request.get_full_path())
    messages.warning(request, _("Nothing was done: you are logged out. Log in and try again."))
    return redirect_to_login(_page_before(request))


def _page_before(request: HttpRequest) -> str:
    """The page of this site that the request came from; the first page if unknown."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return "/"
    parts = urlsplit(before)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
