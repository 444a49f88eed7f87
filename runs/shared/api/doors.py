"""What every door of the API shares: strict query parameters, and problems in the schema."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_doc
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, NotFound
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings
from rest_framework.views import APIView
from rest_framework.viewsets import ReadOnlyModelViewSet

from runs.access import addresses
from runs.access.api.authentication import reader, require_own
from runs.access.selectors import projects
from runs.models import Token
from runs.reports.csv_lines import csv_lines
from runs.shared import embedding, skipping
from runs.shared.api.errors import MEDIA_TYPE
from runs.shared.api.pagination import KeysetPagination
from runs.shared.api.parsing import QueryFault
from runs.shared.api.rendering import known_format

# Rows that the database sends at a time.
CHUNK = 2000

Prepare = Callable[[Sequence[Any]], Sequence[Any]]


CSVRenderer = known_format("text/csv", "csv")


def strip_format(request: Request) -> HttpRequest:
    """The request without its `format`, which would go on into every address in the rows."""
    plain = copy(request._request)
    query = request.query_params.copy()
    query.pop(str(api_settings.URL_FORMAT_OVERRIDE), None)
    plain.GET = query  # type: ignore[assignment]  # as mutable as Django's own is not
    return plain


def stream(
    rows: QuerySet[Any], serializer: Serializer[Any], *, name: str, prepare: Prepare
) -> StreamingHttpResponse:
    """The rows as the serializer gives them, a header first; nested values are JSON in their field.

    `prepare` makes some rows at a time for the serializer; none is kept, however many there are.
    """
    lines = csv_lines(serializer.fields, _rows(rows, serializer, prepare))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _rows(
    rows: QuerySet[Any], serializer: Serializer[Any], prepare: Prepare
) -> Iterator[Iterable[Any]]:
    remaining = rows.iterator(chunk_size=CHUNK)
    while chunk := list(islice(remaining, CHUNK)):
        for row in prepare(chunk):
            yield serializer.to_representation(row).values()


M = TypeVar("M", bound=Model)
S = TypeVar("S", bound=Serializer[Any])

AS_CSV = "As CSV (`format=csv`) all that the filters leave, in one answer."


class FaultSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request."""

    pointer = serializers.CharField(
        help_text="JSON pointer into the body, or ?parameter."
    )
    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField(required=False, help_text="What to send instead.")


class ProblemSerializer(serializers.Serializer[Any]):
    """An error: `code` is stable and for programs, `detail` and `remedy` are for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    remedy = serializers.CharField(required=False)
    errors = FaultSerializer(many=True)  # type: ignore[assignment]


class Schema(AutoSchema):
    """Adds to each operation the problems that it may answer with."""

    problems: tuple[str, ...] = ("400", "401", "403", "429")

    def get_description(self) -> Any:  # type: ignore[override]  # as drf_spectacular has it
        """The method's own docstring; the view's for methods that all views have in common."""
        action = getattr(self.view, "action", "")
        method = getattr(type(self.view), action or "", None)
        if method is ReadOnlyDoor.list:
            return f"{get_doc(type(self.view))}\n\n{AS_CSV}"
        if method is ReadOnlyDoor.retrieve:
            return get_doc(type(self.view))
        return super().get_description()

    def get_request_serializer(self) -> Any:
        """None: whatever takes a body declares it."""
        return None

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """The operation's own answer, and problems."""
        operation = super().get_operation(*args, **kwargs)
        if operation is not None:
            problem = self.resolve_serializer(ProblemSerializer, "response").ref
            content = {MEDIA_TYPE: {"schema": problem}}
            statuses = [*self.problems, *(["404"] if "{" in self.path else [])]
            is_plain = getattr(self.view, "action", "") in {"", "list", "retrieve"}
            if self.method not in SAFE_METHODS or not is_plain:
                statuses += ["409", "422"]  # whatever a service may refuse
            operation["responses"] |= {
                status: {
                    "description": HTTPStatus(int(status)).phrase,
                    "content": content,
                }
                for status in statuses
            }
        return operation


@method_decorator(embedding.tagged, name="dispatch")
class _Door(APIView):
    """Refuses unknown, empty and doubled query parameters; the `repeatable` may come often."""

    schema = Schema()
    repeatable: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the query parameters before anything is read."""
        super().initial(request, *args, **kwargs)
        faults = {}
        for name, values in request.query_params.lists():
            if fault := _fault_of(
                name, values, self.known_parameters(), self.repeatable
            ):
                faults[name] = [fault]
        if faults:
            raise QueryFault(faults)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """What anybody may read has a tag, and named sites may read it; it is never stale."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if (
            request.method in ("GET", "HEAD")
            and answer.status_code == HTTPStatus.OK
            and "Cache-Control" not in answer.headers
        ):
            embedding.opened(request._request, answer, seconds=0)
        return answer

    def known_parameters(self) -> list[str]:
        """Those that the request may have."""
        raise NotImplementedError


class ReadOnlyDoor(_Door, ReadOnlyModelViewSet[M]):
    """A list with filters, in keyset pages or as CSV, and one object.

    A script with a typo or an empty variable must not take all results for those it asked for.
    What belongs to a private project does not exist for anybody but members.
    """

    # The selector of what the door shows `to` its reader; without one all of `queryset`.
    listed: Callable[..., QuerySet[Any]] | None = None
    # Whether an object is of a token's project.
    is_own: Callable[[Any, Token], bool] = staticmethod(projects.is_own)
    # A row may be more than the object; see `prepared`.
    serializer_class: Any = None
    detail_serializer_class: Any = None

    def get_queryset(self) -> QuerySet[M]:
        """What the door shows, besides what `readable` leaves out."""
        if self.listed is None or getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return self.listed(to=reader(self.request))

    def get_serializer_class(self) -> Any:
        """Of a single object the one that shows more, if there is one."""
        is_single = self.detail or self.action == "create"
        return (
            self.detail_serializer_class if is_single else None
        ) or self.serializer_class

    def get_renderers(self) -> list[BaseRenderer]:
        """CSV for lists, besides JSON."""
        renderers = super().get_renderers()
        return [*renderers, CSVRenderer()] if self.action == "list" else renderers

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One object."""
        return self.shown()

    def acted(
        self,
        act: Callable[..., object],
        body: type[Serializer[Any]] | None = None,
        **options: Any,
    ) -> Response:
        """Act on what the address names, as the body says, and show it as it is by then."""
        row = self.get_object()
        fields = taken(body, self.request).validated_data if body else {}
        act(**{str(row._meta.model_name): row}, **fields, **options)
        return self.shown()

    def shown(self, instance: M | None = None, status: int = 200) -> Response:
        """All of an object; of that which the address names, as it is by now."""
        (row,) = self.prepared([instance or self.get_object()])
        return Response(self.get_serializer(row).data, status=status)

    def paginate_queryset(self, queryset: Any) -> Any:
        """The page's objects with everything that is shown of them."""
        return self.prepared(super().paginate_queryset(queryset) or [])

    def prepared(self, instances: Sequence[Any]) -> Sequence[Any]:
        """What the serializer takes of these objects; a door may count here for all at once."""
        return instances

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The requested objects that the reader may see."""
        return self.readable(super().filter_queryset(queryset))

    def newest(self, rows: QuerySet[M], number: int) -> QuerySet[M]:
        """The first of those that the reader may see, in their order."""
        if self.request.query_params.get("campaign"):
            # All of one project: nothing hidden lies between them.
            return self.readable(rows)[:number]
        return projects.newest(rows, to=reader(self.request), number=number)

    def readable(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Those of the rows that the reader may see."""
        return projects.visible(rows, to=reader(self.request))

    def get_object(self) -> M:
        """What the address names; a token reads what is public, and changes its project's only."""
        instance = super().get_object()
        if self.request.method not in SAFE_METHODS:
            require_own(self.request, lambda token: self.is_own(instance, token))
        return instance

    def known_parameters(self) -> list[str]:
        """The filters' and the paging's for a list, besides the format."""
        names = [str(api_settings.URL_FORMAT_OVERRIDE)]
        if self.detail:
            return names
        filters = getattr(self, "filterset_class", None)
        paging = [KeysetPagination.cursor_param, KeysetPagination.size_param]
        return [*(filters.base_filters if filters else ()), *paging, *names]

    # The last one: behind it the name means this method.
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """A page in JSON, or everything in CSV."""
        if not isinstance(request.accepted_renderer, CSVRenderer):
            # Without `readable`: the pagination asks `newest`.
            page = self.paginate_queryset(super().filter_queryset(self.get_queryset()))
            return self.get_paginated_response(
                self.get_serializer(page, many=True).data
            )
        ordering = cast(type[KeysetPagination], self.pagination_class).ordering
        rows = self.filter_queryset(self.get_queryset()).order_by(*ordering)
        name = request.path.rstrip("/").rpartition("/")[2]
        context = {**self.get_serializer_context(), "request": strip_format(request)}
        serializer = self.get_serializer_class()(context=context)
        return stream(
            rows,
            cast(serializers.Serializer[Any], serializer),
            name=name,
            prepare=self.prepared,
        )


@addresses.door(
    {
        "nowhere": addresses.reading(),
    }
)
@extend_schema(exclude=True)
class Nowhere(APIView):
    """Every other address below the API: a problem in the API's shape, and no HTML page."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Say that there is nothing here, whatever the method."""
        super().initial(request, *args, **kwargs)
        raise NotFound(_("There is nothing at this address."))

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Never reached; here so that the schema finds a method to leave out."""
        raise NotFound


class QueryDoor(_Door):
    """One answer a query. `parameters` are those that it may have once."""

    parameters: tuple[str, ...] = ()

    def known_parameters(self) -> list[str]:
        """Those declared, besides the format."""
        return [
            *self.parameters,
            *self.repeatable,
            str(api_settings.URL_FORMAT_OVERRIDE),
        ]


def _fault_of(
    name: str, values: list[str], known_names: list[str], repeatable: Sequence[str] = ()
) -> ErrorDetail | None:
    if name not in known_names:
        words = {"known": ", ".join(known_names)}
        if nearest := difflib.get_close_matches(name.lower()[:100], known_names, n=1):
            message = _(
                "Unknown parameter; did you mean %(nearest)s? Known are: %(known)s."
            )
            words |= {"nearest": nearest[0]}
        else:
            message = _("Unknown parameter; known are: %(known)s.")
        return ErrorDetail(message % words, "unknown_parameter")
    if len(values) > 1 and name not in repeatable:
        return ErrorDetail(_("Given more than once."), "repeated_parameter")
    if not all(value.strip() for value in values):
        return ErrorDetail(_("Has no value."), "empty_parameter")
    return None


def refuse(name: str, code: str, message: str) -> QueryFault:
    """The fault of one parameter, to be raised."""
    return QueryFault({name: [ErrorDetail(message, code)]})


def skipped(request: Request, field: str) -> int:
    """The parameter `skip`, as a field of the answer before gave it."""
    skip = skipping.skipped(request.query_params.get("skip", "0"))
    if skip is None:
        message = _("Give a whole number, taken from “%(field)s”.") % {"field": field}
        raise refuse("skip", "invalid", message)
    return skip


def taken(kind: type[S], request: Request) -> S:
    """A body that a serializer finds valid. Raises ValidationError."""
    serializer = kind(data=request.data, context={"reader": reader(request)})
    serializer.is_valid(raise_exception=True)
    return serializer


def level(text: str) -> tuple[str, str]:
    """`clients=8` as factor and level. Raises ValidationError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        message = _("“%(text)s” must be a factor and its level, as in clients=8.")
        raise refuse("level", "not_a_level", message % {"text": text})
    return name, value


def percent(text: str | None, default: float) -> float:
    """A percentage from 0 to 1000. Raises ValidationError."""
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise refuse("effect", "out_of_range", _("A number of percent from 0 to 1000."))
    return value
