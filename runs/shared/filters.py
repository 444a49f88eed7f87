"""What filters of lists share. Each subject has its own once, for its page and its list in the API.

A filter's `label` is its name on the page, its `help_text` describes it in the API.
"""

import difflib
from collections.abc import Callable
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import projects
from runs.models import (
    Metric,
    Token,
)
from runs.shared import words

# The newest are searched for the nearest.
MOST_NAMES = 1000


class Filters(django_filters.FilterSet):  # type: ignore[misc]
    """The filters of a list. Its page always draws those `shown`, and others that are in use."""

    shown: tuple[str, ...] = ()

    def is_valid(self) -> bool:
        """Whether all values are right; a name has to be one, which is looked up."""
        return super().is_valid() and self.qs is not None and not self.errors

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows; what is at fault does not filter, and is among the errors."""
        for name, value in list(self.form.cleaned_data.items()):
            try:
                queryset = self.filters[name].filter(queryset, value)
            except ValidationError as error:
                self.form.add_error(name, error)
        return queryset

    def get_form_class(self) -> Any:
        """The form, without the descriptions, for which a list has no room."""
        for field_filter in self.filters.values():
            field_filter.extra.pop("help_text", None)
        return super().get_form_class()

    @property
    def fields(self) -> list[forms.BoundField]:
        """What the page draws."""
        visible = self.form.visible_fields()
        return [
            bound_field
            for bound_field in visible
            if bound_field.name in self.shown or bound_field.data
        ]


class WordsFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Some words to search for; an `example` stands in the empty field."""

    def __init__(
        self, example: Any, select: Callable[..., Any], help_text: str
    ) -> None:
        widget = forms.SearchInput(
            attrs={"placeholder": example, "autocomplete": "off"}
        )
        super().__init__(
            label=_("Search"),
            method=lambda rows, _name, words: select(rows, words),
            help_text=help_text,
            widget=widget,
            max_length=words.LONGEST,
        )


class NamedFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Only rows of what has a name, by its key, which an index has; `path` leads to it."""

    def __init__(
        self, kind: type[Model], path: str, help_text: str = "", **options: Any
    ) -> None:
        described = help_text or f"Slug of the {kind._meta.verbose_name}."
        super().__init__(help_text=described, **options)
        self._kind, self._path = kind, f"{path}__in"

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Those of what has the name; without one it does not filter."""
        if not value:
            return qs
        filtered = qs.filter(**{self._path: keys_of(self.parent, self._kind, value)})
        return filtered.distinct() if self.distinct else filtered


def keys_of(filters: Filters, kind: type[Model], value: str) -> list[int]:
    """The keys of what has this name: by them PostgreSQL knows how many rows there are.

    Raises ValidationError, with the nearest name, where there is none that the reader may see.
    """
    field = "name" if kind is Metric else "slug"
    auth = getattr(filters.request, "auth", None)
    to = auth if isinstance(auth, Token) else filters.request.user
    rows = projects.visible(kind._default_manager.order_by(), to=to)
    if keys := list(rows.filter(**{field: value}).values_list("pk", flat=True)):
        return keys
    names = rows.order_by("-pk").values_list(field, flat=True)[:MOST_NAMES]
    if nearest := difflib.get_close_matches(value[:100], names, n=1):
        message = _("Nothing has this name; did you mean %(nearest)s?")
        raise ValidationError(message, "unknown_name", {"nearest": nearest[0]})
    raise ValidationError(_("Nothing has this name."), "unknown_name")
