"""Which static files of packages are collected."""

from django.contrib.staticfiles.apps import StaticFilesConfig


class StaticFiles(StaticFilesConfig):
    """All but what no page asks for: plotly's widgets, another htmx, REST framework's pages."""

    ignore_patterns = [
        *StaticFilesConfig.ignore_patterns,
        "widgetbundle.js",
        "datasets",
        "templates",
        "rest_framework",
        "redoc",
        "ext",
        "htmx-4*",
        "htmax-4*",
    ]
