"""Addresses of all subjects: pages, and the REST API below /api/v1/."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from runs import on_top
from runs.access import addresses, urls
from runs.archive import urls as archive
from runs.campaigns import urls as campaigns
from runs.compare import urls as compare
from runs.configurations import urls as configurations
from runs.histories import urls as histories
from runs.loads import urls as loads
from runs.operations import urls as operations
from runs.queue import urls as queue
from runs.schedules import urls as schedules
from runs.servers import urls as servers
from runs.shared.api.doors import Nowhere
from runs.shared.api.schema_view import SchemaView
from runs.topics import urls as topics
from runs.uploads import urls as uploads
from runs.workloads import urls as workloads

# Each has `pages` and `api`; those on top are named in `runs/on_top.py`. Uploads come first:
# programs ask most often, and an address is looked for from above.
SUBJECTS = [
    uploads,
    urls,
    archive,
    campaigns,
    compare,
    configurations,
    histories,
    loads,
    operations,
    queue,
    schedules,
    servers,
    topics,
    workloads,
    *on_top.urls(),
]

pages: list[URLPattern] = [pattern for subject in SUBJECTS for pattern in subject.pages]
if "home" not in on_top.SUBJECTS:

    @addresses.page("home")
    def home(request: HttpRequest) -> HttpResponse:
        """In place of the first page, where that was taken out: the campaigns."""
        return redirect("campaign-list")

    pages.append(path("", home, name="home"))
api: list[URLPattern | URLResolver] = [
    path("v1/", include([pattern for subject in SUBJECTS for pattern in subject.api])),
    path("v1/schema/", SchemaView.as_view(), name="schema"),
    # The page's script is served as a file of its own: no inline script anywhere on the site.
    path(
        "docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"
    ),
    # Only with a slash at the end, so that an address without one is still led to that with one.
    re_path(r"^v1/(?:.*/)?$", Nowhere.as_view(), name="nowhere"),
]
