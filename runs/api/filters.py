"""Filters that several lists have: by version, and by a name, which has to be one."""

import difflib
from typing import Any

import django_filters
from django.core.validators import RegexValidator
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import ErrorDetail

from runs.api.authentication import reader
from runs.api.parsing import QueryFault
from runs.models import Metric
from runs.selectors.access import projects
from runs.selectors.archive import versions

IS_VERSION = RegexValidator(
    r"^\d+(\.\d+){0,2}((devel|alpha|beta|rc)\d*)?$", _("Not a version, such as 16 or 16.14.")
)

# The newest are searched for the nearest.
MOST_NAMES = 1000


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


class NamedFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Only rows of what has a name, by its key: an index has them in the order of lists.

    `path` leads from a row to it.
    """

    def __init__(self, kind: type[Model], path: str, label: str = "", **options: bool) -> None:
        super().__init__(label=label or f"Slug of the {kind._meta.verbose_name}.", **options)
        self._kind, self._path = kind, f"{path}__in"

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Those of what has the name; without one it does not filter."""
        if not value:
            return qs
        keys = keys_of(self.parent, self.field_name, self._kind, value)
        found = qs.filter(**{self._path: keys})
        return found.distinct() if self.distinct else found


def keys_of(
    filters: django_filters.FilterSet, parameter: str, kind: type[Model], value: str
) -> list[int]:
    """The keys of what has this name: by them PostgreSQL knows how many rows there are.

    Raises QueryFault, with the nearest name, where there is none that the reader may see.
    """
    field = "name" if kind is Metric else "slug"
    rows = projects.visible(kind._default_manager.order_by(), to=reader(filters.request))
    if keys := list(rows.filter(**{field: value}).values_list("pk", flat=True)):
        return keys
    names = rows.order_by("-pk").values_list(field, flat=True)[:MOST_NAMES]
    message = str(_("Nothing has this name."))
    if nearest := difflib.get_close_matches(value[:100], names, n=1):
        message = _("Nothing has this name; did you mean %(nearest)s?") % {"nearest": nearest[0]}
    raise QueryFault({parameter: [ErrorDetail(message, "unknown_name")]})
