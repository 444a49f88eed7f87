"""Addresses of observations."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.observations.api import ObservationDoor
from runs.observations.views import charts, observations
from runs.shared.urls import page

pages = [
    page("observations/", observations.observation_list),
    page("observations/new/", observations.observation_new),
    page("observations/<slug:slug>/", observations.observation_detail),
    page("observations/<slug:slug>/chart.<slug:form>", charts.observation_chart),
    page("observations/<slug:slug>/begin/", observations.observation_begin),
    page("observations/<slug:slug>/write/", observations.observation_write),
    page("observations/<slug:slug>/report/", observations.observation_report),
    page("observations/<slug:slug>/publication/", observations.observation_publication),
]
router = SimpleRouter(use_regex_path=False)
router.register("observations", ObservationDoor, basename="observation")
api = [
    path("", include(router.urls)),
]
