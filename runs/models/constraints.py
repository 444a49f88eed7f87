"""Constraints that several models have."""

from django.db import models


def is_one_of(
    field: str,
    choices: type[models.TextChoices] | type[models.IntegerChoices],
    *,
    name: str,
    or_empty: bool = False,
) -> models.CheckConstraint:
    """Allow only the values of `choices` in `field`, even for raw SQL."""
    values = [*choices.values, ""] if or_empty else choices.values
    return models.CheckConstraint(name=name, condition=models.Q(**{f"{field}__in": values}))
