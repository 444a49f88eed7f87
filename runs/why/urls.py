"""Addresses of why."""

from django.urls import path

from runs.shared.urls import page
from runs.why.api import WhyDoor
from runs.why.views import compare_why, compare_why_chart

pages = [
    page("compare/why/", compare_why),
    page("compare/why/chart.<slug:form>", compare_why_chart),
]
api = [
    path("compare/why/", WhyDoor.as_view(), name="compare-why"),
]
