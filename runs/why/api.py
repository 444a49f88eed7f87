"""Why two cells differ, as JSON or Markdown, and the ablation that proves it."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, reader
from runs.access.selectors.permission_table import Right
from runs.analysis.why.functions import Compared
from runs.analysis.why.parts import PARTS, Estimate
from runs.analysis.why.proof import Proof
from runs.analysis.why.waits import Slept
from runs.compare.api.compare import MarkdownRenderer
from runs.models import Cell
from runs.shared.api import doors
from runs.shared.api.doors import QueryDoor
from runs.shared.api.rendering import JSONRenderer
from runs.shared.api.shapes import computed, shape
from runs.shared.whole_numbers import whole_number
from runs.why.selectors import answers, words
from runs.why.selectors.answers import WhyAnswer
from runs.why.selectors.explanation import Explanation
from runs.why.selectors.recordings import Call, Instructions, Stack
from runs.why.services import ablations
from runs.why.services.explanations import explain

Shape = serializers.Serializer[Any]
PROFILE = "Functions that surely differ by perf; `samples` of a and b. `enough` would show 1 %."
EstimateSerializer, InstructionsSerializer = shape(Estimate), shape(Instructions)
ProofSerializer, StackSerializer = shape(Proof), shape(Stack)
AnswerSerializer = shape(WhyAnswer, sentence=serializers.CharField())


class PartSerializer(Shape):
    """A part of the time of a transaction, in seconds, on both sides; `difference` is b less a."""

    name = serializers.ChoiceField(
        choices=[(part_name, part_name) for part_name in (*PARTS, "all", "cpu")]
    )
    a = serializers.FloatField()
    b = serializers.FloatField()
    difference = EstimateSerializer()
    moved = serializers.BooleanField()


class SuspectSerializer(Shape):
    """What differs. `key` names it for `try`; `put_back` are the settings that an ablation tries,
    `plan_parts` the parts of the plan, `statements` what follows the set-up of the data. `looked`
    and `unseen` are what was looked at and what was not."""

    key = serializers.CharField()

    kind = serializers.CharField()
    name = serializers.CharField()
    a = serializers.CharField()
    b = serializers.CharField()
    put_back = serializers.DictField(child=serializers.CharField())
    plan_parts = serializers.ListField(child=serializers.CharField())
    statements = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(choices=[(code, code) for code in words.STATES])
    evidence = serializers.ListField(child=serializers.CharField())
    looked = serializers.ListField(child=serializers.CharField())
    unseen = serializers.ListField(child=serializers.CharField())
    rank = serializers.FloatField()


class WhySerializer(Shape):
    """Why cell `b` differs from cell `a`. `summary` is the answer.

    `obstacle` is the code of why nothing can be told. `limits` are codes of what cannot be split.
    `instructions` are of pages in memory, `reading` of pages that are read into it.
    `stacks` are of semaphores, `sleeps` of where sessions left the processor.
    `time` and `cpu` are null before an ablation's first look, `campaign` without one.
    """

    a = serializers.IntegerField(source="a.pk")
    b = serializers.IntegerField(source="b.pk")
    summary = computed(
        serializers.CharField,
        lambda explanation: answers.answer_explanation(explanation).sentence,
    )
    answer = serializers.SerializerMethodField()
    obstacle = serializers.CharField()
    is_crowded = serializers.BooleanField(
        source="difference.is_crowded",
        default=False,
        read_only=True,
        help_text="Whether more than a tenth of the time was spent waiting for a processor.",
    )
    rounds = serializers.IntegerField(
        source="difference.rounds", default=0, read_only=True
    )
    parts = serializers.SerializerMethodField()
    limits = serializers.ListField(
        source="difference.limits",
        child=serializers.CharField(),
        default=[],
        read_only=True,
    )
    suspects = SuspectSerializer(many=True)
    time = ProofSerializer(source="answers.time", default=None)
    cpu = ProofSerializer(source="answers.cpu", default=None)
    instructions = InstructionsSerializer(source="recorded.instructions", default=None)
    reading = InstructionsSerializer(source="recorded.reading", default=None)
    waits = shape(Slept)(source="recorded.waits", many=True)
    profile = shape(Compared, PROFILE, ("unnamed",))(
        source="recorded.profile", default=None
    )
    calls = shape(Call)(source="recorded.calls", many=True)
    stacks = StackSerializer(source="recorded.stacks", many=True)
    sleeps = StackSerializer(source="recorded.sleeps", many=True)
    beside = serializers.SerializerMethodField()
    campaign = serializers.CharField(source="ablation.campaign.slug", default=None)
    seconds = serializers.SerializerMethodField()

    @extend_schema_field(AnswerSerializer)
    def get_answer(self, explanation: Explanation) -> Any:
        """What the page prints, in the reader's language."""
        return AnswerSerializer(answers.answer_explanation(explanation)).data

    @extend_schema_field(PartSerializer(many=True))
    def get_parts(self, explanation: Explanation) -> Any:
        """The parts that both sides know, the whole, and the server's processor time."""
        return PartSerializer(list(_parts(explanation)), many=True).data

    def get_beside(self, explanation: Explanation) -> dict[str, list[float]]:
        """Seconds per transaction on both sides of what works at the same time."""
        difference = explanation.difference
        if difference is None:
            return {}
        parts_of_sides = (difference.a, difference.b)
        return {
            name: [getattr(side, name) for side in parts_of_sides]
            for name in words.BESIDE
        }

    def get_seconds(self, explanation: Explanation) -> list[float]:
        """How long an ablation takes up to its two looks; empty if nothing can be tried."""
        return (
            [round(seconds, 1) for seconds in explanation.length.seconds]
            if explanation.length
            else []
        )


def _parts(explanation: Explanation) -> Iterator[dict[str, Any]]:
    fields = ("name", "a", "b", "difference", "moved")
    for name, *row in explanation.difference.rows() if explanation.difference else ():
        title = "all" if name == "seconds" else name
        yield dict(zip(fields, (title, *row), strict=True))


@addresses.door(
    {
        "compare-why": addresses.reading(post=Right.QUEUE),
    }
)
class WhyDoor(QueryDoor):
    """Why one cell differs from another, and an ablation that puts suspects back."""

    parameters = ("a", "b", "count")
    repeatable = ("try",)
    renderer_classes = (JSONRenderer, MarkdownRenderer)
    PARAMETERS = (
        OpenApiParameter(
            "a", OpenApiTypes.INT64, required=True, description="Key of a cell."
        ),
        OpenApiParameter(
            "b", OpenApiTypes.INT64, required=True, description="Key of a cell."
        ),
    )

    @extend_schema(
        operation_id="compare_why_retrieve",
        parameters=[*PARAMETERS, OpenApiParameter("format", enum=["json", "md"])],
        responses={
            (200, "application/json"): WhySerializer,
            (200, "text/markdown"): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Where the time went, what may have made the difference, and what is proven."""
        explanation = self._found(request)
        if isinstance(request.accepted_renderer, MarkdownRenderer):
            text = markdown(explanation, request.build_absolute_uri)
            return HttpResponse(text, content_type="text/markdown; charset=utf-8")
        return Response(WhySerializer(explanation).data)

    @extend_schema(
        operation_id="compare_why_create",
        parameters=[
            *PARAMETERS,
            OpenApiParameter("count", enum=["instructions"]),
            OpenApiParameter("try", many=True, description="Keys of what is put back."),
        ],
        request=None,
        responses={201: WhySerializer},
    )
    def post(self, request: Request) -> Response:
        """Queue the ablation: A, B, B again, B with each difference put back, and with all.

        Those of `try`, else those that `answer` proposes; more than six are put back by halves.

        With `count=instructions` runs of A and of B that record waits, functions, instructions,
        system calls and stacks of semaphores.
        """
        explanation = self._found(request)
        records = request.query_params.get("count") == "instructions"
        ablations.check(explanation, reader=reader(request), records=records)
        if records:
            ablations.record(found=explanation, by=person(request))
        else:
            keys = request.query_params.getlist("try")
            ablations.start(found=explanation, by=person(request), keys=keys)
        return Response(
            WhySerializer(self._found(request)).data, status.HTTP_201_CREATED
        )

    def _found(self, request: Request) -> Explanation:
        keys = []
        for name in ("a", "b"):
            key = whole_number(request.query_params.get(name, ""))
            if key is None:
                raise doors.refuse(
                    name, "invalid", _("Give the key of a cell, a number.")
                )
            keys.append(key)
        try:
            return explain(keys[0], keys[1], reader=reader(request))
        except Cell.DoesNotExist as missing:
            message = _("There are no two cells of these keys.")
            raise doors.refuse("b", "unknown_cell", message) from missing


def markdown(explanation: Explanation, absolute: Callable[[str], str]) -> str:
    """The answer for a pull request: the sentence, the suspects that were tried, the page."""
    address = absolute(
        f"{reverse('compare-why')}?a={explanation.a.pk}&b={explanation.b.pk}"
    )
    answer = answers.answer_explanation(explanation)
    lines = [f"### {_plain(answer.sentence)}", ""]
    lines += list(_table(answer))
    lines.append(f"[{_plain(answer.question)}]({address})")
    return "\n".join(lines) + "\n"


def _table(answer: WhyAnswer) -> Iterator[str]:
    rows = [row for row in answer.ablation.rows if row.time or row.cpu]
    if not rows:
        return
    yield f"| {_('Suspect')} | {pgettext('per transaction', 'Time')} | {_('Processor time')} |"
    yield "| --- | --- | --- |"
    for row in rows:
        yield f"| `{_plain(row.name)}` | {row.time} | {row.cpu} |"
    yield ""


def _plain(text: str) -> str:
    """Without what Markdown or a table would read as its own."""
    return "".join(
        " " if character in "|`[]<>\n\r" else character for character in text
    )
