"""Addresses of operations."""

from django.urls import URLPattern, URLResolver, path

from runs.operations import views
from runs.operations.api import HostJoinDoor, HostLeaveDoor
from runs.shared.urls import page

pages = [
    page("take-over/", views.take_over),
    page("workers/", views.worker_list),
]
api: list[URLPattern | URLResolver] = [
    path("hosts/join/", HostJoinDoor.as_view(), name="host-join"),
    path("hosts/leave/", HostLeaveDoor.as_view(), name="host-leave"),
]
