"""Addresses of the pages."""

from django.urls import URLPattern, URLResolver, path

from runs.web import home, styleguide
from runs.web.access import audit, people, tokens
from runs.web.archive import archive, figure, versions
from runs.web.campaigns import annotations, campaigns, scenarios, topologies, workloads
from runs.web.changes import inbox, webhooks
from runs.web.compare import compare
from runs.web.compare import report as compare_report
from runs.web.configurations import configurations, settings_diff
from runs.web.histories import badges, histories
from runs.web.reports import reports
from runs.web.runs import artifacts, plans, profiles, queue, runs, series
from runs.web.schedules import schedules
from runs.web.servers import hardware, preflight, servers, ssh_keys
from runs.web.uploads import downloads

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("archive/", archive.archive_index, name="archive"),
    path("archive/discrepancies/", archive.archive_discrepancies, name="archive-discrepancies"),
    path("archive/data.zip", archive.archive_data, name="archive-data"),
    path(
        "archive/figures/<slug:slug>/<int:row>-<int:column>/",
        figure.archive_figure,
        name="archive-figure",
    ),
    path(
        "archive/<slug:slug>/citation.<slug:form>",
        archive.archive_citation,
        name="archive-citation",
    ),
    path("archive/<slug:slug>/", archive.archive_source, name="archive-source"),
    path("campaigns/", campaigns.campaign_list, name="campaign-list"),
    path("campaigns/new/", campaigns.campaign_new, name="campaign-new"),
    path("campaigns/new/estimate/", campaigns.campaign_estimate, name="campaign-estimate"),
    path("campaigns/new/preflight/", preflight.campaign_preflight, name="campaign-preflight"),
    path("campaigns/<slug:slug>/", campaigns.campaign_detail, name="campaign-detail"),
    path("campaigns/<slug:slug>/cancel/", campaigns.campaign_cancel, name="campaign-cancel"),
    path("runs/<int:run_id>/series/", series.run_series, name="run-series"),
    path("runs/<int:run_id>/profile/", profiles.run_profile, name="run-profile"),
    path("plans/", plans.plan_viewer, name="plan-viewer"),
    path("workloads/", workloads.workload_list, name="workload-list"),
    path("workloads/new/", workloads.workload_new, name="workload-new"),
    path("workloads/<slug:slug>/", workloads.workload_detail, name="workload-detail"),
    path("workloads/<slug:slug>/edit/", workloads.workload_edit, name="workload-edit"),
    path("configurations/", configurations.configuration_list, name="configuration-list"),
    path("configurations/new/", configurations.configuration_new, name="configuration-new"),
    path("configurations/check/", configurations.configuration_check, name="configuration-check"),
    path("configurations/names/", configurations.configuration_names, name="configuration-names"),
    path("configurations/diff/", settings_diff.settings_diff, name="settings-diff"),
    path(
        "configurations/<slug:slug>/",
        configurations.configuration_detail,
        name="configuration-detail",
    ),
    path(
        "configurations/<slug:slug>/edit/",
        configurations.configuration_edit,
        name="configuration-edit",
    ),
    path(
        "configurations/<slug:slug>/postgresql.conf",
        configurations.configuration_file,
        name="configuration-file",
    ),
    path("campaigns/<slug:slug>/pause/", queue.campaign_pause, name="campaign-pause"),
    path("campaigns/<slug:slug>/resume/", queue.campaign_resume, name="campaign-resume"),
    path("campaigns/<slug:slug>/rounds/", queue.campaign_rounds, name="campaign-rounds"),
    path("campaigns/<slug:slug>/retry/", queue.campaign_retry, name="campaign-retry"),
    path("campaigns/<slug:slug>/priority/", queue.campaign_priority, name="campaign-priority"),
    path("runs/<int:run_id>/retry/", queue.run_retry, name="run-retry"),
    path("campaigns/<slug:slug>/annotations/", annotations.annotation_add, name="annotation-add"),
    path(
        "annotations/<int:annotation_id>/change/",
        annotations.annotation_change,
        name="annotation-change",
    ),
    path(
        "annotations/<int:annotation_id>/delete/",
        annotations.annotation_delete,
        name="annotation-delete",
    ),
    path("campaigns/<slug:slug>/history/", histories.campaign_history, name="campaign-history"),
    path("campaigns/<slug:slug>/watch/", histories.campaign_watch, name="campaign-watch"),
    path("campaigns/<slug:slug>/badge.svg", badges.campaign_badge, name="campaign-badge"),
    path("changes/", inbox.change_list, name="change-list"),
    path("changes/<int:change_id>/decision/", histories.change_decide, name="change-decide"),
    path("webhooks/", webhooks.webhook_list, name="webhook-list"),
    path("webhooks/<int:webhook_id>/ping/", webhooks.webhook_ping, name="webhook-ping"),
    path("webhooks/<int:webhook_id>/remove/", webhooks.webhook_remove, name="webhook-remove"),
    path("campaigns/<slug:slug>/report/", reports.campaign_report, name="campaign-report"),
    path("campaigns/<slug:slug>/script/", reports.campaign_script, name="campaign-script"),
    path("campaigns/<slug:slug>/export.csv", reports.campaign_csv, name="campaign-csv"),
    path("campaigns/<slug:slug>/export.json", reports.campaign_json, name="campaign-json"),
    path("runs/<int:run_id>/", runs.run_detail, name="run-detail"),
    path("runs/<int:run_id>/script/", reports.run_script, name="run-script"),
    path("runs/<int:run_id>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:run_id>/withdraw/", runs.run_withdraw, name="run-withdraw"),
    path("runs/<int:run_id>/restore/", runs.run_restore, name="run-restore"),
    path("runs/<int:run_id>/artifacts/<path:name>/", artifacts.artifact_download, name="artifact"),
    path("servers/", servers.server_list, name="server-list"),
    path("servers/new/", servers.server_new, name="server-new"),
    path("servers/keys/", ssh_keys.ssh_key_list, name="ssh-key-list"),
    path("servers/keys/<int:key_id>/delete/", ssh_keys.ssh_key_delete, name="ssh-key-delete"),
    path("servers/<slug:slug>/", servers.server_detail, name="server-detail"),
    path("servers/<slug:slug>/confirm/", servers.server_confirm, name="server-confirm"),
    path("servers/<slug:slug>/preflight/", preflight.server_preflight, name="server-preflight"),
    path("servers/<slug:slug>/edit/", servers.server_edit, name="server-edit"),
    path(
        "servers/<slug:slug>/host-key/",
        servers.server_replace_host_key,
        name="server-replace-host-key",
    ),
    path("servers/<slug:slug>/inspect/", servers.server_inspect, name="server-inspect"),
    path("hardware/", hardware.hardware_list, name="hardware-list"),
    path("hardware/<int:hardware_id>/", hardware.hardware_detail, name="hardware-detail"),
    path("topologies/", topologies.topology_list, name="topology-list"),
    path("topologies/<slug:slug>/", topologies.topology_detail, name="topology-detail"),
    path("compare/", compare.compare, name="compare"),
    path("compare/report/", compare_report.compare_report, name="compare-report"),
    path("compare/cells/", compare.compare_cells, name="compare-cells"),
    path("compare/save/", compare.compare_save, name="compare-save"),
    path("compare/saved/", compare.compare_saved, name="compare-saved"),
    path("compare/saved/<slug:slug>/", compare.compare_open, name="compare-open"),
    path("servers/<slug:slug>/maintain/", queue.server_maintain, name="server-maintain"),
    path("servers/<slug:slug>/release/", queue.server_release, name="server-release"),
    path("schedules/", schedules.schedule_list, name="schedule-list"),
    path("schedules/<int:schedule_id>/switch/", schedules.schedule_switch, name="schedule-switch"),
    path("schedules/<int:schedule_id>/delete/", schedules.schedule_delete, name="schedule-delete"),
    path("campaigns/<slug:slug>/schedule/", schedules.schedule_new, name="schedule-new"),
    path("versions/", versions.version_page, name="versions"),
    path("scenarios/", scenarios.scenario_list, name="scenario-list"),
    path("scenarios/<slug:slug>/", scenarios.scenario_detail, name="scenario-detail"),
    path("download/benchlab-upload", downloads.upload_client, name="upload-client"),
    path("download/benchlab-comment", downloads.comment_client, name="comment-client"),
    path("projects/", people.project_list, name="project-list"),
    path("projects/<slug:slug>/people/", people.project_people, name="project-people"),
    path(
        "projects/<slug:slug>/people/<int:member_id>/role/",
        people.project_role,
        name="project-role",
    ),
    path(
        "projects/<slug:slug>/people/<int:member_id>/remove/",
        people.project_remove,
        name="project-remove",
    ),
    path(
        "projects/<slug:slug>/invitations/<int:invitation_id>/take-back/",
        people.project_take_back,
        name="project-take-back",
    ),
    path("invitations/accept/", people.invitation_accept, name="invitation-accept"),
    path("invitations/<str:secret>/", people.invitation, name="invitation"),
    path("audit/", audit.audit_list, name="audit-list"),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]
