"""Tokens: making, checking and revoking them."""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Role
from runs.access.services import audit, known_tokens
from runs.access.services.encryption import hashed
from runs.models import Project, Token
from runs.shared.errors import ServiceError

MARK = "blab"
PREFIX_BYTES = 6
SECRET_BYTES = 32
# A token's last use is stored at most this often, so that reading does not become writing.
USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class NewToken:
    """A new token and its text, which cannot be shown again."""

    token: Token
    text: str


@transaction.atomic
def create(
    *,
    name: str,
    scopes: Sequence[str],
    project: Project,
    expires_at: datetime | None = None,
    by: User | None = None,
) -> NewToken:
    """Create a token of 256 random bits, of which only the hash is stored.

    Without `by`, the machine's administrator makes it. Raises ServiceError `no_scope`,
    `scope_unknown`, `scope_not_allowed` or `expires_in_the_past`.
    """
    _check(scopes, expires_at)
    _check_role(scopes, project, by)
    prefix, secret = (
        secrets.token_hex(PREFIX_BYTES),
        secrets.token_urlsafe(SECRET_BYTES),
    )
    token = Token.objects.create(
        name=name,
        prefix=prefix,
        secret_hash=hashed(secret),
        scopes=[scope for scope in Token.Scope.values if scope in scopes],
        project=project,
        expires_at=expires_at,
        created_by=by,
    )
    details = {"prefix": prefix, "scopes": token.scopes, "expires_at": expires_at}
    audit.record("token_made", f"token {name}", project=project, after=details)
    return NewToken(token, f"{MARK}_{prefix}_{secret}")


def authenticate(*, text: str) -> Token:
    """The token with that text, with its project and owner.

    At most one query (see `known_tokens`), one more for a private project, and one write a minute.

    Raises ServiceError `token_invalid`, `token_revoked`, `token_expired`, `owner_inactive`, or
    `owner_not_member` of a private project. All but the first are reported only to a caller who
    knows the secret.
    """
    token = _known(text)
    now = timezone.now()
    if token.revoked_at is not None:
        raise ServiceError(
            "token_revoked", _("This token was revoked."), remedy=_renewal()
        )
    if token.expires_at is not None and token.expires_at <= now:
        raise ServiceError(
            "token_expired", _("This token has expired."), remedy=_renewal()
        )
    if token.created_by is not None and not token.created_by.is_active:
        raise ServiceError(
            "owner_inactive",
            _("The owner of this token may not log in."),
            remedy=_renewal(),
        )
    if _has_lost_its_project(token):
        message = _("The owner of this token is no member of its project any more.")
        remedy = _("Let a member make a token, or join the project again.")
        raise ServiceError("owner_not_member", message, remedy=remedy)
    _note_use(token, now)
    return token


def revoke(*, token: Token) -> Token:
    """Revoke a token for good; one that is revoked already keeps its date."""
    ended = Token.objects.filter(pk=token.pk, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    known_tokens.forget_once_committed()
    token.refresh_from_db()
    if ended:
        details = {"prefix": token.prefix, "scopes": token.scopes}
        audit.record(
            "token_revoked",
            f"token {token.name}",
            project=token.project_id,
            before=details,
        )
    return token


def _check(scopes: Sequence[str], expires_at: datetime | None) -> None:
    if not scopes:
        raise ServiceError("no_scope", _("Choose at least one scope."), field="scopes")
    for scope in scopes:
        if scope not in Token.Scope.values:
            known_scopes = ", ".join(Token.Scope.values)
            message = _("There is no scope %(scope)s; known are: %(known)s.")
            raise ServiceError(
                "scope_unknown",
                message % {"scope": scope, "known": known_scopes},
                field="scopes",
            )
    if expires_at is not None and expires_at <= timezone.now():
        message = _("The token would have expired already.")
        raise ServiceError("expires_in_the_past", message, field="expires_at")


def _check_role(scopes: Sequence[str], project: Project, by: User | None) -> None:
    if by is None:
        return
    allowed = permissions.scopes_of(by, project)
    if missing := [scope for scope in scopes if scope not in allowed]:
        message = _(
            "Your role in the project %(project)s does not allow the scope %(scopes)s."
        )
        names = {"project": project.name, "scopes": ", ".join(missing)}
        raise ServiceError("scope_not_allowed", message % names, field="scopes")


def _known(text: str) -> Token:
    mark, _first, prefix_and_secret = text.partition("_")
    prefix, _second, secret = prefix_and_secret.partition("_")
    token = None
    if mark == MARK and secret and len(text) < 200:
        token = known_tokens.find_token(prefix)
    # Always compare once, in constant time.
    expected = token.secret_hash if token else hashed("")
    if not hmac.compare_digest(expected, hashed(secret)) or token is None:
        message = _("This token is not known.")
        remedy = _(
            "Give it whole, as it was shown once: Authorization: Bearer blab_..."
        )
        raise ServiceError("token_invalid", message, remedy=remedy)
    return token


def _has_lost_its_project(token: Token) -> bool:
    """Whether the owner could no longer make this token, because the project is private."""
    owner, project = token.created_by, token.project
    if owner is None or project.is_public:
        return False
    return permissions.role_in(owner, project.pk) < Role.VIEWER


def _note_use(token: Token, now: datetime) -> None:
    before = now - USE_NOTED_EVERY
    if token.last_used_at is None or token.last_used_at < before:
        unnoted = Q(last_used_at=None) | Q(last_used_at__lt=before)
        Token.objects.filter(unnoted, pk=token.pk).update(last_used_at=now)
        token.last_used_at = now


def _renewal() -> str:
    return _("Make a new one on the page “API tokens”, or by manage.py create_token.")
