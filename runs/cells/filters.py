"""By what lists of runs and figures can be filtered that a condition says: its version."""

from typing import Any

import django_filters
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from runs.cells.selectors import versions

IS_VERSION = RegexValidator(
    r"^\d+(\.\d+){0,2}((devel|alpha|beta|rc)\d*)?$",
    _("Not a version, such as 16 or 16.14."),
)


class VersionFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A version: "16.14" is that one, "16" and "9.6" are all of that major version."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        super().__init__(
            label=_("Version"),
            help_text="Version: 16 for all of that major version, or 16.14.",
            validators=[IS_VERSION],
        )

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Rows of the version asked for."""
        if not value:
            return qs
        return qs.filter(versions.match_runs(value, path=self._path))
