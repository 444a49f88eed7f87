"""Addresses of exchange."""

from django.urls import URLPattern, path

from runs.exchange.api import ExportDoor, ImportDoor

pages: list[URLPattern] = []
api = [
    path("projects/<slug:slug>/export/", ExportDoor.as_view(), name="project-export"),
    path("projects/<slug:slug>/import/", ImportDoor.as_view(), name="project-import"),
]
