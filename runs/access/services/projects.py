"""Projects and their people: the default project, new ones, members, and invitations."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.access.services import audit, known_tokens
from runs.access.services.encryption import hashed
from runs.models import Invitation, Membership, Project
from runs.shared.errors import ServiceError

DEFAULT = projects.DEFAULT


def default() -> Project:
    """The public project for everything that names none; made when first needed."""
    project, _created = Project.objects.get_or_create(
        slug=DEFAULT, defaults={"name": "Default"}
    )
    return project


@transaction.atomic
def create(
    *, slug: str, name: str = "", is_public: bool, members: Sequence[User] = ()
) -> Project:
    """Make a project; its members are operators. Raises ServiceError `project_exists`."""
    project, created = Project.objects.get_or_create(
        slug=slug, defaults={"name": name or slug, "is_public": is_public}
    )
    if not created:
        message = _("There is a project %(slug)s already.") % {"slug": slug}
        raise ServiceError(
            "project_exists", message, remedy=_("Choose another."), field="slug"
        )
    project.members.set(members, through_defaults={"role": Membership.Role.OPERATOR})
    details = {"public": is_public, "operators": [user.username for user in members]}
    audit.record("project_made", project, project=project, after=details)
    return project


SECRET_BYTES = 24
GOOD_FOR = timedelta(days=7)


@dataclass(frozen=True)
class NewInvitation:
    """A new invitation and the secret of its link, which cannot be shown again."""

    invitation: Invitation
    secret: str


@transaction.atomic
def invite(*, project: Project, role: str, by: User, note: str = "") -> NewInvitation:
    """Make a link for one person, valid for a week. Raises `role_unknown`."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    invitation = Invitation.objects.create(
        project=project,
        role=_known_role(role),
        note=note,
        secret_hash=hashed(secret),
        invited_by=by,
        expires_at=timezone.now() + GOOD_FOR,
    )
    details = {"role": role, "note": note}
    audit.record("invited", invitation, after=details)
    return NewInvitation(invitation, secret)


def opened_invitation(*, secret: str) -> Invitation:
    """The invitation of a link. Raises ServiceError `invitation_invalid` if it cannot be used.

    It is also invalid if its author may no longer invite people into that project.
    """
    invitations = Invitation.objects.select_related("project", "invited_by").filter(
        secret_hash=hashed(secret)
    )
    invitation = invitations.first()
    if (
        invitation is None
        or not invitation.is_open
        or not permissions.may(
            invitation.invited_by, Right.PEOPLE, invitation.project_id
        )
    ):
        message = _(
            "This invitation is not valid: it was used, has expired or was revoked."
        )
        remedy = _("Ask for another one.")
        raise ServiceError("invitation_invalid", message, remedy=remedy)
    return invitation


@transaction.atomic
def accept(*, secret: str, user: User) -> Membership:
    """Make somebody a member; an existing member keeps the higher of the two roles.

    Raises ServiceError `invitation_invalid`; if two people use it at once, the second is refused.
    """
    invitation = opened_invitation(secret=secret)
    ended = Invitation.objects.filter(pk=invitation.pk, ended_at=None)
    if not ended.update(ended_at=timezone.now(), accepted_by=user):
        raise ServiceError(
            "invitation_invalid", _("This invitation has been used already.")
        )
    membership, created = Membership.objects.get_or_create(
        project=invitation.project, user=user, defaults={"role": invitation.role}
    )
    before = None if created else membership.role
    order = list(Membership.Role.values)
    if not created and order.index(invitation.role) > order.index(membership.role):
        membership.role = invitation.role
        membership.save(update_fields=["role"])
    known_tokens.forget_once_committed()
    _record("invitation_accepted", membership, before)
    return membership


@transaction.atomic
def take_back(*, invitation: Invitation) -> None:
    """End an invitation that nobody has used."""
    Invitation.objects.filter(pk=invitation.pk, ended_at=None).update(
        ended_at=timezone.now()
    )
    details = {"role": invitation.role, "note": invitation.note}
    audit.record("invitation_ended", invitation, before=details)


@transaction.atomic
def change_role(*, membership: Membership, role: str) -> Membership:
    """Change a member's role. Raises `role_unknown`."""
    before, membership.role = membership.role, _known_role(role)
    membership.save(update_fields=["role"])
    known_tokens.forget_once_committed()
    _record("role_changed", membership, before)
    return membership


@transaction.atomic
def remove_member(*, membership: Membership) -> None:
    """End a membership. The person's work stays; their tokens for a private project end."""
    subject, before = f"person {membership.user.username}", {"role": membership.role}
    audit.record(
        "person_removed", subject, project=membership.project_id, before=before
    )
    membership.delete()
    known_tokens.forget_once_committed()


def _record(action: str, membership: Membership, before: str | None) -> None:
    subject = f"person {membership.user.username}"
    was, now = {"role": before}, {"role": membership.role}
    audit.record(action, subject, project=membership.project_id, before=was, after=now)


def _known_role(role: str) -> str:
    if role not in Membership.Role.values:
        raise ServiceError("role_unknown", _("This role does not exist."), field="role")
    return role
