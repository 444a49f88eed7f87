"""The gate before all pages: requests without the needed right are refused here."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS

from runs.selectors.access import permissions
from runs.selectors.access.rights import Right
from runs.services.access import audit

Answer = Callable[[HttpRequest], HttpResponse]


class Gate:
    """Middleware that checks the table of permissions. The API does so itself, with its tokens."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let it through: the view is known only after the address was resolved."""
        with audit.acting(audit.Actor()):
            return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, _args: Any, named: dict[str, Any]
    ) -> HttpResponse | None:
        """Refuse what is not allowed. Hidden objects are not found (404), and not forbidden."""
        match = request.resolver_match
        address = match.view_name if match else ""
        if address.startswith("api:") or hasattr(view, "cls"):
            return None  # a door of the API, which asks the table itself
        if request.method not in SAFE_METHODS:
            audit.become(request.user.get_username(), "page")
        right = permissions.right_of(address, request.method or "GET")
        if right is None or right == Right.LOOK:
            return None
        project = permissions.project_of(address, named)
        if permissions.is_hidden(request.user, project):
            raise Http404
        if permissions.may(request.user, right, project):
            return None
        if request.user.is_authenticated:
            raise PermissionDenied(_("Your role does not allow this."))
        return _to_login(request)


def _to_login(request: HttpRequest) -> HttpResponse:
    """A page redirects to the login and back to itself. An action is refused with a message.

    Of an act the login leads back to the page that it came from: by its own address it would be
    asked for as a page, which it is not. A part of a page (htmx) is answered 401, so that what
    was typed there stays.
    """
    if getattr(request, "htmx", False):
        return HttpResponse(_("Log in first."), status=401, content_type="text/plain")
    if request.method in SAFE_METHODS:
        return redirect_to_login(request.get_full_path())
    messages.warning(request, _("Nothing was done: you are logged out. Log in and try again."))
    return redirect_to_login(_page_before(request))


def _page_before(request: HttpRequest) -> str:
    """The page of this site that the request came from; the first page if unknown."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return "/"
    parts = urlsplit(before)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
