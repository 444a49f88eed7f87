"""Addresses of archive."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.archive.api.sources import SourceDoor
from runs.archive.api.versions import VersionDoor
from runs.archive.views import archive, charts, versions
from runs.shared.urls import page

pages = [
    path("archive/", archive.archive_index, name="archive"),
    page("archive/discrepancies/", archive.archive_discrepancies),
    page("archive/later/", archive.archive_later),
    page("archive/data.zip", archive.archive_data),
    page("archive/figures/<slug:slug>/<int:row>-<int:column>/", archive.archive_figure),
    page(
        "archive/figures/<slug:slug>/<int:row>-<int:column>/citation.<slug:form>",
        archive.archive_figure_citation,
    ),
    page(
        "archive/tables/<slug:slug>/citation.<slug:form>",
        archive.archive_table_citation,
    ),
    page("archive/<slug:slug>/citation.<slug:form>", archive.archive_citation),
    page("archive/<slug:slug>/", archive.archive_source),
    path("versions/", versions.version_page, name="versions"),
    page("versions/chart.<slug:form>", charts.version_chart),
]
router = SimpleRouter(use_regex_path=False)
router.register("sources", SourceDoor, basename="source")
api = [
    path("versions/", VersionDoor.as_view(), name="version-answer"),
    path("", include(router.urls)),
]
