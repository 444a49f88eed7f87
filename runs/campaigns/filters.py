"""By what lists of campaigns and measurements can be filtered: once for page and API."""

from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from runs.cells.filters import VersionFilter
from runs.cells.selectors import metrics
from runs.models import (
    Campaign,
    Metric,
    Scenario,
    Source,
)
from runs.models.campaigns import Origin
from runs.shared.filters import Filters, NamedFilter, keys_of


class MeasurementFilters(Filters):
    """Which measurements."""

    campaign = NamedFilter(Campaign, "run__campaign")
    run = django_filters.NumberFilter("run_id", label="Id of the run.")
    metric = django_filters.CharFilter(
        method="filter_metric", label="Name of the metric, such as tps."
    )
    version = VersionFilter("run__")
    origin = django_filters.ChoiceFilter(
        field_name="run__origin", choices=Origin.choices
    )
    source = django_filters.CharFilter(
        method="filter_source", label="Slug of the publication, such as wg1-2013."
    )
    table = django_filters.CharFilter(
        method=lambda rows, _name, value: metrics.filter_by_tables(rows, number=value),
        label="Number of the published table as printed, such as 2.2.",
    )

    def filter_metric(
        self, rows: QuerySet[Any], _name: str, value: str
    ) -> QuerySet[Any]:
        """Those of a metric, by its key: an index of measurements begins with it."""
        keys = keys_of(self, Metric, value)
        is_listed = (
            metrics.are_many if self.data.get("campaign") else metrics.are_frequent
        )
        if is_listed(keys):
            return metrics.filter_by_runs(rows, keys)
        return rows.filter(metric__in=keys)

    def filter_source(
        self, rows: QuerySet[Any], _name: str, value: str
    ) -> QuerySet[Any]:
        """The figures of a publication."""
        keys_of(self, Source, value)
        return metrics.filter_by_source(rows, value)


class CampaignFilters(Filters):
    """Which campaigns; the page has a switch for their origin."""

    origin = django_filters.ChoiceFilter(
        choices=Origin.choices, widget=forms.HiddenInput
    )
    state = django_filters.ChoiceFilter(
        choices=Campaign.State.choices, label=_("State")
    )
    scenario = NamedFilter(Scenario, "scenario", label=_("Scenario"))
