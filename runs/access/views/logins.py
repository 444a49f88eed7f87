"""Logins: the gate before all pages, limits of guessing, signing up, and their audit trail."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from allauth.account import forms
from allauth.account import signals as account
from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.core.internal import ratelimit
from allauth.mfa import signals as mfa
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount import signals as social
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.signals import (
    user_logged_in,
    user_logged_out,
    user_login_failed,
)
from django.contrib.auth.views import redirect_to_login
from django.contrib.sites.requests import RequestSite
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from rest_framework.permissions import SAFE_METHODS

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.services import audit, encryption, projects
from runs.models import AuditEntry
from runs.shared.errors import ServiceError

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


def _refused(
    request: HttpRequest | None, credentials: dict[str, Any], **_details: Any
) -> None:
    """A wrong password. Nothing of what was typed is kept, except the name of an account."""
    typed = str(credentials.get("username") or credentials.get("email") or "")
    is_typed_user = Q(username=typed) | Q(email__iexact=typed)
    user = User.objects.filter(is_typed_user).first() if typed else None
    _note("login_refused", request, user, is_known=False)


def _refused_second_factor(request: HttpRequest, user: User, **_details: Any) -> None:
    _note("second_factor_refused", request, user, is_known=False)


def _noting(action: str) -> Any:
    def noted(request: HttpRequest, user: User | None = None, **details: Any) -> None:
        elsewhere = details.get("sociallogin") or details.get("socialaccount")
        owner = elsewhere.user if elsewhere else user
        kind = (
            {"kind": details["authenticator"].type}
            if "authenticator" in details
            else {}
        )
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
    same = AuditEntry.objects.filter(subject=subject[:300], action=action).order_by(
        "-pk"
    )
    recent = sum(
        attempted_at >= since
        for attempted_at in same.values_list("at", flat=True)[:MOST]
    )
    if recent >= MOST:
        return
    if is_known and user is not None and not audit.present().name:
        audit.become(user.get_username(), "page")
    if recent == MOST - 1:
        details["further_ones"] = (
            f"not recorded for {WITHIN.total_seconds() / 60:.0f} minutes"
        )
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
        self,
        request: HttpRequest,
        view: Any,
        _args: Any,
        objects_by_name: dict[str, Any],
    ) -> HttpResponse | None:
        """Refuse what is not allowed. Absent and hidden objects are not found (404)."""
        match = request.resolver_match
        address = match.view_name if match else ""
        if address.startswith("api:") or hasattr(view, "cls"):
            return None  # a door of the API, which asks the table itself
        methods = permissions.methods_of(address)
        if methods and request.method not in methods:
            return HttpResponseNotAllowed(methods)
        if request.method not in SAFE_METHODS:
            audit.become(request.user.get_username(), "page")
        right = permissions.right_of(address, request.method or "GET")
        if right is None or right == Right.LOOK:
            return None
        try:
            if (
                permissions.decide(request.user, right, address, objects_by_name)
                is None
            ):
                return None
        except permissions.NotThereError as error:
            raise Http404 from error
        if request.user.is_authenticated:
            raise PermissionDenied(_("Your role does not allow this."))
        return _ask_to_log_in(request)


def _ask_to_log_in(request: HttpRequest) -> HttpResponse:
    """A page redirects to the login and back to itself. An action is refused with a message.

    Of an act the login leads back to the page that it came from: by its own address it would be
    asked for as a page, which it is not. A part of a page (htmx) is answered 401, so that what
    was typed there stays.
    """
    if getattr(request, "htmx", False):
        return HttpResponse(_("Log in first."), status=401, content_type="text/plain")
    if request.method in SAFE_METHODS:
        return redirect_to_login(request.get_full_path())
    messages.warning(
        request, _("Nothing was done: you are logged out. Log in and try again.")
    )
    return redirect_to_login(_page_before(request))


def _page_before(request: HttpRequest) -> str:
    """The page of this site that the request came from; the first page if unknown."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return "/"
    url = urlsplit(before)
    return f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"


# Of the session: the secret of the invitation that somebody follows.
INVITATION = "invitation"


def is_invited(request: HttpRequest) -> bool:
    """Whether somebody has come by an invitation that is good."""
    try:
        projects.opened_invitation(secret=request.session.get(INVITATION, ""))
    except ServiceError:
        return False
    return True


# Failed logins of a name from everywhere, and then those from each address.
GUESSES = {"login_of_name": "100/h/key", "login_when_guessed": "1/5m/key"}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Only invited people can create an account, which makes them members.

    Failed logins lock their address, not the person: whoever knows the password gets in from
    another one. Where a name is guessed from many addresses, each has few attempts.
    """

    def _get_login_attempts_cache_key(
        self, request: HttpRequest, **credentials: Any
    ) -> str:
        """Of the name at this address."""
        return f"{self._name(request, credentials)} {ratelimit.get_ip(request)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse what exceeds the limits; a login that succeeds takes its attempt back."""
        super().pre_authenticate(request, **credentials)
        name = self._name(request, credentials)
        for action, key in (
            ("login_of_name", name),
            ("login_when_guessed", f"{name} {ratelimit.get_ip(request)}"),
        ):
            usage = ratelimit.consume(
                request, app="benchlab", action=action, config=GUESSES, key=key
            )
            if usage is not None:
                self._login_failed_rl_usage.usage += usage.usage
                return
        raise self.validation_error("too_many_login_attempts")

    def send_mail(
        self, template_prefix: str, email: str, context: dict[str, Any]
    ) -> None:
        """In the name of BenchLab, not of its host."""
        site = RequestSite(self.request)
        site.name = "BenchLab"
        super().send_mail(template_prefix, email, {"current_site": site, **context})

    def _name(self, request: HttpRequest, credentials: Mapping[str, Any]) -> str:
        return str(super()._get_login_attempts_cache_key(request, **credentials))

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """No open sign-up."""
        return is_invited(request)

    @transaction.atomic
    def save_user(
        self, request: HttpRequest, user: User, form: Any, commit: bool = True
    ) -> User:
        """Create account and membership together: an invitation already used creates neither."""
        saved: User = super().save_user(request, user, form, commit)
        projects.accept(secret=request.session.pop(INVITATION, ""), user=saved)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """OpenID Connect: invited people, or everybody whom the provider lets in."""

    def is_open_for_signup(self, request: HttpRequest, _sociallogin: Any) -> bool:
        """As BENCHLAB_OIDC_SIGN_UP says; without a role in any project nobody may do much."""
        return settings.OPENID_SIGN_UP or is_invited(request)

    @transaction.atomic
    def save_user(
        self, request: HttpRequest, sociallogin: Any, form: Any = None
    ) -> User:
        """Create the account, and the membership of an invited person."""
        saved: User = super().save_user(request, sociallogin, form)
        if secret := request.session.pop(INVITATION, ""):
            projects.accept(secret=secret, user=saved)
        return saved


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted at rest, as SSH keys are."""

    def encrypt(self, text: str) -> str:
        """Under BENCHLAB_ENCRYPTION_KEY."""
        return encryption.encrypt(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises InvalidToken where the key is another."""
        return encryption.decrypt(encrypted_text.encode())
