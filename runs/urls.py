"""Addresses of all subjects: pages, and the REST API below /api/v1/."""

from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from runs.access import urls as access
from runs.archive import urls as archive
from runs.bisections import urls as bisections
from runs.campaigns import urls as campaigns
from runs.compare import urls as compare
from runs.configurations import urls as configurations
from runs.documents import urls as documents
from runs.exchange import urls as exchange
from runs.histories import urls as histories
from runs.home import urls as home
from runs.observations import urls as observations
from runs.operations import urls as operations
from runs.queue import urls as queue
from runs.schedules import urls as schedules
from runs.servers import urls as servers
from runs.shared.api.doors import Nowhere
from runs.shared.api.schema_view import SchemaView
from runs.topics import urls as topics
from runs.uploads import urls as uploads
from runs.why import urls as why
from runs.workloads import urls as workloads

# Each has `pages` and `api`. Uploads come first: programs ask most often, and an address is looked
# for from above.
SUBJECTS = [
    uploads,
    access,
    archive,
    bisections,
    campaigns,
    compare,
    configurations,
    documents,
    exchange,
    histories,
    home,
    observations,
    operations,
    queue,
    schedules,
    servers,
    topics,
    why,
    workloads,
]

pages: list[URLPattern] = [pattern for subject in SUBJECTS for pattern in subject.pages]
api: list[URLPattern | URLResolver] = [
    path("v1/", include([pattern for subject in SUBJECTS for pattern in subject.api])),
    path("v1/schema/", SchemaView.as_view(), name="schema"),
    # The page's script is served as a file of its own: no inline script anywhere on the site.
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
    # Only with a slash at the end, so that an address without one is still led to that with one.
    re_path(r"^v1/(?:.*/)?$", Nowhere.as_view(), name="nowhere"),
]
