"""Addresses of queue."""

from django.urls import URLPattern, include, path
from rest_framework.routers import SimpleRouter

from runs.queue.api import RunDoor, SeriesDoor
from runs.queue.views import charts, profiles, query_plans, queue, runs
from runs.shared.urls import page

# Where the pages of what a button is about begin.
ROWS = {
    "campaign": "campaigns/<slug:slug>",
    "run": "runs/<int:run_id>",
    "server": "servers/<slug:slug>",
}


def button(name: str) -> URLPattern:
    """A button by its name: run-retry is runs/12/retry/."""
    word, act = name.split("-")
    return path(f"{ROWS[word]}/{act}/", queue.press, name=name)


pages = [
    page("runs/<int:run_id>/series/", runs.run_series),
    page("runs/<int:run_id>/chart.<slug:form>", charts.run_chart),
    page("runs/<int:run_id>/profile/", profiles.run_profile),
    page("plans/", query_plans.plan_viewer),
    page("runs/", runs.run_list),
    page("runs/<int:run_id>/", runs.run_detail),
    path(
        "runs/<int:run_id>/artifacts/<path:name>/",
        runs.artifact_download,
        name="artifact",
    ),
    *map(button, queue.BUTTONS),
]
router = SimpleRouter(use_regex_path=False)
router.register("runs", RunDoor, basename="run")
api = [
    path(
        "runs/<int:run_id>/series/<str:name>/", SeriesDoor.as_view(), name="run-series"
    ),
    path("", include(router.urls)),
]
