"""The answer of a load over the API."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.loads.selectors import loads
from runs.loads.selectors.answers import ORDER, LoadAnswer, Row, WholeAnswer
from runs.loads.services import results
from runs.shared.api.doors import QueryDoor

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
        load = loads.listed(to=reader(request)).filter(slug=slug).first()
        if load is None:
            raise Http404
        measured = loads.campaigns_of(load).filter(slug=campaign).first()
        query = request.query_params
        answer = measured and results.answer(
            load, measured, base=query.get("base", ""), head=query.get("head", "")
        )
        if not answer:
            raise Http404
        return Response(LoadAnswerSerializer(answer).data)
