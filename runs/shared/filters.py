"""By what lists can be filtered: of each subject once, for its page and its list in the API.

A filter's `label` is its name on the page, its `help_text` describes it in the API.
"""

import difflib
from collections.abc import Callable
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import permissions, projects
from runs.analysis.judged_runs import JUDGEMENTS
from runs.cells.selectors import metrics, versions
from runs.home.selectors import search
from runs.models import (
    Campaign,
    Change,
    Configuration,
    Metric,
    Run,
    Scenario,
    Server,
    Source,
    Token,
    Topology,
)
from runs.models.campaigns import Origin
from runs.queue.selectors import runs

IS_VERSION = RegexValidator(
    r"^\d+(\.\d+){0,2}((devel|alpha|beta|rc)\d*)?$", _("Not a version, such as 16 or 16.14.")
)
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
        for each in self.filters.values():
            each.extra.pop("help_text", None)
        return super().get_form_class()

    @property
    def fields(self) -> list[forms.BoundField]:
        """What the page draws."""
        visible = self.form.visible_fields()
        return [each for each in visible if each.name in self.shown or each.data]


class WordsFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Some words to search for; an `example` stands in the empty field."""

    def __init__(self, example: Any, select: Callable[..., Any], help_text: str) -> None:
        widget = forms.SearchInput(attrs={"placeholder": example, "autocomplete": "off"})
        super().__init__(
            label=_("Search"),
            method=lambda rows, _name, words: select(rows, words),
            help_text=help_text,
            widget=widget,
            max_length=search.LONGEST,
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


class NamedFilter(django_filters.CharFilter):  # type: ignore[misc]
    """Only rows of what has a name, by its key, which an index has; `path` leads to it."""

    def __init__(self, kind: type[Model], path: str, help_text: str = "", **options: Any) -> None:
        described = help_text or f"Slug of the {kind._meta.verbose_name}."
        super().__init__(help_text=described, **options)
        self._kind, self._path = kind, f"{path}__in"

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Those of what has the name; without one it does not filter."""
        if not value:
            return qs
        found = qs.filter(**{self._path: keys_of(self.parent, self._kind, value)})
        return found.distinct() if self.distinct else found


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


class RunFilters(Filters):
    """Which runs."""

    campaign = NamedFilter(Campaign, "campaign")
    state = django_filters.ChoiceFilter(choices=Run.State.choices)
    validity = django_filters.ChoiceFilter(
        method="judged", choices=[(each, each) for each in JUDGEMENTS]
    )
    version = VersionFilter()
    server = NamedFilter(Server, "server")
    hardware = django_filters.CharFilter(
        method=lambda rows, _name, value: runs.on_hardware(rows, fingerprint=value),
        label="Fingerprint of the hardware profile that it was made on.",
    )
    origin = django_filters.ChoiceFilter(choices=Origin.choices)

    def judged(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Those of one judgement; unknown are all results that nobody could judge."""
        if value != "unknown":
            return rows.filter(validity=value)
        return rows.filter(validity="", state__in=(Run.State.FINISHED, Run.State.WITHDRAWN))


class MeasurementFilters(Filters):
    """Which measurements."""

    campaign = NamedFilter(Campaign, "run__campaign")
    run = django_filters.NumberFilter("run_id", label="Id of the run.")
    metric = django_filters.CharFilter(method="of_metric", label="Name of the metric, such as tps.")
    version = VersionFilter("run__")
    origin = django_filters.ChoiceFilter(field_name="run__origin", choices=Origin.choices)
    source = django_filters.CharFilter(
        method="of_source", label="Slug of the publication, such as wg1-2013."
    )
    table = django_filters.CharFilter(
        method=lambda rows, _name, value: metrics.of_tables(rows, number=value),
        label="Number of the published table as printed, such as 2.2.",
    )

    def of_metric(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Those of a metric, by its key: an index of measurements begins with it."""
        keys = keys_of(self, Metric, value)
        is_listed = metrics.are_many if self.data.get("campaign") else metrics.are_frequent
        if is_listed(keys):
            return metrics.among_others(rows, keys)
        return rows.filter(metric__in=keys)

    def of_source(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """The figures of a publication."""
        keys_of(self, Source, value)
        return metrics.of_source(rows, value)


class CampaignFilters(Filters):
    """Which campaigns; the page has a switch for their origin."""

    origin = django_filters.ChoiceFilter(choices=Origin.choices, widget=forms.HiddenInput)
    state = django_filters.ChoiceFilter(choices=Campaign.State.choices, label=_("State"))
    scenario = NamedFilter(Scenario, "scenario", label=_("Scenario"))


class ChangeFilters(Filters):
    """Which changes."""

    campaign = NamedFilter(Campaign, "campaign", label=_("Campaign"))
    metric = NamedFilter(Metric, "metric", "Name of the metric.", label=_("Metric"))
    kind = django_filters.ChoiceFilter(choices=Change.Kind.choices, label=_("Kind"))
    decision = django_filters.ChoiceFilter(choices=Change.Decision.choices, label=_("Decision"))


class ConfigurationFilters(Filters):
    """Which configurations."""

    shown = ("q", "origin")
    q = WordsFilter(
        _("name, publication, or a setting such as wal_compression"),
        search.of_configurations,
        "Words of its name, description or settings.",
    )
    origin = django_filters.ChoiceFilter(choices=Configuration.Origin.choices, label=_("Origin"))
    setting = django_filters.CharFilter(
        "settings",
        lookup_expr="has_key",
        label=_("Setting"),
        help_text="Name of a setting that they contain.",
    )


class HardwareFilters(Filters):
    """Which hardware profiles."""

    shown = ("q",)
    q = WordsFilter(
        _("name, CPU model, or cloud, such as EPYC or AWS"),
        search.of_hardware,
        "Words of its name, CPU model or cloud.",
    )
    cpu_model = django_filters.CharFilter(
        lookup_expr="icontains",
        label=_("CPU model"),
        help_text="Part of the CPU model, such as EPYC.",
    )
    virtualization = django_filters.CharFilter(
        lookup_expr="iexact",
        label=_("Virtualisation or cloud"),
        help_text="What it runs on, such as kvm or AWS m4.2xlarge.",
    )
    server = NamedFilter(Server, "server", "Slug of a server that has it now.", label=_("Server"))
    source = NamedFilter(
        Source,
        "publishednode__table__source",
        "Slug of a publication that measured on it, such as wg1-2017.",
        label=_("Publication"),
        distinct=True,
    )


class ServerFilters(Filters):
    """Which servers."""

    state = django_filters.ChoiceFilter(choices=Server.State.choices, label=_("State"))
    hardware = django_filters.CharFilter(
        "hardware__fingerprint",
        label=_("Hardware"),
        help_text="Fingerprint of the hardware profile that it has now.",
    )


class TopologyFilters(Filters):
    """Which topologies."""

    shown = ("kind",)
    kind = django_filters.ChoiceFilter(choices=Topology.Kind.choices, label=_("Kind"))


class ScenarioFilters(Filters):
    """Which scenarios."""

    runnable = django_filters.BooleanFilter(label="Whether BenchLab can run it: true or false.")


class AuditFilters(Filters):
    """Which entries of the audit trail."""

    shown = ("actor", "action", "subject", "project")
    actor = django_filters.CharFilter(
        "actor", label=_("Who"), help_text="Name of who acted.", max_length=150
    )
    action = django_filters.CharFilter(
        "action",
        label=_("Action"),
        help_text="What was done, such as run_withdrawn.",
        max_length=60,
    )
    subject = django_filters.CharFilter(
        "subject",
        label=_("What"),
        help_text="What it was done to: run 12, server db1.",
        max_length=300,
    )
    project = django_filters.CharFilter(
        method=lambda rows, _name, value: permissions.audit_of_project(rows, value),
        label=_("Project"),
        help_text="Slug of the project.",
        max_length=80,
    )
