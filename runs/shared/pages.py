"""Pages: lists a page at a time, parts that a page asks for again, and messages about refusals.

The address has `after` or `before`, with the key of a row. There is no total: counting would cost
more than the page.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import Reader, newest
from runs.access.services import projects
from runs.models import Project
from runs.shared import navigation
from runs.shared.errors import ServiceError


def context(request: HttpRequest) -> dict[str, Any]:
    """What all pages ask for: the menu, and whether there is a login elsewhere."""
    match = request.resolver_match
    view_name = match.view_name if match else ""
    user = getattr(request, "user", None) or AnonymousUser()
    return {
        "sections": navigation.sections(view_name, user),
        "places": navigation.places(view_name, user),
        "openid_configured": bool(settings.OPENID_ISSUER),
    }


def run_addresses() -> Callable[[int], str]:
    """From a run's key to its page. Looked up once: Django takes long of hundreds."""
    before, after = reverse("run-detail", args=[0]).rsplit("0", 1)
    return lambda key: f"{before}{key}{after}"


class ProjectField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """The project of something new: one in which its maker may make it, else the usual one."""

    def __init__(self) -> None:
        super().__init__(
            Project.objects.none(),
            label=_("Project"),
            to_field_name="slug",
            empty_label=None,
            required=False,
            help_text=_(
                "Its operators change it. Where the project is public, everybody reads and copies"
                " it."
            ),
        )

    def offer(self, user: User, right: Right) -> None:
        """Offer the projects in which the person has the right."""
        self.queryset = permissions.choices(user, right)
        self.initial = self._usual().slug

    def clean(self, value: Any) -> Project:
        """The chosen project, or the usual one."""
        return super().clean(value) or self._usual()

    def _usual(self) -> Project:
        offered = list(self.queryset or ())
        default = next(
            (project for project in offered if project.slug == projects.DEFAULT), None
        )
        return default or next(iter(offered), None) or projects.default()


LONGEST = 18
PAGE_SIZE = 50
# The newest that used a configuration, a machine, scripts: their page is not a list of campaigns.
MOST_CAMPAIGNS = 20


@dataclass(frozen=True)
class Page:
    """Some rows, and the queries of the pages around it; empty if there is none."""

    rows: list[Any]
    before: str = ""
    after: str = ""


def page(
    rows: QuerySet[Any],
    query: QueryDict,
    *,
    size: int | None = None,
    by: str = "-pk",
    to: Reader | None = None,
) -> Page:
    """The page that the address names, else the first. `by` is the list's order, ties by key.

    At most three queries. A row that has vanished since, or is not in the list, leads to the first
    page; so does a page before which there is none, since it may have become shorter or longer.
    """
    size = size or PAGE_SIZE
    order = ("-pk",) if by == "-pk" else (by, "pk")
    is_back = "before" in query
    key = query.get("before") or query.get("after") or ""
    end = _end(rows, key, by) if key else None
    if end is not None and is_back:
        turned = [
            name.removeprefix("-") if name[0] == "-" else f"-{name}" for name in order
        ]
        rows_found = _first(
            rows.filter(_past_end(end, by, is_forward=False)).order_by(*turned),
            size,
            to,
        )
        if len(rows_found) > size:
            return _page(
                query, rows_found[:size][::-1], has_before=True, has_after=True
            )
    elif end is not None:
        rows_found = _first(
            rows.filter(_past_end(end, by, is_forward=True)).order_by(*order), size, to
        )
        if rows_found:
            return _page(
                query,
                rows_found[:size],
                has_before=True,
                has_after=len(rows_found) > size,
            )
    rows_found = _first(rows.order_by(*order), size, to)
    return _page(
        query, rows_found[:size], has_before=False, has_after=len(rows_found) > size
    )


def _first(rows: QuerySet[Any], size: int, to: Reader | None) -> list[Any]:
    return list(
        rows[: size + 1] if to is None else newest(rows, to=to, number=size + 1)
    )


def _end(rows: QuerySet[Any], key: str, order_field: str) -> tuple[int, Any] | None:
    """The key of the row that the address names, and what the list is ordered by."""
    if not (key.isascii() and key.isdigit() and len(key) <= LONGEST):
        return None
    if order_field == "-pk":
        return int(key), None
    order_values = rows.filter(pk=int(key)).values_list(order_field, flat=True)
    return next(((int(key), value) for value in order_values), None)


def _past_end(end: tuple[int, Any], order_field: str, *, is_forward: bool) -> Q:
    """The rows on one side of the end, without itself."""
    key, value = end
    if order_field == "-pk":
        return Q(pk__lt=key) if is_forward else Q(pk__gt=key)
    side = "gt" if is_forward else "lt"
    return Q(**{f"{order_field}__{side}": value}) | Q(
        **{order_field: value, f"pk__{side}": key}
    )


def _page(
    query: QueryDict, rows_shown: list[Any], *, has_before: bool, has_after: bool
) -> Page:
    return Page(
        rows_shown,
        query_beside(query, before=rows_shown[0].pk)
        if rows_shown and has_before
        else "",
        query_beside(query, after=rows_shown[-1].pk)
        if rows_shown and has_after
        else "",
    )


def query_beside(given_query: QueryDict, **changes: int) -> str:
    """The query with the same filters at another place of the list."""
    query = given_query.copy()
    for name in ("after", "before", *changes):
        query.pop(name, None)
    return f"{query.urlencode()}&{urlencode(changes)}".lstrip("&")


R = TypeVar("R", bound=HttpResponseBase)
STAMP = "X-Stamp"


def live(
    request: HttpRequest, template: str, context: Mapping[str, Any]
) -> HttpResponse:
    """A part that the page asks for every few seconds: 204 where it is what the page has.

    Its stamp is a header, which static/js/poll.js gives back with the next request. The part has no
    form: the token in it would be another one each time.
    """
    response = render(request, template, context)
    stamp = hashlib.sha256(response.content).hexdigest()[:16]
    if request.headers.get(STAMP) == stamp:
        return HttpResponse(status=204)
    response[STAMP] = stamp
    return response


@contextmanager
def or_404(missing: type[Exception], message: str = "") -> Iterator[None]:
    """Answers 404 where something raises that it is missing."""
    try:
        yield
    except missing as error:
        raise Http404(message) from error


def refused(request: HttpRequest, error: ServiceError) -> None:
    """Show the error on the next page, its code with it."""
    messages.error(request, sentence(error), extra_tags=error.code)


def add_error(form: BaseForm, error: ServiceError) -> None:
    """Put the error at the field that is at fault, or above the form."""
    form.add_error(error.field if error.field in form.fields else None, sentence(error))


@dataclass(frozen=True)
class _Shown:
    """A block that ends where a service refuses something, which is then shown."""

    show: Callable[[ServiceError], None]

    def __enter__(self) -> None:
        """Nothing is refused so far."""

    def __exit__(
        self, _type: object, error: BaseException | None, _traceback: object
    ) -> bool:
        if isinstance(error, ServiceError):
            self.show(error)
        return isinstance(error, ServiceError)


def refusals(request: HttpRequest) -> _Shown:
    """What a service refuses within the block is shown on the next page."""
    return _Shown(lambda error: refused(request, error))


def faults_of(form: BaseForm) -> _Shown:
    """What a service refuses within the block is at fault in the form."""
    return _Shown(lambda error: add_error(form, error))


def sentence(error: ServiceError) -> str:
    """What was found, and what to do."""
    return f"{error.message} {_(error.remedy)}" if error.remedy else error.message


def file(content: bytes, name: str, media_type: str) -> HttpResponse:
    """As an attachment: what users wrote is never shown as a page of ours."""
    return attached(HttpResponse(content, content_type=media_type), name)


def attached(response: R, name: str) -> R:
    """As an attachment of this name."""
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
