"""Doors that want a login, and where they send those who have none, or none any more."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS

P = ParamSpec("P")
Door = Callable[Concatenate[HttpRequest, P], HttpResponse]


def login_required(door: Door[P]) -> Door[P]:
    """A page leads to the login and back to itself. An act is not done, and is told so.

    Of an act the login leads back to the page that it came from: by its own address it would be
    asked for as a page, which it is not. A part of a page (htmx) is answered 401, so that what
    was typed there stays.
    """

    @wraps(door)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.user.is_authenticated:
            return door(request, *args, **kwargs)
        if getattr(request, "htmx", False):
            return HttpResponse(_("Log in first."), status=401, content_type="text/plain")
        if request.method in SAFE_METHODS:
            return redirect_to_login(request.get_full_path())
        messages.warning(request, _("Nothing was done: you are logged out. Log in and try again."))
        return redirect_to_login(_page_before(request))

    return answer


def _page_before(request: HttpRequest) -> str:
    """The page of this site that the request came from; the first page where none is told."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return "/"
    parts = urlsplit(before)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
