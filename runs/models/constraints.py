"""Constraints and indexes that several models have."""

from django.db import models
from django.db.models import Q


def is_one_of(
    field: str, choices: type[models.Choices], *, name: str, or_empty: bool = False
) -> models.CheckConstraint:
    """Allow only the values of `choices` in `field`, even for raw SQL."""
    values = [*choices.values, ""] if or_empty else choices.values
    return models.CheckConstraint(name=name, condition=Q(**{f"{field}__in": values}))


def seen_by_readers(
    *fields: str, public: str, private: str
) -> tuple[models.Index, models.Index]:
    """The indexes of a list in this order: of what is public, and of a project's private rows."""
    is_private = Q(private_project__isnull=False)
    return (
        models.Index(fields=fields, condition=Q(is_public=True), name=public),
        models.Index(
            fields=["private_project", *fields], condition=is_private, name=private
        ),
    )
