"""The search for everything, for programs: the same rows as its page."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.home.selectors import search
from runs.home.views.search import KINDS, row_of
from runs.shared.api.doors import QueryDoor
from runs.shared.words import LONGEST


class SearchRowSerializer(serializers.Serializer[Any]):
    """Something that was found: `answer` is what a campaign says, empty for others."""

    kind = serializers.CharField(help_text=f"Of {', '.join(KINDS)}.")
    name = serializers.CharField()
    note = serializers.CharField()
    answer = serializers.CharField(default="")
    url = serializers.CharField()


class SearchSerializer(serializers.Serializer[Any]):
    """The best rows of each kind. `is_near`: nothing has all the words, these have some.

    `unmeasured` is the setting that the words are, if no campaign compares values of it.
    """

    is_near = serializers.BooleanField()
    unmeasured = serializers.CharField(default="")
    results = SearchRowSerializer(many=True)


@addresses.door({"search": addresses.reading()})
class SearchDoor(QueryDoor):
    """The search for everything."""

    parameters = ("q",)

    @extend_schema(
        operation_id="search_retrieve",
        parameters=[OpenApiParameter("q", description="The words.")],
        responses=SearchSerializer,
    )
    def get(self, request: Request) -> Response:
        """Give what has all the words, by kind, the best first."""
        words = " ".join(request.query_params.get("q", "").split())[:LONGEST]
        groups = search.everywhere(words, to=reader(request))
        results = []
        for group in groups:
            for row in group.rows:
                group_row = row_of(group, row)
                url = request.build_absolute_uri(group_row["href"])
                results.append(
                    {
                        **group_row,
                        "kind": group.kind,
                        "note": str(group_row["note"]),
                        "url": url,
                    }
                )
        is_near = any(group.is_near for group in groups)
        search_results = {
            "is_near": is_near,
            "unmeasured": search.unmeasured_setting(words, to=reader(request)),
            "results": results,
        }
        return Response(SearchSerializer(search_results).data)
