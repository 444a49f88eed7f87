"""Authentication: a token in `Authorization: Bearer`, or a login; and their permissions."""

import hmac
from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext as _
from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotFound, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import Reader
from runs.access.services import audit, tokens
from runs.models import Project, Token
from runs.shared.api.parsing import TooLarge
from runs.shared.api.upload_limits import MOST_BYTES
from runs.shared.errors import ServiceError

SCHEME = "bearer"
FORMS = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})


class TokenUser(AnonymousUser):
    """Stands for a token that has no person behind it; it has logged in, and owns nothing."""

    @property
    def is_authenticated(self) -> Any:
        """A token is somebody."""
        return True

    @property
    def is_anonymous(self) -> Any:
        """A token is somebody."""
        return False


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer blab_<prefix>_<secret>`."""

    def authenticate(self, request: Request) -> tuple[User | TokenUser, Token] | None:
        """Return the token and its owner; None where the request has no such header."""
        scheme, _space, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME:
            return None
        if (monitor := _monitor(text.strip())) is not None:
            return TokenUser(), monitor
        try:
            token = tokens.authenticate(text=text.strip())
        except ServiceError as error:
            raise AuthenticationFailed(
                f"{error.message} {error.remedy}", error.code
            ) from error
        return token.created_by or TokenUser(), token

    def authenticate_header(self, request: Request) -> str:
        """What a 401 says in WWW-Authenticate."""
        return 'Bearer realm="BenchLab"'


def _monitor(text: str) -> Token | None:
    """A token of monitoring alone, for BENCHLAB_MONITOR_TOKEN: known without the database."""
    monitor_token = settings.MONITOR_TOKEN
    if not monitor_token or not hmac.compare_digest(
        text.encode(), monitor_token.encode()
    ):
        return None
    return Token(name="monitor", scopes=[Token.Scope.MONITOR])


class CookieAuthentication(SessionAuthentication):
    """Who has logged in to the pages. Whatever changes something needs the CSRF token as well."""

    def enforce_csrf(self, request: Request) -> None:
        """Check the token of Django's request: DRF's own would read the body, which doors read.

        Only a form is looked into for the token, and not one that is too large for any door.
        """
        sent = request._request
        length = sent.headers.get("Content-Length", "")
        if sent.content_type in FORMS and length.isdigit() and int(length) > MOST_BYTES:
            raise TooLarge
        super().enforce_csrf(cast(Request, sent))


class TablePermission(BasePermission):
    """What the table of permissions says of the address, for a person as for a token."""

    message = ""
    code = ""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the request is allowed; if not, `message` says what is missing."""
        match = request._request.resolver_match
        if match is None or getattr(view, str(request.method).lower(), None) is None:
            return True  # The door cannot do that for anybody, and says so itself.
        right = permissions.right_of(match.view_name, str(request.method))
        if right is None:
            return True
        actor = reader(request)
        try:
            denied = permissions.decide(actor, right, match.view_name, match.kwargs)
        except permissions.NotThereError as error:
            raise NotFound from error
        if denied is not None:
            self.message, self.code = _reason(request, denied)
        # Name the actor for the audit trail.
        token = (
            f", token {actor.name} ({actor.prefix})" if isinstance(actor, Token) else ""
        )
        audit.become(request.user.get_username(), f"api{token}")
        return denied is None


def _reason(request: Request, denied: permissions.Denied) -> tuple[str, str]:
    if denied.scope:
        message = _("This token lacks the scope “%(scope)s”.") % {"scope": denied.scope}
        return message, "insufficient_scope"
    if isinstance(request.auth, Token):
        return _(
            "The owner of this token may not do this in its project."
        ), "permission_denied"
    if not request.user.is_authenticated:
        return "", "not_authenticated"
    return _("Your role does not allow this."), "permission_denied"


def reader(request: Request) -> Reader:
    """The reader: the token if there is one, otherwise the user."""
    return request.auth if isinstance(request.auth, Token) else request.user


def person(request: Request) -> User | None:
    """Who has logged in, or owns the token; nobody behind a token of the machine."""
    return request.user if isinstance(request.user, User) else None


def project_of(request: Request, right: Right) -> Project | None:
    """The token's; of a person the default one, or one of theirs."""
    if isinstance(request.auth, Token):
        project: Project = request.auth.project
        return project
    return permissions.project_for(cast(User, request.user), right)


def require_own(request: Request, is_own: Callable[[Token], bool]) -> None:
    """Raise PermissionDenied for a token of another project than that of what it changes."""
    if isinstance(request.auth, Token) and not is_own(request.auth):
        raise PermissionDenied(
            _("This token belongs to another project."), "other_project"
        )


def asker(request: Request) -> str:
    """The name of the caller in events."""
    if isinstance(request.auth, Token):
        return _("the token “%(name)s”") % {"name": request.auth.name}
    return request.user.get_username()


class CookieScheme(SessionScheme):  # type: ignore[no-untyped-call]
    """The session's cookie in OpenAPI."""

    target_class = CookieAuthentication  # type: ignore[assignment]


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The tokens in OpenAPI."""

    target_class = BearerAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Bearer tokens."""
        return {
            "type": "http",
            "scheme": SCHEME,
            "bearerFormat": "blab_<prefix>_<secret>",
            "description": "Made on the page /tokens/ or by manage.py create_token.",
        }
