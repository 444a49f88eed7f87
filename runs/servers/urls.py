"""Addresses of servers."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.servers.api import HardwareDoor, PreflightCheckDoor, PreflightDoor, ServerDoor
from runs.servers.views import charts, servers
from runs.shared.urls import page

pages = [
    page("campaigns/new/preflight/", servers.campaign_preflight),
    page("servers/", servers.server_list),
    page("servers/new/", servers.server_new),
    page("servers/keys/", servers.ssh_key_list),
    page("servers/keys/<int:key_id>/delete/", servers.ssh_key_delete),
    page("servers/checks/<uuid:check_id>/", servers.server_check),
    page("servers/<slug:slug>/", servers.server_detail),
    page("servers/<slug:slug>/chart.<slug:form>", charts.server_chart),
    page("servers/<slug:slug>/confirm/", servers.server_confirm),
    page("servers/<slug:slug>/preflight/", servers.server_preflight),
    page("servers/<slug:slug>/edit/", servers.server_edit),
    page("servers/<slug:slug>/delete/", servers.server_delete),
    page("servers/<slug:slug>/host-key/", servers.server_replace_host_key),
    page("servers/<slug:slug>/inspect/", servers.server_inspect),
    page("hardware/", servers.hardware_list),
    page("hardware/<int:hardware_id>/", servers.hardware_detail),
]
router = SimpleRouter(use_regex_path=False)
router.register("hardware", HardwareDoor, basename="hardware")
router.register("servers", ServerDoor, basename="server")
api = [
    path("preflight/", PreflightDoor.as_view(), name="preflight"),
    path(
        "preflight/<uuid:check_id>/",
        PreflightCheckDoor.as_view(),
        name="preflight-check",
    ),
    path("", include(router.urls)),
]
