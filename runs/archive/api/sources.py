"""The archive: publications as sources, their tables, and where they contradict themselves."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from runs.access import addresses
from runs.archive.selectors import archive
from runs.models import Discrepancy, PublishedTable, Source
from runs.models.sources import WEIGHTS
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.shapes import computed


class SourceSerializer(serializers.Serializer[Source]):
    """A publication in a list: `year` is the year observed, `published` as printed."""

    slug = serializers.CharField()
    title = serializers.CharField()
    title_ja = serializers.CharField()
    publisher = serializers.CharField()
    year = serializers.IntegerField()
    published = serializers.CharField()
    licence = serializers.CharField()
    tables = serializers.IntegerField(source="table_count")
    figures = serializers.IntegerField(source="figure_count")
    discrepancies = serializers.IntegerField(source="discrepancy_count")
    url = serializers.HyperlinkedIdentityField("api:source-detail", lookup_field="slug")


class TableSerializer(serializers.Serializer[PublishedTable]):
    """A table: `figures` counts what it prints, which is nothing where a picture has them all."""

    number = serializers.CharField()
    campaign = serializers.CharField(source="campaign.slug")
    title = serializers.CharField(source="campaign.title")
    scenario = serializers.CharField(source="campaign.scenario.slug")
    section = serializers.CharField()
    page = serializers.CharField()
    figures = serializers.IntegerField(source="figure_count")
    discrepancies = serializers.IntegerField(source="discrepancy_count")


class DiscrepancySerializer(serializers.Serializer[Discrepancy]):
    """Where the print contradicts itself.

    `row` and `column` count from 1, and are null where it is about no single figure.
    """

    table = serializers.CharField(source="table.number")
    kind = serializers.ChoiceField(choices=Discrepancy.Kind.choices)
    weight = serializers.ChoiceField(choices=WEIGHTS, source="weight_code")
    printed = serializers.CharField()
    recomputed = serializers.CharField()
    row = computed(
        serializers.IntegerField,
        lambda discrepancy: discrepancy.figure and discrepancy.figure.row + 1,
        allow_null=True,
    )
    column = computed(
        serializers.IntegerField,
        lambda discrepancy: discrepancy.figure and discrepancy.figure.column + 1,
        allow_null=True,
    )
    explanation = serializers.DictField(child=serializers.CharField())


class TraceSerializer(serializers.Serializer[Any]):
    """An address that leads towards an original whose own address is not known."""

    url = serializers.CharField()
    note = serializers.DictField(child=serializers.CharField())


class CorrectionSerializer(serializers.Serializer[Any]):
    """A correction of the transcription.

    `table` is "all" for a whole publication; `figures` is empty for a whole table.
    """

    date = serializers.DateField()
    table = serializers.CharField()
    figures = serializers.ListField(child=serializers.CharField(), default=list)
    was = computed(
        serializers.CharField,
        lambda correction: _translate(correction["was"], "en"),
        "In English.",
    )
    was_ja = computed(
        serializers.CharField,
        lambda correction: _translate(correction["was"], "ja"),
        "In Japanese.",
    )
    now = computed(
        serializers.CharField,
        lambda correction: _translate(correction["now"], "en"),
        "In English.",
    )
    now_ja = computed(
        serializers.CharField,
        lambda correction: _translate(correction["now"], "ja"),
        "In Japanese.",
    )
    reason = serializers.DictField(child=serializers.CharField())


def _translate(text: str | Mapping[str, str], language: str) -> str:
    """A stored text in that language; what was stored as one text is the same in both."""
    return text if isinstance(text, str) else text.get(language, "")


class SourceDetailSerializer(SourceSerializer):
    """A publication with its tables and contradictions, in the order of the print."""

    summary = serializers.CharField()
    summary_ja = serializers.CharField()
    licence_url = serializers.CharField()
    published_at = serializers.CharField(source="url")
    traces = TraceSerializer(many=True)
    transcribed_on = serializers.DateField(allow_null=True)
    data_version = serializers.CharField()
    corrections = CorrectionSerializer(many=True)
    tables = serializers.SerializerMethodField()  # type: ignore[assignment]
    discrepancies = serializers.SerializerMethodField()  # type: ignore[assignment]

    @extend_schema_field(TableSerializer(many=True))
    def get_tables(self, source: Source) -> list[dict[str, Any]]:
        """Every table."""
        return [TableSerializer(table).data for table in archive.tables(source)]

    @extend_schema_field(DiscrepancySerializer(many=True))
    def get_discrepancies(self, source: Source) -> list[dict[str, Any]]:
        """Every contradiction."""
        discrepancies = archive.discrepancies().filter(table__source=source)
        return [
            DiscrepancySerializer(discrepancy).data for discrepancy in discrepancies
        ]


@addresses.door(
    {
        "source-detail": addresses.reading(),
        "source-list": addresses.reading(),
    }
)
class SourceDoor(ReadOnlyDoor[Source]):
    """Sources: the publications of the archive. Their figures are measurements with `source`."""

    queryset = archive.sources()
    serializer_class = SourceSerializer
    detail_serializer_class = SourceDetailSerializer
    lookup_field = "slug"
