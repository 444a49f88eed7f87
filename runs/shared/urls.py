"""How addresses of pages are written."""

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import URLPattern, path


def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
    """A page by the name of its view: `campaign_new` is campaign-new."""
    return path(route, view, name=view.__name__.replace("_", "-"))
