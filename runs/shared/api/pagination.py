"""Keyset pages: `{results, next}`, newest first, equally fast on the first and the last page."""

from collections.abc import Mapping
from typing import Any, cast

from django.db.models import BigIntegerField, Model
from django.utils.translation import gettext as _
from drf_spectacular.plumbing import build_parameter_type
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

# Maximum digits of a parameter, including leading zeros.
LONGEST = 19


class KeysetPagination(BasePagination):
    """Pages by descending id, up to 1000 rows; `cursor` is the last id of the page before.

    What arrives or vanishes meanwhile shifts nothing. A total would cost more than the page.
    """

    page_size = 100
    maximum = 1000
    ordering: tuple[str, ...] = ("-pk",)
    cursor_param = "cursor"
    size_param = "page_size"

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        """The page that the request asks for. Raises ValidationError for a bad parameter."""
        self.request = request
        size = self._number(self.size_param, self.maximum) or self.page_size
        cursor = self._number(self.cursor_param, BigIntegerField.MAX_BIGINT)
        if cursor is not None:
            queryset = self.filter_after(queryset, cursor)
        # One row more than requested shows whether there is another page.
        ordered = queryset.order_by(*self.ordering)
        # The door leaves out what its reader may not see.
        rows = list(cast(Any, view).newest(ordered, size + 1))
        page = rows[:size]
        self.last: Model | None = page[-1] if len(rows) > len(page) else None
        return page

    def filter_after(self, queryset: Any, cursor: int) -> Any:
        """The rows that follow the one of this id."""
        return queryset.filter(pk__lt=cursor)

    def get_paginated_response(self, data: Any) -> Response:
        """The rows and the absolute address of the next page (null on the last one)."""
        return Response({"results": data, "next": self._next()})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The page in OpenAPI."""
        described = "Address of the next page; null on the last one."
        address = {
            "type": "string",
            "format": "uri",
            "nullable": True,
            "description": described,
        }
        properties = {"results": schema, "next": address}
        return {"type": "object", "required": [*properties], "properties": properties}

    def get_schema_operation_parameters(self, view: APIView) -> list[Mapping[str, Any]]:
        """The query parameters in OpenAPI."""
        size = {
            "type": "integer",
            "minimum": 1,
            "maximum": self.maximum,
            "default": self.page_size,
        }
        cursor = {"type": "integer", "minimum": 1}
        return [
            build_parameter_type(name, schema, "query", description=description)
            for name, schema, description in (
                (
                    self.cursor_param,
                    cursor,
                    "Where the page begins; taken from `next`.",
                ),
                (self.size_param, size, "Rows a page."),
            )
        ]

    def _next(self) -> str | None:
        if self.last is None:
            return None
        address = self.request.build_absolute_uri()
        return replace_query_param(address, self.cursor_param, str(self.last.pk))

    def _number(self, name: str, maximum: int) -> int | None:
        text = self.request.query_params.get(name)
        if text is None:
            return None
        is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST
        if not is_number or not 1 <= int(text) <= maximum:
            raise ValidationError({name: [_fault(name, maximum)]})
        return int(text)


class PagesByRun(KeysetPagination):
    """Rows of the newest run first. So an index of runs gives those of any filter in order."""

    ordering = ("-run_id", "-pk")

    def filter_after(self, queryset: Any, cursor: int) -> Any:
        """The rows that follow the one of this id, or its next where it has vanished."""
        rows = queryset.model.objects.filter(pk__lte=cursor).order_by("-pk")
        run = rows.values_list("run_id", flat=True).first()
        if run is None:
            return queryset.none()
        # Of the run too, by its own name: an index of runs begins there, not at the newest.
        rows_of_run = queryset.filter(run_id__lte=run).extra(
            where=["runs_run.id <= %s"], params=[run]
        )
        return rows_of_run.exclude(run_id=run, pk__gte=cursor)


def _fault(name: str, maximum: int) -> str:
    if name == KeysetPagination.cursor_param:
        return _("Not a cursor. Take it from the “next” of the page before.")
    return _("Not a whole number from 1 to %(maximum)d.") % {"maximum": maximum}
