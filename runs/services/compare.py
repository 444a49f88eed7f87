"""Comparing: comparisons that a person has saved."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import SavedComparison
from runs.selectors.compare.state import CompareState
from runs.services import slugs
from runs.services.errors import ServiceError


@transaction.atomic
def save_comparison(*, state: CompareState, title: str, note: str, user: User) -> SavedComparison:
    """Store a state under a title. Raises ServiceError without a title or without series."""
    title, note = (text.replace("\0", "").strip() for text in (title, note))
    if not title:
        raise ServiceError(
            code="title_missing",
            message=_("The comparison has no title."),
            remedy=_("Give it a title that others can find it by."),
            field="title",
        )
    if not state.series:
        raise ServiceError(
            code="no_series",
            message=_("Nothing is compared yet."),
            remedy=_("Add at least one series before saving."),
        )
    comparison = SavedComparison(title=title[:200], note=note, query=state.query, created_by=user)
    return slugs.store(comparison, called=title, otherwise="comparison")
