"""Addresses of workloads."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.shared.urls import page
from runs.workloads.api.scenarios import ScenarioDoor
from runs.workloads.api.trials import TrialCheckDoor, TrialDoor
from runs.workloads.views import scenarios, topologies, workloads

pages = [
    page("workloads/", workloads.workload_list),
    page("workloads/new/", workloads.workload_new),
    page("workloads/<slug:slug>/", workloads.workload_detail),
    page("workloads/<slug:slug>/edit/", workloads.workload_edit),
    page("topologies/", topologies.topology_list),
    page("topologies/<slug:slug>/", topologies.topology_detail),
    page("scenarios/", scenarios.scenario_list),
    page("scenarios/<slug:slug>/", scenarios.scenario_detail),
]
router = SimpleRouter(use_regex_path=False)
router.register("scenarios", ScenarioDoor, basename="scenario")
api = [
    path("trials/", TrialDoor.as_view(), name="trial"),
    path("trials/<uuid:check_id>/", TrialCheckDoor.as_view(), name="trial-check"),
    path("", include(router.urls)),
]
