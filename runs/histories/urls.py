"""Addresses of histories."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.histories.api.changes import ChangeDoor, WebhookDoor
from runs.histories.api.histories import HistoryDoor
from runs.histories.views import changes, charts, feed, histories
from runs.shared.urls import page

pages = [
    page("campaigns/<slug:slug>/history/", histories.campaign_history),
    page(
        "campaigns/<slug:slug>/history/chart.<slug:form>", charts.campaign_history_chart
    ),
    page("campaigns/<slug:slug>/watch/", histories.campaign_watch),
    page("projects/<slug:slug>/feed.atom", feed.project_feed),
    page("changes/", changes.change_list),
    page("changes/<int:change_id>/decision/", histories.change_decide),
    page("webhooks/", changes.webhook_list),
    page("webhooks/<int:webhook_id>/ping/", changes.webhook_ping),
    page("webhooks/<int:webhook_id>/remove/", changes.webhook_remove),
]
router = SimpleRouter(use_regex_path=False)
router.register("changes", ChangeDoor, basename="change")
router.register("webhooks", WebhookDoor, basename="webhook")
api = [
    path("history/", HistoryDoor.as_view(), name="history"),
    path("", include(router.urls)),
]
