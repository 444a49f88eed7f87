"""Addresses of the pages."""

from django.urls import URLPattern, URLResolver, path

from runs.web import (
    archive,
    artifacts,
    campaigns,
    downloads,
    home,
    runs,
    scenarios,
    servers,
    styleguide,
    tokens,
    versions,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("archive/", archive.archive_index, name="archive"),
    path("archive/discrepancies/", archive.archive_discrepancies, name="archive-discrepancies"),
    path("archive/<slug:slug>/", archive.archive_source, name="archive-source"),
    path("campaigns/", campaigns.campaign_list, name="campaign-list"),
    path("campaigns/new/", campaigns.campaign_new, name="campaign-new"),
    path("campaigns/new/estimate/", campaigns.campaign_estimate, name="campaign-estimate"),
    path("campaigns/<slug:slug>/", campaigns.campaign_detail, name="campaign-detail"),
    path("campaigns/<slug:slug>/cancel/", campaigns.campaign_cancel, name="campaign-cancel"),
    path("runs/<int:run_id>/", runs.run_detail, name="run-detail"),
    path("runs/<int:run_id>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:run_id>/artifacts/<path:name>/", artifacts.artifact_download, name="artifact"),
    path("servers/", servers.server_list, name="server-list"),
    path("servers/new/", servers.server_new, name="server-new"),
    path("servers/<slug:slug>/", servers.server_detail, name="server-detail"),
    path("servers/<slug:slug>/confirm/", servers.server_confirm, name="server-confirm"),
    path("servers/<slug:slug>/inspect/", servers.server_inspect, name="server-inspect"),
    path("versions/", versions.version_page, name="versions"),
    path("scenarios/", scenarios.scenario_list, name="scenario-list"),
    path("scenarios/<slug:slug>/", scenarios.scenario_detail, name="scenario-detail"),
    path("download/benchlab-upload", downloads.upload_client, name="upload-client"),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]
