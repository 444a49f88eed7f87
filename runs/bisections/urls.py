"""Addresses of bisections."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.bisections import views
from runs.bisections.api import BisectionDoor
from runs.shared.urls import page

pages = [
    page("bisections/new/", views.bisection_new),
    page("bisections/<int:bisection_id>/", views.bisection_detail),
    page("bisections/<int:bisection_id>/cancel/", views.bisection_cancel),
]
router = SimpleRouter(use_regex_path=False)
router.register("bisections", BisectionDoor, basename="bisection")
api = [
    path("", include(router.urls)),
]
