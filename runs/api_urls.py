"""Addresses of the REST API."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from runs.access.api.access import AuditDoor
from runs.archive.api import SourceDoor
from runs.bisections.api import BisectionDoor
from runs.campaigns.api.campaigns import CampaignDoor
from runs.campaigns.api.measurements import MeasurementDoor
from runs.compare.api.compare import CompareDoor
from runs.configurations.api import ConfigurationDoor
from runs.exchange.api import ExportDoor, ImportDoor
from runs.histories.api.changes import ChangeDoor, WebhookDoor
from runs.histories.api.histories import HistoryDoor
from runs.observations.api import ObservationDoor
from runs.queue.api import RunDoor, SeriesDoor
from runs.schedules.api import ScheduleDoor
from runs.servers.api import HardwareDoor, PreflightCheckDoor, PreflightDoor, ServerDoor
from runs.shared.api.doors import Nowhere
from runs.shared.api.schema_view import SchemaView
from runs.uploads.api.doors import BatchDoor, UploadDoor
from runs.why.api import WhyDoor
from runs.workloads.api.scenarios import ScenarioDoor
from runs.workloads.api.trials import TrialCheckDoor, TrialDoor

app_name = "api"

router = SimpleRouter(use_regex_path=False)
router.register("audit", AuditDoor, basename="audit")
router.register("bisections", BisectionDoor, basename="bisection")
router.register("campaigns", CampaignDoor, basename="campaign")
router.register("changes", ChangeDoor, basename="change")
router.register("runs", RunDoor, basename="run")
router.register("measurements", MeasurementDoor, basename="measurement")
router.register("observations", ObservationDoor, basename="observation")
router.register("configurations", ConfigurationDoor, basename="configuration")
router.register("hardware", HardwareDoor, basename="hardware")
router.register("scenarios", ScenarioDoor, basename="scenario")
router.register("schedules", ScheduleDoor, basename="schedule")
router.register("servers", ServerDoor, basename="server")
router.register("sources", SourceDoor, basename="source")
router.register("webhooks", WebhookDoor, basename="webhook")

urlpatterns = [
    # First, since an address is looked for from above.
    path("v1/uploads/", UploadDoor.as_view(), name="upload"),
    path("v1/uploads/batch/", BatchDoor.as_view(), name="upload-batch"),
    path("v1/", include(router.urls)),
    path("v1/compare/", CompareDoor.as_view(), name="compare"),
    path("v1/compare/why/", WhyDoor.as_view(), name="compare-why"),
    path("v1/projects/<slug:slug>/export/", ExportDoor.as_view(), name="project-export"),
    path("v1/projects/<slug:slug>/import/", ImportDoor.as_view(), name="project-import"),
    path("v1/history/", HistoryDoor.as_view(), name="history"),
    path("v1/preflight/", PreflightDoor.as_view(), name="preflight"),
    path("v1/preflight/<uuid:check_id>/", PreflightCheckDoor.as_view(), name="preflight-check"),
    path("v1/trials/", TrialDoor.as_view(), name="trial"),
    path("v1/trials/<uuid:check_id>/", TrialCheckDoor.as_view(), name="trial-check"),
    path("v1/runs/<int:run_id>/series/<str:name>/", SeriesDoor.as_view(), name="run-series"),
    path("v1/schema/", SchemaView.as_view(), name="schema"),
    # The page's script is served as a file of its own: no inline script anywhere on the site.
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
    # Only with a slash at the end, so that an address without one is still led to that with one.
    re_path(r"^v1/(?:.*/)?$", Nowhere.as_view(), name="nowhere"),
]
