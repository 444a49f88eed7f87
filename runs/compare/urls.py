"""Addresses of compare."""

from django.urls import path

from runs.compare.api.compare import CompareDoor
from runs.compare.views import badges, charts, compare, report
from runs.shared.urls import page

pages = [
    page("campaigns/<slug:slug>/badge.svg", badges.campaign_badge),
    page("compare/", compare.compare),
    page("compare/chart.<slug:form>", charts.compare_chart),
    page("compare/report/", report.compare_report),
    page("compare/cells/", compare.compare_cells),
    page("compare/save/", compare.compare_save),
    page("compare/saved/", compare.compare_saved),
    page("compare/saved/<slug:slug>/", compare.compare_open),
]
api = [
    path("compare/", CompareDoor.as_view(), name="compare"),
]
