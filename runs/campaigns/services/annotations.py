"""Annotations: notes on campaigns and points, conclusions, and discussions of reports."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Role
from runs.access.services import audit
from runs.models import Annotation, Campaign, Cell
from runs.shared.errors import ServiceError

MOST_CHARACTERS = 20_000


@transaction.atomic
def add(
    *,
    campaign: Campaign,
    text: str,
    by: User | None,
    kind: str = Annotation.Kind.NOTE,
    cell: Cell | None = None,
) -> Annotation:
    """Add an annotation to a campaign, or a note to one of its cells.

    Raises ServiceError `empty_text`, `text_too_long`, `unknown_kind`, `cell_of_another_campaign`,
    `not_a_note` (a cell can only have notes).
    """
    if kind not in Annotation.Kind.values:
        message = _("There is no kind %(kind)s; known are %(known)s.")
        message %= {"kind": kind, "known": ", ".join(Annotation.Kind.values)}
        raise ServiceError("unknown_kind", message, field="kind")
    if cell is not None and cell.campaign_id != campaign.pk:
        message = _("This cell is not one of the campaign.")
        raise ServiceError("cell_of_another_campaign", message, field="cell")
    if cell is not None and kind != Annotation.Kind.NOTE:
        message = _(
            "Conclusion and discussion belong to the whole campaign; only notes can belong "
            "to a cell."
        )
        raise ServiceError("not_a_note", message, field="cell")
    return Annotation.objects.create(
        campaign=campaign, cell=cell, kind=kind, text=_checked(text), author=by
    )


@transaction.atomic
def change(*, annotation: Annotation, text: str, by: User) -> Annotation:
    """Change its text. Raises ServiceError `not_the_author`, and the errors of the text."""
    _require_author(annotation, by)
    was, annotation.text = {"text": annotation.text}, _checked(text)
    annotation.save(update_fields=["text"])
    now = {"text": annotation.text}
    audit.record("note_changed", annotation.campaign, before=was, after=now)
    return annotation


@transaction.atomic
def delete(*, annotation: Annotation, by: User) -> None:
    """Delete it. Raises ServiceError `not_the_author`."""
    _require_author(annotation, by)
    audit.record("note_deleted", annotation.campaign, before={"text": annotation.text})
    annotation.delete()


def may_change(annotation: Annotation, user: User) -> bool:
    """Authors can change their own annotations, maintainers of the project can change all."""
    if user.pk is not None and annotation.author_id == user.pk:
        return True
    project = annotation.campaign.project_id or permissions.default_project()
    return permissions.role_in(user, project) >= Role.MAINTAINER


def _require_author(annotation: Annotation, user: User) -> None:
    if not may_change(annotation, user):
        message = _("Only its author or a maintainer of the project can change this.")
        remedy = _("Write your own note next to it.")
        raise ServiceError("not_the_author", message, remedy=remedy)


def _checked(text: str) -> str:
    # PostgreSQL cannot store a null character in text.
    text = text.replace("\0", "").strip()
    if not text:
        raise ServiceError("empty_text", _("There is no text."), field="text")
    if len(text) > MOST_CHARACTERS:
        message = _("The text has %(count)d characters; at most %(most)d can be kept.")
        message %= {"count": len(text), "most": MOST_CHARACTERS}
        raise ServiceError("text_too_long", message, field="text")
    return text
