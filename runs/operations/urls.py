"""Addresses of operations."""

from django.urls import URLPattern, URLResolver

from runs.operations import views
from runs.shared.urls import page

pages = [page("take-over/", views.take_over)]
api: list[URLPattern | URLResolver] = []
