"""Addresses of campaigns."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.campaigns.api.campaigns import CampaignDoor
from runs.campaigns.api.measurements import MeasurementDoor
from runs.campaigns.views import annotations, campaigns, charts, metrics
from runs.shared.urls import page

pages = [
    page("campaigns/", campaigns.campaign_list),
    page("campaigns/new/", campaigns.campaign_new),
    page("campaigns/new/estimate/", campaigns.campaign_estimate),
    page("campaigns/<slug:slug>/", campaigns.campaign_detail),
    page("campaigns/<slug:slug>/chart.<slug:form>", charts.campaign_chart),
    page("campaigns/<slug:slug>/annotations/", annotations.annotation_add),
    page("annotations/<int:annotation_id>/change/", annotations.annotation_change),
    page("annotations/<int:annotation_id>/delete/", annotations.annotation_delete),
    page("projects/<slug:slug>/metrics/", metrics.project_metrics),
    page("projects/<slug:slug>/metrics/<slug:name>/", metrics.project_metric),
]
router = SimpleRouter(use_regex_path=False)
router.register("campaigns", CampaignDoor, basename="campaign")
router.register("measurements", MeasurementDoor, basename="measurement")
api = [
    path("", include(router.urls)),
]
