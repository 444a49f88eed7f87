"""The values of one series of a run."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api import doors
from runs.api.authentication import reader
from runs.api.doors import QueryDoor
from runs.models import Series
from runs.selectors import runs


class SeriesValuesSerializer(serializers.Serializer[Series]):
    """A part of a series: value `i` is of the second `start + i * interval`; null is a gap."""

    name = serializers.CharField()
    unit = serializers.CharField()
    start = serializers.FloatField(help_text="Seconds, of the first value of this part.")
    interval = serializers.FloatField()
    length = serializers.IntegerField(help_text="How many values the whole series has.")
    values = serializers.ListField(child=serializers.FloatField(allow_null=True), source="part")
    next = serializers.IntegerField(allow_null=True)


class SeriesDoor(QueryDoor):
    """The values of one series, up to 20,000 at a time; `next` is the `skip` of what follows."""

    parameters = ("skip",)

    @extend_schema(
        operation_id="runs_series_retrieve",
        parameters=[OpenApiParameter("skip", int, description="So many values are left out.")],
        responses=SeriesValuesSerializer,
    )
    def get(self, request: Request, run_id: int, name: str) -> Response:
        """Give the values of a series from its beginning, or from where the last part ended."""
        skip = doors.skipped(request, "next")
        found: Any = runs.series_part(run_id, name, skip=skip, to=reader(request))
        if found is None:
            raise NotFound
        end = skip + len(found.part)
        found.start += skip * found.interval
        found.next = end if end < found.length else None
        return Response(SeriesValuesSerializer(found).data)
