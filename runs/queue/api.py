"""Runs: a list, and one with what happened in it and what it found."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse as page_of
from django.utils.functional import cached_property
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from runs.access import addresses
from runs.access.api.authentication import asker, reader
from runs.access.selectors.permission_table import Right
from runs.analysis.certificate import WEIGHTS
from runs.analysis.judged_runs import JUDGEMENTS
from runs.campaigns.api.measurements import levels_of
from runs.models import (
    Artifact,
    Command,
    Import,
    Measurement,
    Revision,
    Run,
    RunEvent,
    Seal,
    Series,
)
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.queue.filters import RunFilters
from runs.queue.selectors import runs
from runs.queue.selectors.certificate_words import Sentence, certificate_sentences
from runs.queue.services import attempts, withdrawals
from runs.seals.selectors import seals as seal_selectors
from runs.servers.selectors import builds
from runs.shared.api import doors
from runs.shared.api.doors import QueryDoor, ReadOnlyDoor
from runs.shared.api.shapes import computed
from runs.wording import say_stored

VALIDITY: dict[str, Any] = {
    "source": "judgement",
    "choices": JUDGEMENTS,
    "allow_blank": True,
    "help_text": "Empty without a result.",
}


class Translated(serializers.CharField):
    """An English text of BenchLab in the reader's language."""

    def to_representation(self, value: str) -> str:
        """As the catalogue has it."""
        return say_stored({}, value, gettext)


class Worded(serializers.CharField):
    """The `message` of a run or an event in the reader's language; `source` is "*"."""

    def to_representation(self, value: Any) -> str:
        """Of its text and values, where it is made of them."""
        return say_stored(value.wording, value.message, gettext)


class Notes(serializers.ListField):
    """What a reader of the result should know, each message in the reader's language."""

    child = serializers.DictField()

    def to_representation(self, value: Any) -> list[dict[str, Any]]:
        """Without what the messages are made of."""
        return [
            {name: member for name, member in note.items() if name != "wording"}
            | {
                "message": say_stored(
                    note.get("wording", {}), note.get("message", ""), gettext
                )
            }
            for note in value
        ]


class RunSerializer(serializers.Serializer[Run]):
    """A run in a list. For one that did not finish, `code`, `message` and `remedy` say why.

    A long message is cut at 300 characters here, and ends with an ellipsis.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="campaign.slug")
    levels = computed(
        serializers.DictField,
        levels_of,
        "The version, the level of each factor, and the repeat.",
    )
    position = serializers.IntegerField()
    origin = serializers.ChoiceField(choices=Origin.choices)
    state = serializers.ChoiceField(choices=Run.State.choices)
    validity = serializers.ChoiceField(**VALIDITY)
    code = serializers.CharField()
    message = computed(serializers.CharField, runs.beginning, "Its beginning.")
    remedy = Translated()
    server = serializers.CharField(source="server.slug", allow_null=True, default=None)
    queued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    url = serializers.SerializerMethodField()

    def get_url(self, run: Run) -> str:
        """The address of the run in this API."""
        before, after = self._address
        return f"{before}{run.pk}/{after}"

    @cached_property
    def _address(self) -> list[str]:
        # Looked up once: hundreds take a seventh of a page's time.
        address = reverse("api:run-detail", args=[0], request=self.context["request"])
        return str(address).rsplit("0/", 1)


class ImportSerializer(serializers.Serializer[Import]):
    """The import that brought a run: from which instance, sealed by which key.

    `is_verified`: the run was as that key had sealed it, by the file's chain; else `fault` says
    what was not proved.
    """

    at = serializers.DateTimeField()
    sender = serializers.CharField(source="instance")
    key = serializers.CharField()
    is_verified = serializers.BooleanField()
    fault = serializers.CharField()


class EventSerializer(serializers.Serializer[RunEvent]):
    """A change of state, or a note on the way."""

    at = serializers.DateTimeField()
    from_state = serializers.CharField()
    to_state = serializers.CharField()
    code = serializers.CharField()
    message = Worded(source="*")
    attempt = serializers.IntegerField()


class RunMeasurementSerializer(serializers.Serializer[Measurement]):
    """A number that the run found."""

    metric = serializers.CharField(source="metric.name")
    value = serializers.FloatField()
    unit = serializers.CharField(source="metric.unit")
    n = serializers.IntegerField()
    statistic = serializers.ChoiceField(choices=Statistic.choices)


class SeriesSerializer(serializers.Serializer[Series]):
    """What series there is: seconds of start and interval, and the number of values."""

    name = serializers.CharField()
    unit = serializers.CharField()
    start = serializers.FloatField()
    interval = serializers.FloatField()
    length = serializers.IntegerField(allow_null=True)


class CommandSerializer(serializers.Serializer[Command]):
    """A command on the target, without its output."""

    attempt = serializers.IntegerField()
    step = serializers.CharField()
    argv = serializers.ListField(child=serializers.CharField())
    exit_status = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class RevisionSerializer(serializers.Serializer[Revision]):
    """The commit that was measured, and the branches it was uploaded with."""

    sha = serializers.CharField()
    ref = serializers.CharField()
    refs = serializers.SerializerMethodField()
    url = serializers.CharField()
    committed_at = serializers.DateTimeField(allow_null=True)
    parents = serializers.ListField(child=serializers.CharField())
    subject = serializers.CharField()
    author = serializers.CharField()

    def get_refs(self, revision: Revision) -> list[str]:
        """Every branch or tag that an upload named."""
        further_refs = [
            revision_ref.ref for revision_ref in revision.further_refs.all()
        ]
        return [ref for ref in (revision.ref, *further_refs) if ref]


class ArtifactSerializer(serializers.Serializer[Artifact]):
    """A file of the run; size in bytes, and the address it is read at."""

    url = serializers.SerializerMethodField()

    name = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()

    def get_url(self, artifact: Artifact) -> str:
        """The address of its content."""
        path = page_of("artifact", args=[artifact.run_id, artifact.name])
        return str(self.context["request"].build_absolute_uri(path))


class VersionsSerializer(serializers.Serializer[Run]):
    """What was measured and with what; empty where it is not known."""

    server = serializers.CharField(source="server_version")
    tool = serializers.CharField(source="tool_name")
    tool_version = serializers.CharField()


class CertificateFindingSerializer(serializers.Serializer[Sentence]):
    """One reason to doubt a run, or one thing to know."""

    code = serializers.CharField()
    weight = serializers.ChoiceField(choices=WEIGHTS)
    figures = serializers.DictField()
    message = serializers.CharField()


class CertificateSerializer(serializers.Serializer[Run]):
    """How far the run can be relied on, why, who used the processors, and how fast they were."""

    validity = serializers.ChoiceField(**VALIDITY)
    rules = serializers.IntegerField(
        source="certificate.rules", allow_null=True, default=None
    )
    findings = serializers.SerializerMethodField()
    usage = serializers.DictField(source="certificate.usage", default=dict)
    speed = serializers.DictField(
        source="certificate.speed",
        default=dict,
        help_text="Of each machine by part: `rate` in the run, what is `usual` there, the `share` "
        "of it, and the `limit` below which the run is doubtful.",
    )

    @extend_schema_field(CertificateFindingSerializer(many=True))
    def get_findings(self, run: Run) -> Any:
        """The gravest first."""
        sentences: Any = certificate_sentences(run)
        return CertificateFindingSerializer(sentences, many=True).data


class BuildSerializer(serializers.Serializer[Any]):
    """How PostgreSQL was built; null is not known. Sizes in bytes."""

    optimisation = serializers.CharField(allow_null=True)
    assertions = serializers.BooleanField(allow_null=True)
    profiling = serializers.BooleanField(allow_null=True)
    block_size = serializers.IntegerField(allow_null=True)
    cflags = serializers.CharField()
    compiler = serializers.CharField()
    configure_options = serializers.CharField()
    vendor = serializers.CharField()


class SealSerializer(serializers.Serializer[Seal]):
    """An entry of the project's chain about the run. `hash`, `key` and `signature` in hexadecimal
    digits."""

    project = serializers.CharField(source="project.slug")
    number = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=Seal.Kind.choices)
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    hash = serializers.CharField(
        source="digest", help_text="Over the entry and all before it."
    )
    key = serializers.CharField(source="public_key")
    signature = serializers.CharField(source="signed", help_text="Of the hash.")


class JudgementSerializer(serializers.Serializer[Any]):
    """Why a run is withdrawn, or restored: one line, which is shown with it."""

    reason = serializers.CharField(max_length=withdrawals.MOST_CHARACTERS)


class RunDetailSerializer(RunSerializer):
    """A run with all that it left, but outputs and values of series (`series/<name>/`).

    `settings` are those that the server reported in the run, null before it has.
    """

    message = Worded(source="*")  # whole
    attempt = serializers.IntegerField()
    versions = VersionsSerializer(source="*")
    hardware = serializers.CharField(
        source="hardware.fingerprint", allow_null=True, default=None
    )
    environment = serializers.CharField(
        source="environment.fingerprint", allow_null=True, default=None
    )
    certificate = CertificateSerializer(source="*")
    build = serializers.SerializerMethodField()
    seals = serializers.SerializerMethodField()
    revision = RevisionSerializer(source="cell.revision", allow_null=True, default=None)
    imported = ImportSerializer(allow_null=True, default=None)
    external_id = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    quality = Notes()
    speed = serializers.DictField(
        allow_null=True,
        help_text="Of each machine what it did of a fixed piece of work `before` and `after` the "
        "load: of one processor (`core`), of all `processors` that the load uses (`cores`), of its "
        "memory, and of its disk where the run writes; a second. Null: not known.",
    )
    settings = serializers.DictField(
        source="settings.settings", allow_null=True, default=None
    )
    measurements = RunMeasurementSerializer(many=True)
    series = SeriesSerializer(many=True)
    artifacts = ArtifactSerializer(many=True)
    commands = CommandSerializer(many=True)
    events = EventSerializer(many=True)

    @extend_schema_field(SealSerializer(many=True))
    def get_seals(self, run: Run) -> Any:
        """What the chain says of the run, the newest first; empty while it waits."""
        entries: Any = seal_selectors.entries_of(run.pk)
        return SealSerializer(entries, many=True).data

    @extend_schema_field(BuildSerializer(allow_null=True))
    def get_build(self, run: Run) -> Any:
        """How PostgreSQL was built; null for what was measured elsewhere."""
        installation = run.cell.installation
        return builds.facts(installation) if installation else None


@addresses.door(
    {
        "run-detail": addresses.reading(),
        "run-list": addresses.reading(),
        "run-restore": addresses.acting(post=Right.WITHDRAW),
        "run-retry": addresses.acting(post=Right.QUEUE),
        "run-withdraw": addresses.acting(post=Right.WITHDRAW),
    }
)
class RunDoor(ReadOnlyDoor[Run]):
    """Runs: each execution of a cell of a campaign, whatever became of it. The newest first."""

    queryset = runs.listed()
    lookup_value_converter = "int"
    filterset_class = RunFilters
    serializer_class = RunSerializer
    detail_serializer_class = RunDetailSerializer

    def get_queryset(self) -> QuerySet[Run]:
        """With the findings for a single run."""
        return runs.select_findings() if self.detail else runs.listed()

    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Queue a run that failed once more, as its next attempt."""
        return self.acted(attempts.retry, by=asker(request))

    @extend_schema(request=JudgementSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, pk: int) -> Response:
        """Let a finished run count nowhere any more; it stays, with the reason."""
        return self.acted(withdrawals.withdraw, JudgementSerializer)

    @extend_schema(request=JudgementSerializer)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: int) -> Response:
        """Let a run that was withdrawn count again."""
        return self.acted(withdrawals.restore, JudgementSerializer)


class SeriesValuesSerializer(serializers.Serializer[Series]):
    """A part of a series: value `i` is of the second `start + i * interval`; null is a gap."""

    name = serializers.CharField()
    unit = serializers.CharField()
    start = serializers.FloatField(
        help_text="Seconds, of the first value of this part."
    )
    interval = serializers.FloatField()
    length = serializers.IntegerField(help_text="How many values the whole series has.")
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), source="part"
    )
    next = serializers.IntegerField(allow_null=True)


@addresses.door(
    {
        "run-series": addresses.reading(),
    }
)
class SeriesDoor(QueryDoor):
    """The values of one series, up to 20,000 at a time; `next` is the `skip` of what follows."""

    parameters = ("skip",)

    @extend_schema(
        operation_id="runs_series_retrieve",
        parameters=[
            OpenApiParameter("skip", int, description="So many values are left out.")
        ],
        responses=SeriesValuesSerializer,
    )
    def get(self, request: Request, run_id: int, name: str) -> Response:
        """Give the values of a series from its beginning, or from where the last part ended."""
        skip = doors.skipped(request, "next")
        part_of_series: Any = runs.series_part(
            run_id, name, skip=skip, to=reader(request)
        )
        if part_of_series is None:
            raise NotFound
        end = skip + len(part_of_series.part)
        part_of_series.start += skip * part_of_series.interval
        part_of_series.next = end if end < part_of_series.length else None
        return Response(SeriesValuesSerializer(part_of_series).data)
