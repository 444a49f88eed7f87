"""How addresses of pages are written."""

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import NoReverseMatch, URLPattern, path, reverse


def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
    """A page by the name of its view: `campaign_new` is campaign-new."""
    return path(route, view, name=view.__name__.replace("_", "-"))


def path_if_there(name: str) -> str:
    """The path of an address; empty where the subject that has it was taken out."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
