"""Filters that several lists have: by version, by campaign and by metric."""

from typing import Any

import django_filters
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from runs.models import Campaign, Metric
from runs.selectors.archive import versions

IS_VERSION = RegexValidator(
    r"^\d+(\.\d+){0,2}((devel|alpha|beta|rc)\d*)?$", _("Not a version, such as 16 or 16.14.")
)


class VersionFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A version: "16.14" is that one, "16" and "9.6" are all of that major version."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        super().__init__(
            label="Version: 16 for all of that major version, or 16.14.",
            validators=[IS_VERSION],
        )

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Rows of the version asked for."""
        if not value:
            return qs
        return qs.filter(versions.of_runs(value, path=self._path))


class CampaignFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Only runs of the campaign with a slug; with a path, what is of one of them.

    By the campaign's key, which takes one query more: an index has its runs in the order of lists.
    """

    def __init__(self, path: str = "") -> None:
        super().__init__(label="Slug of the campaign.")
        self._named = f"{path}campaign__in"

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Those of this campaign; without one it does not filter."""
        if not value:
            return qs
        keys = Campaign.objects.filter(slug=value).order_by().values_list("pk", flat=True)
        return qs.filter(**{self._named: list(keys)})


def metric_keys(name: str) -> list[int]:
    """The key of a metric, if there is one: by it PostgreSQL knows how many rows there are."""
    return list(Metric.objects.filter(name=name).order_by().values_list("pk", flat=True))
