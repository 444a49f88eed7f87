"""Addresses of home."""

from django.urls import URLPattern, path

from runs.home.api import SearchDoor
from runs.home.views import glossary, home, search, styleguide
from runs.shared.urls import page

pages = [
    page("", home.home),
    path("search/", search.everywhere, name="search"),
    path("help/", glossary.help_page, name="help"),
    page("styleguide/", styleguide.styleguide),
]
api: list[URLPattern] = [
    path("search/", SearchDoor.as_view(), name="search"),
]
