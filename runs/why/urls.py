"""Addresses of why."""

from django.urls import path

from runs.shared.urls import page
from runs.why.api import WhyDoor
from runs.why.views import compare_why

pages = [
    page("compare/why/", compare_why),
]
api = [
    path("compare/why/", WhyDoor.as_view(), name="compare-why"),
]
