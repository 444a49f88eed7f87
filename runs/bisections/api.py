"""Bisections: a red or undecided verdict, settled by measuring builds of its commits in turn."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import asker, person, reader, require_own
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.analysis.inference import DEFAULT_EFFECT
from runs.bisections.comments import settled
from runs.bisections.selectors import bisections as found_by
from runs.bisections.services import bisection_questions, bisections
from runs.bisections.services.bisection_questions import MOST_BUILDS, Question, Wish
from runs.campaigns.api.drafts import DesignSerializer, LevelField, fault_of
from runs.campaigns.services.campaign_limits import MOST_REPEATS
from runs.compare.selectors.address.state import CONDITIONS
from runs.compare.selectors.judge.exit_codes import exit_code
from runs.models import Bisection, Build, Campaign, Server, Token
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.examples import EXAMPLES
from runs.shared.api.shapes import computed
from runs.shared.errors import Refused

Shape = serializers.Serializer[Any]
LONGEST = 500


class NewBisectionSerializer(DesignSerializer):
    """The verdict (`campaign`, `base`, `head`, `metric`, `effect` as in compare/), and how to
    measure. `bindirs` and `commits` are in the order of the history.
    """

    campaign = serializers.CharField(
        max_length=120, required=False, default="", help_text="As in compare/."
    )
    base = serializers.CharField(max_length=300, help_text="As in compare/.")
    head = serializers.CharField(max_length=300, help_text="As in compare/.")
    metric = serializers.ListField(
        child=serializers.CharField(max_length=100), required=False, max_length=20
    )
    effect = serializers.FloatField(
        default=DEFAULT_EFFECT, min_value=0.2, max_value=100, help_text="In percent."
    )
    ignore = serializers.ListField(
        child=serializers.ChoiceField(
            choices=[(condition, condition) for condition in CONDITIONS]
        ),
        required=False,
        help_text="Conditions that may differ between base and head, as in compare/.",
    )
    server = serializers.SlugRelatedField(
        slug_field="slug", queryset=Server.objects.select_related("hardware")
    )
    bindirs = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST),
        required=False,
        min_length=2,
        max_length=MOST_BUILDS,
        help_text="Folders of installations on the server, from the base's to the head's. Left "
        "out: those that carry 7 digits or more of the commits.",
    )
    commits = serializers.ListField(
        child=serializers.RegexField(r"^[0-9a-f]{7,64}$"),
        required=False,
        max_length=MOST_BUILDS - 2,
        help_text="Commits between base and head that have an installation, the oldest first.",
    )
    scenario = serializers.CharField(
        max_length=100, required=False, help_text="Left out: the campaign's own."
    )
    levels = serializers.DictField(
        child=serializers.ListField(child=LevelField(), min_length=1, max_length=100),
        required=False,
        help_text="Left out: those of the row with the greatest loss, as far as the scenario has "
        "such factors.",
    )
    repeats = serializers.IntegerField(
        min_value=2, max_value=MOST_REPEATS - 1, default=Wish.repeats
    )
    most_repeats = serializers.IntegerField(
        min_value=3, max_value=MOST_REPEATS, default=Wish.most_repeats
    )
    wait_seconds = serializers.IntegerField(
        min_value=30,
        max_value=7 * 24 * 3600,
        required=False,
        help_text="Cancel it when nobody has asked for it for this long: its job may have ended.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Folders or commits, and more repeats at most than at least."""
        if "bindirs" in attrs and "commits" in attrs:
            message = _("Give %(one)s or %(several)s, not both.")
            words = {"one": "bindirs", "several": "commits"}
            raise ValidationError(
                {"commits": [ErrorDetail(message % words, "contradicts")]}
            )
        if attrs["most_repeats"] <= attrs["repeats"]:
            message = _("The most repeats must be more than the least.")
            raise ValidationError(
                {"most_repeats": [ErrorDetail(message, "out_of_range")]}
            )
        return attrs

    def wish(self) -> Wish:
        """The valid body."""
        fields = dict(self.validated_data)
        return Wish(metrics=fields.pop("metric", ()), **fields)


class BisectedBuildSerializer(Shape):
    """An installation; `commit` is empty where it is not known.

    `state` and `code` are those of the build, where BenchLab makes it; `log` is the end of one that
    failed. Until it is built `bindir` is empty.
    """

    commit = serializers.CharField()
    bindir = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(
        choices=[(state, state) for state in ("", *Build.State.values)]
    )
    code = serializers.CharField(allow_blank=True)
    log = serializers.CharField(allow_blank=True)


class BisectionStepSerializer(Shape):
    """A campaign that measures the builds at these places of `builds`."""

    campaign = serializers.CharField(source="step.campaign.slug")
    state = serializers.CharField(source="step.campaign.state")
    low = serializers.IntegerField(source="step.low")
    middle = serializers.IntegerField(source="step.middle", allow_null=True)
    high = serializers.IntegerField(source="step.high")


class BisectionSerializer(serializers.Serializer[Bisection]):
    """A bisection. The loss lies behind the build `low` and not behind `high`.

    `verdict` is that of base and head, measured in turn; empty until that is known. `culprit` is
    the commit (else the folder) that by itself is slower than the one before it.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="campaign.slug")
    server = serializers.CharField(source="server.slug")
    state = serializers.ChoiceField(choices=Bisection.State.choices)
    base = serializers.CharField(source="asked.base")
    head = serializers.CharField(source="asked.head")
    effect = serializers.FloatField(source="asked.effect")
    builds = serializers.SerializerMethodField()
    low = serializers.IntegerField()
    high = serializers.IntegerField()
    verdict = serializers.CharField()
    rules = serializers.IntegerField()
    message = computed(
        serializers.CharField, found_by.message_of, "Why it ended as it did."
    )
    culprit = serializers.SerializerMethodField()
    steps = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(BisectedBuildSerializer(many=True))
    def get_builds(self, bisection: Bisection) -> Any:
        """The builds, from the base's to the head's."""
        rows = []
        for build_entry in bisection.builds:
            build = bisection.made.get(build_entry["commit"])  # type: ignore[attr-defined]  # by the door
            progress = {
                name: getattr(build, name, "") for name in ("state", "code", "log")
            }
            rows.append(
                {
                    "commit": build_entry["commit"],
                    "bindir": build_entry["bindir"],
                    **progress,
                }
            )
        return rows

    def get_culprit(self, bisection: Bisection) -> str | None:
        """The commit that made it slower."""
        if not bisection.is_found:
            return None
        build = bisection.builds[bisection.high]
        return str(build["commit"] or build["bindir"])

    @extend_schema_field(BisectionStepSerializer(many=True))
    def get_steps(self, bisection: Bisection) -> Any:
        """The campaigns, in their order."""
        return BisectionStepSerializer(found_by.measured(bisection), many=True).data


class OneBisectionSerializer(BisectionSerializer):
    """A bisection with what it says, as Markdown for a pull request."""

    exit_code = serializers.SerializerMethodField()
    report = serializers.SerializerMethodField()

    def get_exit_code(self, bisection: Bisection) -> int | None:
        """As in compare/; null until the end, and where it ended without a verdict."""
        has_ended = bisection.state != Bisection.State.RUNNING and bisection.verdict
        return exit_code(bisection.verdict) if has_ended else None  # type: ignore[arg-type]

    def get_report(self, bisection: Bisection) -> str:
        """The answer in Markdown; while it runs, what is being measured."""
        return settled(bisection, self.context["request"].build_absolute_uri)


EXAMPLE = OpenApiExample(
    "Which of four commits made it slower", EXAMPLES["bisection"], request_only=True
)


@addresses.door(
    {
        "bisection-cancel": addresses.acting(post=Right.QUEUE),
        "bisection-detail": addresses.reading(),
        "bisection-list": addresses.reading(post=Right.QUEUE),
    }
)
class BisectionDoor(ReadOnlyDoor[Bisection]):
    """Bisections: builds of several commits measured in turn, until it is known which is slower."""

    queryset = Bisection.objects.all()
    listed = staticmethod(found_by.listed)
    lookup_value_converter = "int"
    serializer_class = BisectionSerializer
    detail_serializer_class = OneBisectionSerializer
    filterset_class = None

    def prepared(self, bisection_list: Sequence[Any]) -> Sequence[Bisection]:
        """With their builds. One query."""
        builds_of = found_by.made_for_each(bisection_list)
        for bisection in bisection_list:
            bisection.made = builds_of[bisection.pk]
        return bisection_list

    @extend_schema(
        request=NewBisectionSerializer,
        responses={200: OneBisectionSerializer, 201: OneBisectionSerializer},
        examples=[EXAMPLE],
    )
    def create(self, request: Request) -> Response:
        """Settle a verdict that is red or undecided, on a server that has builds of both commits.

        200 where the same question runs already: nothing is queued twice.
        """
        body = doors.taken(NewBisectionSerializer, request)
        question = bisection_questions.question(body.wish(), reader=reader(request))
        _check(request, question)
        token = request.auth if isinstance(request.auth, Token) else None
        started, is_new = bisections.start(
            question=question, by=person(request), token=token
        )
        bisection = self.get_queryset().get(pk=started.pk)
        return self.shown(
            bisection, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        )

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One; asked with the right to queue, it counts as awaited (`wait_seconds`)."""
        bisection = self.get_object()
        project = bisection.project_id or permissions.default_project()
        if permissions.may(reader(request), Right.QUEUE, project):
            bisections.await_answer(bisection=bisection)
        return self.shown(bisection)

    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it, with the step that is being measured."""
        return self.acted(bisections.cancel, by=asker(request))


def _check(request: Request, question: Question) -> None:
    """A token is of the project of the verdict, and the first step has no problems."""
    owner: Campaign = question.verdict.head.campaign
    require_own(request, lambda token: projects.is_own(owner, token))
    problems = bisection_questions.problems(question)
    if problems:
        raise Refused(
            "contradicts",
            [fault_of(problem, question.scenario) for problem in problems],
        )
