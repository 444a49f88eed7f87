"""Addresses of loads."""

from django.urls import path

from runs.loads.api import LoadAnswerDoor, LoadDumpDoor, LoadTrialsDoor
from runs.loads.views import loads
from runs.shared.urls import page

pages = [
    page("loads/", loads.load_list),
    page("loads/new/", loads.load_new),
    page("loads/<slug:slug>/", loads.load_detail),
    page("loads/<slug:slug>/measure/", loads.load_measure),
    page("loads/<slug:slug>/dump/", loads.load_dump),
    page("loads/<slug:slug>/delete/", loads.load_delete),
    page("loads/<slug:slug>/answers/<slug:campaign>/", loads.load_answer),
    page("loads/<slug:slug>/answers/<slug:campaign>/try/", loads.load_try),
    page("loads/<slug:slug>/answers/<slug:campaign>/report.md", loads.load_report),
]
api = [
    path(
        "loads/<slug:slug>/answers/<slug:campaign>/",
        LoadAnswerDoor.as_view(),
        name="load-answer",
    ),
    path(
        "loads/<slug:slug>/answers/<slug:campaign>/trials/",
        LoadTrialsDoor.as_view(),
        name="load-trials",
    ),
    path("loads/<slug:slug>/dump/", LoadDumpDoor.as_view(), name="load-dump"),
]
