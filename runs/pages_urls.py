"""Addresses of the pages."""

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import URLPattern, path

from runs.access.views import audit, people, tokens
from runs.archive.views import archive, versions
from runs.bisections import views
from runs.campaigns.views import annotations, campaigns, metrics
from runs.compare.views import badges, compare
from runs.compare.views import report as compare_report
from runs.configurations.views import configurations, settings_diff
from runs.documents.views import (
    campaign_csv,
    campaign_json,
    campaign_report,
    campaign_script,
    run_script,
)
from runs.histories.views import changes, histories
from runs.home.views import home, search, styleguide
from runs.observations.views import observations
from runs.queue.views import profiles, query_plans, queue, runs
from runs.schedules.views import schedule_delete, schedule_list, schedule_new, schedule_switch
from runs.servers.views import servers
from runs.uploads.views import comment_client, upload_client, upload_new
from runs.why.views import compare_why
from runs.workloads.views import scenarios, topologies, workloads


def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
    """A page by the name of its view: `campaign_new` is campaign-new."""
    return path(route, view, name=view.__name__.replace("_", "-"))


# Where the pages of what a button is about begin.
ROWS = {
    "bisection": "bisections/<int:bisection_id>",
    "campaign": "campaigns/<slug:slug>",
    "run": "runs/<int:run_id>",
    "server": "servers/<slug:slug>",
}


def button(name: str) -> URLPattern:
    """A button by its name: run-retry is runs/12/retry/."""
    word, act = name.split("-")
    return path(f"{ROWS[word]}/{act}/", queue.press, name=name)


urlpatterns = [
    page("", home.home),
    path("search/", search.everywhere, name="search"),
    path("archive/", archive.archive_index, name="archive"),
    page("archive/discrepancies/", archive.archive_discrepancies),
    page("archive/later/", archive.archive_later),
    page("archive/data.zip", archive.archive_data),
    page("archive/figures/<slug:slug>/<int:row>-<int:column>/", archive.archive_figure),
    page(
        "archive/figures/<slug:slug>/<int:row>-<int:column>/citation.<slug:form>",
        archive.archive_figure_citation,
    ),
    page("archive/tables/<slug:slug>/citation.<slug:form>", archive.archive_table_citation),
    page("archive/<slug:slug>/citation.<slug:form>", archive.archive_citation),
    page("archive/<slug:slug>/", archive.archive_source),
    page("campaigns/", campaigns.campaign_list),
    page("campaigns/new/", campaigns.campaign_new),
    page("campaigns/new/estimate/", campaigns.campaign_estimate),
    page("campaigns/new/preflight/", servers.campaign_preflight),
    page("campaigns/<slug:slug>/", campaigns.campaign_detail),
    page("runs/<int:run_id>/series/", runs.run_series),
    page("runs/<int:run_id>/profile/", profiles.run_profile),
    page("plans/", query_plans.plan_viewer),
    page("workloads/", workloads.workload_list),
    page("workloads/new/", workloads.workload_new),
    page("workloads/<slug:slug>/", workloads.workload_detail),
    page("workloads/<slug:slug>/edit/", workloads.workload_edit),
    page("configurations/", configurations.configuration_list),
    page("configurations/new/", configurations.configuration_new),
    page("configurations/check/", configurations.configuration_check),
    page("configurations/names/", configurations.configuration_names),
    page("configurations/diff/", settings_diff.settings_diff),
    page("configurations/<slug:slug>/", configurations.configuration_detail),
    page("configurations/<slug:slug>/edit/", configurations.configuration_edit),
    page("configurations/<slug:slug>/postgresql.conf", configurations.configuration_file),
    page("campaigns/<slug:slug>/annotations/", annotations.annotation_add),
    page("annotations/<int:annotation_id>/change/", annotations.annotation_change),
    page("annotations/<int:annotation_id>/delete/", annotations.annotation_delete),
    page("campaigns/<slug:slug>/history/", histories.campaign_history),
    page("campaigns/<slug:slug>/watch/", histories.campaign_watch),
    page("campaigns/<slug:slug>/badge.svg", badges.campaign_badge),
    page("changes/", changes.change_list),
    page("changes/<int:change_id>/decision/", histories.change_decide),
    page("webhooks/", changes.webhook_list),
    page("webhooks/<int:webhook_id>/ping/", changes.webhook_ping),
    page("webhooks/<int:webhook_id>/remove/", changes.webhook_remove),
    page("campaigns/<slug:slug>/report/", campaign_report),
    page("campaigns/<slug:slug>/script/", campaign_script),
    page("campaigns/<slug:slug>/export.csv", campaign_csv),
    page("campaigns/<slug:slug>/export.json", campaign_json),
    page("runs/<int:run_id>/", runs.run_detail),
    page("runs/<int:run_id>/script/", run_script),
    path("runs/<int:run_id>/artifacts/<path:name>/", runs.artifact_download, name="artifact"),
    page("servers/", servers.server_list),
    page("servers/new/", servers.server_new),
    page("servers/keys/", servers.ssh_key_list),
    page("servers/keys/<int:key_id>/delete/", servers.ssh_key_delete),
    page("servers/checks/<uuid:check_id>/", servers.server_check),
    page("servers/<slug:slug>/", servers.server_detail),
    page("servers/<slug:slug>/confirm/", servers.server_confirm),
    page("servers/<slug:slug>/preflight/", servers.server_preflight),
    page("servers/<slug:slug>/edit/", servers.server_edit),
    page("servers/<slug:slug>/delete/", servers.server_delete),
    page("servers/<slug:slug>/host-key/", servers.server_replace_host_key),
    page("servers/<slug:slug>/inspect/", servers.server_inspect),
    page("hardware/", servers.hardware_list),
    page("hardware/<int:hardware_id>/", servers.hardware_detail),
    page("topologies/", topologies.topology_list),
    page("topologies/<slug:slug>/", topologies.topology_detail),
    page("compare/", compare.compare),
    page("compare/report/", compare_report.compare_report),
    page("compare/cells/", compare.compare_cells),
    page("compare/why/", compare_why),
    page("bisections/new/", views.bisection_new),
    page("bisections/<int:bisection_id>/", views.bisection_detail),
    page("compare/save/", compare.compare_save),
    page("compare/saved/", compare.compare_saved),
    page("compare/saved/<slug:slug>/", compare.compare_open),
    page("schedules/", schedule_list),
    page("schedules/<int:schedule_id>/switch/", schedule_switch),
    page("schedules/<int:schedule_id>/delete/", schedule_delete),
    page("campaigns/<slug:slug>/schedule/", schedule_new),
    path("versions/", versions.version_page, name="versions"),
    page("observations/", observations.observation_list),
    page("observations/new/", observations.observation_new),
    page("observations/<slug:slug>/", observations.observation_detail),
    page("observations/<slug:slug>/begin/", observations.observation_begin),
    page("observations/<slug:slug>/write/", observations.observation_write),
    page("observations/<slug:slug>/report/", observations.observation_report),
    page("observations/<slug:slug>/publication/", observations.observation_publication),
    page("scenarios/", scenarios.scenario_list),
    page("scenarios/<slug:slug>/", scenarios.scenario_detail),
    page("uploads/new/", upload_new),
    page("download/benchlab-upload", upload_client),
    page("download/benchlab-comment", comment_client),
    page("projects/", people.project_list),
    page("projects/<slug:slug>/metrics/", metrics.project_metrics),
    page("projects/<slug:slug>/metrics/<slug:name>/", metrics.project_metric),
    page("projects/<slug:slug>/people/", people.project_people),
    page("projects/<slug:slug>/people/<int:member_id>/role/", people.project_role),
    page("projects/<slug:slug>/people/<int:member_id>/remove/", people.project_remove),
    page(
        "projects/<slug:slug>/invitations/<int:invitation_id>/take-back/", people.project_take_back
    ),
    page("invitations/accept/", people.invitation_accept),
    page("invitations/<str:secret>/", people.invitation),
    page("audit/", audit.audit_list),
    page("tokens/", tokens.token_list),
    page("tokens/<int:token_id>/revoke/", tokens.token_revoke),
    page("styleguide/", styleguide.styleguide),
    *map(button, queue.BUTTONS),
]
