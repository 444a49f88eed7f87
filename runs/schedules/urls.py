"""Addresses of schedules."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.schedules.api import ScheduleDoor
from runs.schedules.views import (
    schedule_delete,
    schedule_list,
    schedule_new,
    schedule_switch,
)
from runs.shared.urls import page

pages = [
    page("schedules/", schedule_list),
    page("schedules/<int:schedule_id>/switch/", schedule_switch),
    page("schedules/<int:schedule_id>/delete/", schedule_delete),
    page("campaigns/<slug:slug>/schedule/", schedule_new),
]
router = SimpleRouter(use_regex_path=False)
router.register("schedules", ScheduleDoor, basename="schedule")
api = [
    path("", include(router.urls)),
]
