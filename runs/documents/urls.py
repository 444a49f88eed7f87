"""Addresses of documents."""

from django.urls import path

from runs.documents.api import ReportDoor
from runs.documents.views import (
    campaign_csv,
    campaign_json,
    campaign_report,
    campaign_script,
    run_script,
)
from runs.shared.urls import page

pages = [
    page("campaigns/<slug:slug>/report/", campaign_report),
    page("campaigns/<slug:slug>/script/", campaign_script),
    page("campaigns/<slug:slug>/export.csv", campaign_csv),
    page("campaigns/<slug:slug>/export.json", campaign_json),
    page("runs/<int:run_id>/script/", run_script),
]
api = [
    path(
        "campaigns/<slug:slug>/report/",
        ReportDoor.as_view({"get": "report"}, detail=True),
        name="campaign-report",
    ),
]
