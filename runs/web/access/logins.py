"""Logins and changes of one's own account in the audit trail, as Django and django-allauth tell."""

from datetime import timedelta
from typing import Any

from allauth.account import signals as account
from allauth.account.adapter import get_adapter
from allauth.mfa import signals as mfa
from allauth.socialaccount import signals as social
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from runs.models import AuditEntry
from runs.services.access import audit

# Of one kind and one account: a flood of guesses must not bury the rest of the trail.
MOST = 10
WITHIN = timedelta(minutes=10)
# What somebody types as a name may be their password: a name that nobody has is not kept.
UNKNOWN = "account of nobody"


def watch() -> None:
    """Listen from now on."""
    user_logged_in.connect(_logged_in, dispatch_uid="audit")
    user_logged_out.connect(_logged_out, dispatch_uid="audit")
    user_login_failed.connect(_refused, dispatch_uid="audit")
    mfa.authentication_failed.connect(_refused_second_factor, dispatch_uid="audit")
    for signal, action in (
        (account.password_changed, "password_changed"),
        (account.password_set, "password_set"),
        (account.password_reset, "password_reset"),
        (account.email_changed, "email_changed"),
        (account.user_signed_up, "account_made"),
        (mfa.authenticator_added, "second_factor_added"),
        (mfa.authenticator_removed, "second_factor_removed"),
        (mfa.authenticator_reset, "second_factor_renewed"),
    ):
        signal.connect(_changes(action), weak=False, dispatch_uid=f"audit {action}")
    social.social_account_added.connect(_connected, dispatch_uid="audit")
    social.social_account_removed.connect(_disconnected, dispatch_uid="audit")


def _logged_in(request: HttpRequest, user: User, **_told: Any) -> None:
    _note("logged_in", request, user)


def _logged_out(request: HttpRequest, user: User | None, **_told: Any) -> None:
    if user is not None:
        _note("logged_out", request, user)


def _refused(request: HttpRequest | None, credentials: dict[str, Any], **_told: Any) -> None:
    """A wrong password. Nothing of what was typed is kept, except the name of an account."""
    typed = str(credentials.get("username") or credentials.get("email") or "")
    found = Q(username=typed) | Q(email__iexact=typed)
    user = User.objects.filter(found).first() if typed else None
    _note("login_refused", request, user, is_known=False)


def _refused_second_factor(request: HttpRequest, user: User, **_told: Any) -> None:
    _note("second_factor_refused", request, user, is_known=False)


def _changes(action: str) -> Any:
    def noted(request: HttpRequest, user: User, **told: Any) -> None:
        kind = {"kind": told["authenticator"].type} if "authenticator" in told else {}
        _note(action, request, user, **kind)

    return noted


def _connected(request: HttpRequest, sociallogin: Any, **_told: Any) -> None:
    _note("login_elsewhere_added", request, sociallogin.user)


def _disconnected(request: HttpRequest, socialaccount: Any, **_told: Any) -> None:
    _note("login_elsewhere_removed", request, socialaccount.user)


def _note(
    action: str,
    request: HttpRequest | None,
    user: User | None,
    *,
    is_known: bool = True,
    **told: Any,
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
        told["further_ones"] = f"not recorded for {WITHIN.total_seconds() / 60:.0f} minutes"
    if request is not None and "REMOTE_ADDR" in request.META:
        told["address"] = get_adapter().get_client_ip(request)
    audit.record(action, subject, after=told)
