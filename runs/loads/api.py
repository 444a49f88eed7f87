"""The answer of a load over the API, trials of its statements, and its dump in parts."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, reader
from runs.access.selectors.permission_table import Right
from runs.loads.selectors import loads
from runs.loads.selectors.answers import ORDER, LoadAnswer, Row, WholeAnswer
from runs.loads.services import dumps, results, trials
from runs.models import Campaign, Load
from runs.shared.api import doors
from runs.shared.api.doors import QueryDoor
from runs.shared.api.parsing import read_bytes

# The words of a load's answers are not those of all comparisons.
VERDICTS = ", ".join(ORDER)


class LoadRowSerializer(serializers.Serializer[Row]):
    """A statement or transaction: `ratio` is the time on `head` by that on `base`."""

    number = serializers.IntegerField(source="unit.number")
    statement = serializers.CharField(source="unit.text")
    is_transaction = serializers.BooleanField(source="unit.is_transaction")
    calls = serializers.IntegerField(source="unit.calls")
    base_ms = serializers.FloatField(allow_null=True)
    head_ms = serializers.FloatField(allow_null=True)
    share = serializers.FloatField(
        allow_null=True, help_text="Of the whole load's time on the base."
    )
    verdict = serializers.CharField(source="word", help_text=VERDICTS)
    ratio = serializers.FloatField(source="judged.ratio", allow_null=True, default=None)
    low = serializers.FloatField(source="judged.low", allow_null=True, default=None)
    high = serializers.FloatField(source="judged.high", allow_null=True, default=None)
    drawn_from = serializers.ListField(
        source="unit.drawn_from",
        child=serializers.CharField(),
        help_text="Columns from which its values are drawn, where the load had none.",
    )
    why_not = serializers.CharField(help_text="Why it is not judged.")
    plan = serializers.ListField(source="plan_sentences", child=serializers.CharField())
    cause = serializers.ListField(
        source="cause_sentences",
        child=serializers.CharField(),
        help_text="Of a slower one: which setting puts it back, tried or to be tried.",
    )
    trial = serializers.CharField(
        source="cause.trial.slug",
        default=None,
        help_text="The campaign that tried it, if any.",
    )


class LoadWholeSerializer(serializers.Serializer[WholeAnswer]):
    """The load as a whole, at its calls: `ratio` is the time on `head` by that on `base`."""

    verdict = serializers.CharField(source="word", help_text=VERDICTS)
    ratio = serializers.FloatField(source="judged.ratio")
    low = serializers.FloatField(source="judged.low")
    high = serializers.FloatField(source="judged.high")
    clients = serializers.IntegerField(
        help_text="At once; 0: the sum of the statements one after the other."
    )
    rounds = serializers.IntegerField()
    sentence = serializers.CharField()


class LoadLeftOutSerializer(serializers.Serializer[Any]):
    """A statement of the load that is not run."""

    statement = serializers.CharField(source="text")
    line = serializers.IntegerField()
    calls = serializers.IntegerField()
    reason = serializers.CharField()


class LoadAnswerSerializer(serializers.Serializer[LoadAnswer]):
    """What `head` means for the load against `base`."""

    load = serializers.CharField(source="name")
    base = serializers.CharField()
    head = serializers.CharField()
    versions = serializers.ListField(child=serializers.CharField())
    rounds = serializers.IntegerField()
    sentence = serializers.CharField()
    family = serializers.CharField()
    caution = serializers.CharField(
        help_text="Of rounds with an invalid run, if there are any."
    )
    drawn_note = serializers.CharField(
        help_text="Of values that were drawn, if any were."
    )
    caches = serializers.ChoiceField(source="caches.word", choices=["cold", "warm"])
    caches_note = serializers.CharField(
        source="caches.sentence",
        help_text="What was done before each execution, and what it read from storage.",
    )
    whole = LoadWholeSerializer(allow_null=True)
    whole_notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the load as a whole leaves out, and why it was not measured.",
    )
    statements = LoadRowSerializer(source="rows", many=True)
    left_out = LoadLeftOutSerializer(many=True)


@addresses.door({"load-answer": addresses.reading()})
class LoadAnswerDoor(QueryDoor):
    """What versions mean for a load, by one campaign."""

    parameters = ("base", "head")

    @extend_schema(
        operation_id="loads_answers_retrieve",
        parameters=[
            OpenApiParameter("base", description="A release that was measured: 13.22."),
            OpenApiParameter("head", description="Another one."),
        ],
        responses=LoadAnswerSerializer,
    )
    def get(self, request: Request, slug: str, campaign: str) -> Response:
        """Say which statements are slower or faster, and what differs in their plans."""
        load, measured = _find_campaign(request, slug, campaign)
        query = request.query_params
        answer = results.answer(
            load, measured, base=query.get("base", ""), head=query.get("head", "")
        )
        if answer is None:
            raise Http404
        return Response(LoadAnswerSerializer(answer).data)


def _find_load(request: Request, slug: str) -> Load:
    load = loads.listed(to=reader(request)).filter(slug=slug).first()
    if load is None:
        raise Http404
    return load


def _find_campaign(request: Request, slug: str, campaign: str) -> tuple[Load, Campaign]:
    load = _find_load(request, slug)
    measured = loads.campaigns_of(load).filter(slug=campaign).first()
    if measured is None:
        raise Http404
    return load, measured


class LoadTrialSerializer(serializers.Serializer[Any]):
    """Settings that are put back on `head` for one statement, and what that proves."""

    slug = serializers.CharField(help_text="Of its campaign.")
    statement = serializers.IntegerField(help_text="Its `number` in the answer.")
    base = serializers.CharField()
    head = serializers.CharField()
    put_back = serializers.DictField(child=serializers.CharField())
    has_ended = serializers.BooleanField()
    sentences = serializers.ListField(child=serializers.CharField())


class NewLoadTrialSerializer(serializers.Serializer[Any]):
    """A statement that the answer for these versions calls slower."""

    statement = serializers.IntegerField(min_value=1, max_value=1_000_000)
    base = serializers.CharField(max_length=40, required=False)
    head = serializers.CharField(max_length=40, required=False)


@addresses.door({"load-trials": addresses.reading(post=Right.QUEUE)})
class LoadTrialsDoor(QueryDoor):
    """Trials of statements: which setting puts a slower one back."""

    @extend_schema(
        operation_id="loads_trials_list", responses=LoadTrialSerializer(many=True)
    )
    def get(self, request: Request, slug: str, campaign: str) -> Response:
        """List the trials of an answer's statements, the newest first."""
        load, measured = _find_campaign(request, slug, campaign)
        found_trials = results.find_trials(load, measured)
        return Response(LoadTrialSerializer(found_trials, many=True).data)

    @extend_schema(
        operation_id="loads_trials_create",
        request=NewLoadTrialSerializer,
        responses={201: LoadTrialSerializer},
    )
    def post(self, request: Request, slug: str, campaign: str) -> Response:
        """Queue the trial of a slower statement: each setting to which its plan points, and all."""
        load, measured = _find_campaign(request, slug, campaign)
        body = doors.taken(NewLoadTrialSerializer, request).validated_data
        statement = body.pop("statement")
        answer = results.answer(load, measured, **body)
        if answer is None:
            raise Http404
        queued = trials.queue(
            load=load,
            measured=measured,
            answer=answer,
            statement=statement,
            by=person(request),
        )
        found_trial = next(
            found
            for found in results.find_trials(load, measured)
            if found.slug == queued.slug
        )
        return Response(LoadTrialSerializer(found_trial).data, status.HTTP_201_CREATED)


class PartParser(BaseParser):
    """The bytes of a part; no more than a part may have, and one."""

    media_type = "application/octet-stream"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The body. Raises ParseError."""
        return read_bytes(stream, dumps.PART_BYTES + 1)


class NeedSerializer(serializers.Serializer[Any]):
    """What older versions do not have, and where the data have it."""

    where = serializers.CharField()
    construct = serializers.CharField()
    version = serializers.IntegerField(help_text="The first major version with it.")


class LoadDumpSerializer(serializers.Serializer[Any]):
    """The dump of a load: which parts have come, and what was read of it once it was whole."""

    is_missing = serializers.BooleanField(source="data.is_missing")
    size = serializers.IntegerField(source="load.dump_bytes", help_text="Bytes.")
    part_bytes = serializers.IntegerField(
        help_text="What each part has; the last one has the rest."
    )
    parts = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Numbers of the parts that have come, until it is whole.",
    )
    format = serializers.CharField(source="data.format")
    program = serializers.CharField(source="data.program")
    tables = serializers.IntegerField(source="data.tables")
    objects = serializers.IntegerField(source="data.objects")
    extensions = serializers.ListField(
        source="data.extensions", child=serializers.CharField()
    )
    roles = serializers.ListField(
        source="data.roles",
        child=serializers.CharField(),
        help_text="That it names; it is restored without them.",
    )
    left_out = serializers.ListField(
        source="data.left_out", child=serializers.CharField()
    )
    needs = NeedSerializer(source="data.needs", many=True)
    contents = serializers.ListField(
        child=serializers.CharField(),
        help_text="What is restored of an archive, as pg_restore -l prints it.",
    )


class DumpSchema(doors.Schema):
    """Adds the problem of a body that is no part."""

    problems = (*doors.Schema.problems, "415")


@addresses.door({"load-dump": addresses.reading(post=Right.CONFIGURE)})
class LoadDumpDoor(QueryDoor):
    """The dump of a load."""

    schema = DumpSchema()
    parameters = ("number", "size")
    parser_classes = (PartParser,)

    @extend_schema(operation_id="loads_dump_retrieve", responses=LoadDumpSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Say what has come of it, and what it has."""
        return self._shown(_find_load(request, slug))

    @extend_schema(
        operation_id="loads_dump_create",
        parameters=[
            OpenApiParameter(
                "number", OpenApiTypes.INT, description="Of the part; 0 begins anew."
            ),
            OpenApiParameter(
                "size", OpenApiTypes.INT, description="Of the whole dump, in bytes."
            ),
        ],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=LoadDumpSerializer,
    )
    def post(self, request: Request, slug: str) -> Response:
        """Send a part, in their order; the last one has all of it read, and kept or refused.

        Without `number` and `size` the body is all of it.
        """
        load = _find_load(request, slug)
        # Without a body there is an empty dictionary.
        part = _bytes_of(request.data)
        dumps.take(
            load=load,
            number=_number(request, "number", otherwise=0),
            size=_number(request, "size", otherwise=len(part)),
            part=part,
        )
        return self._shown(_find_load(request, slug))

    def _shown(self, load: Load) -> Response:
        data = results.opened(load).data
        dump = {
            "load": load,
            "data": data,
            "part_bytes": dumps.PART_BYTES,
            "parts": dumps.list_parts(load) if data.is_missing else [],
            "contents": data.list_text.splitlines(),
        }
        return Response(LoadDumpSerializer(dump).data)


def _bytes_of(body: Any) -> bytes:
    return body if isinstance(body, bytes) else b""


def _number(request: Request, name: str, *, otherwise: int) -> int:
    text = request.query_params.get(name, str(otherwise))
    if not (text.isdecimal() and text.isascii() and len(text) < 16):
        raise doors.refuse(name, "invalid", _("Give a whole number."))
    return int(text)
