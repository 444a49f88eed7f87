"""Constraints that several models have."""

from django.db import models


def is_one_of(
    field: str, choices: type[models.TextChoices], *, name: str, or_empty: bool = False
) -> models.CheckConstraint:
    """Let `field` have the values of `choices` only, whoever writes it: raw SQL too."""
    values = [*choices.values, ""] if or_empty else choices.values
    return models.CheckConstraint(name=name, condition=models.Q(**{f"{field}__in": values}))
