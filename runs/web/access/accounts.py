"""What accounts are here, for django-allauth: no open sign-up, and secrets that are encrypted."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

from runs.services.access import encryption, people
from runs.services.errors import ServiceError

# Of the session: the secret of the invitation that somebody follows.
INVITATION = "invitation"


def is_invited(request: HttpRequest) -> bool:
    """Whether somebody has come by an invitation that is good."""
    try:
        people.opened(secret=request.session.get(INVITATION, ""))
    except ServiceError:
        return False
    return True


def context(_request: HttpRequest) -> dict[str, Any]:
    """Whether there is a login elsewhere, for the pages of accounts."""
    return {"openid_configured": bool(settings.OPENID_ISSUER)}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Only invited people can create an account, which makes them members."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """No open sign-up."""
        return is_invited(request)

    @transaction.atomic
    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Create account and membership together: an invitation already used creates neither."""
        saved: User = super().save_user(request, user, form, commit)
        people.accept(secret=request.session.pop(INVITATION, ""), user=saved)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """OpenID Connect: invited people, or everybody whom the provider lets in."""

    def is_open_for_signup(self, request: HttpRequest, _sociallogin: Any) -> bool:
        """As BENCHLAB_OIDC_SIGN_UP says; without a role in any project nobody may do much."""
        return settings.OPENID_SIGN_UP or is_invited(request)

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Create the account, and the membership of an invited person."""
        saved: User = super().save_user(request, sociallogin, form)
        if secret := request.session.pop(INVITATION, ""):
            people.accept(secret=secret, user=saved)
        return saved


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted at rest, as SSH keys are."""

    def encrypt(self, text: str) -> str:
        """Under BENCHLAB_ENCRYPTION_KEY."""
        return encryption.encrypt(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises InvalidToken where the key is another."""
        return encryption.decrypt(encrypted_text.encode())
