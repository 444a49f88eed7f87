"""Addresses of configurations."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.configurations.api import ConfigurationDoor
from runs.configurations.views import configurations, settings_diff
from runs.shared.urls import page

pages = [
    page("configurations/", configurations.configuration_list),
    page("configurations/new/", configurations.configuration_new),
    page("configurations/check/", configurations.configuration_check),
    page("configurations/names/", configurations.configuration_names),
    page("configurations/diff/", settings_diff.settings_diff),
    page("configurations/<slug:slug>/", configurations.configuration_detail),
    page("configurations/<slug:slug>/edit/", configurations.configuration_edit),
    page(
        "configurations/<slug:slug>/postgresql.conf", configurations.configuration_file
    ),
]
router = SimpleRouter(use_regex_path=False)
router.register("configurations", ConfigurationDoor, basename="configuration")
api = [
    path("", include(router.urls)),
]
