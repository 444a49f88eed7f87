"""The verdict for a CI job: head against base, as JSON or as Markdown for a pull request."""

from collections.abc import Hashable
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference import DEFAULT_EFFECT
from runs.compare.api import schema
from runs.compare.api.markdown import AFTERWORDS, markdown
from runs.compare.selectors import answers
from runs.compare.selectors.address import head_and_base
from runs.compare.selectors.address.head_and_base import BadSide, NoBaseline, Side
from runs.compare.selectors.address.state import CONDITIONS
from runs.compare.selectors.describe.verdict_words import HEADLINES
from runs.compare.selectors.judge import against_history
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.compare.selectors.judge.gate_answers import EarlierAnswer
from runs.compare.services import compare
from runs.models import Metric, Token
from runs.shared import caching
from runs.shared.api import doors
from runs.shared.api.doors import QueryDoor
from runs.shared.api.rendering import JSONRenderer, known_format

MarkdownRenderer = known_format("text/markdown", "md")


@addresses.door(
    {
        "compare": addresses.reading(),
    }
)
class CompareDoor(QueryDoor):
    """Head against base: a verdict for each condition and metric, and one for the whole."""

    parameters = ("base", "head", "campaign", "effect", "ignore")
    repeatable = ("metric", "level")
    renderer_classes = (JSONRenderer, MarkdownRenderer)

    @extend_schema(**schema.COMPARE)
    def get(self, request: Request) -> HttpResponseBase:
        """Compare two campaigns, revisions or runs.

        `exit_code` is 0 for no regression, 1 for slower, 2 for undecided, 3 for not comparable. The
        first revision of a campaign is its baseline: `overall` is baseline_made, `base` is null.
        """
        try:
            return self._answer(request)
        except NoBaseline as first:
            return _baseline_made(first.head, request)
        except BadSide as error:
            raise doors.refuse(error.parameter, error.code, error.message) from error

    def _answer(self, request: Request) -> HttpResponseBase:
        base, head, criteria = _question(request)
        if isinstance(request.accepted_renderer, MarkdownRenderer):
            side_verdict = against_history.compared(base, head, criteria)
            text = markdown(
                side_verdict,
                request.build_absolute_uri,
                _earlier_answers(side_verdict, criteria, request),
            )
            for afterword in AFTERWORDS:
                more = afterword(
                    side_verdict, criteria, reader(request), request.build_absolute_uri
                )
                text += f"\n---\n\n{more}" if more else ""
            return HttpResponse(text, content_type="text/markdown; charset=utf-8")
        # Absolute addresses are those of the host that was asked.
        key = (*map(_named, (base, head)), criteria, request.build_absolute_uri("/"))
        versions = caching.versions({base.campaign.pk, head.campaign.pk})
        body = caching.answer(
            key,
            versions.results,
            lambda: (
                JSONRenderer().render(_body(base, head, criteria, request)).decode()
            ),
        )
        return HttpResponse(body, content_type=JSONRenderer.media_type)


def _named(side: Side) -> Hashable:
    return side.text, side.campaign.pk, side.revision and side.revision.pk, side.run


def _question(request: Request) -> tuple[Side, Side, Criteria]:
    query = request.query_params
    criteria = Criteria(
        metrics=tuple(query.getlist("metric")),
        levels=tuple(doors.level(text) for text in query.getlist("level")),
        effect=doors.percent(query.get("effect"), DEFAULT_EFFECT),
        ignore=_ignored(query.get("ignore", "")),
    )
    _check_metrics(criteria, reader(request))
    base, head = head_and_base.both(
        query.get("base", ""),
        query.get("head", ""),
        campaign=query.get("campaign", ""),
        reader=reader(request),
        # What is kept is answered without them.
        is_found=False,
    )
    return base, head, criteria


def _baseline_made(head: Side, request: Request) -> HttpResponseBase:
    message = str(HEADLINES["baseline_made"])
    if isinstance(request.accepted_renderer, MarkdownRenderer):
        text = f"### ⚪ {message}\n\n{head.label}\n"
        return HttpResponse(text, content_type="text/markdown; charset=utf-8")
    return Response(
        {
            "overall": "baseline_made",
            "exit_code": 0,
            "message": message,
            "sentences": [],
            "notes": [],
            "effect": doors.percent(request.query_params.get("effect"), DEFAULT_EFFECT),
            "base": None,
            "head": schema.SideSerializer(head, context={"request": request}).data,
            "together": [],
            "rows": [],
            "error_row": None,
            "told_before": [],
            "answer": {
                "sentence": message,
                "short": message,
                "low": None,
                "high": None,
                "family": "",
                "exit_code": 0,
            },
        }
    )


def _ignored(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if not set(names) <= set(CONDITIONS):
        message = _("Only these conditions can be ignored: %(known)s.")
        raise doors.refuse(
            "ignore", "invalid_choice", message % {"known": ", ".join(CONDITIONS)}
        )
    return names


def _check_metrics(criteria: Criteria, to: Reader) -> None:
    if not criteria.metrics:
        return
    visible_metrics = projects.visible(
        Metric.objects.filter(name__in=criteria.metrics), to=to
    )
    known_metric_names = visible_metrics.values_list("name", flat=True)
    for name in sorted(set(criteria.metrics) - set(known_metric_names)):
        message = _("There is no metric %(name)s.") % {"name": name}
        raise doors.refuse("metric", "unknown_metric", message)


def _earlier_answers(
    side_verdict: SideVerdict, criteria: Criteria, request: Request
) -> list[EarlierAnswer]:
    """What was told before and otherwise; what a CI job is told now is kept."""
    is_job = (
        isinstance(request.auth, Token) and Token.Scope.UPLOAD in request.auth.scopes
    )
    return compare.answered(side_verdict, criteria, is_job=is_job)


def _body(
    base: Side, head: Side, criteria: Criteria, request: Request
) -> dict[str, Any]:
    side_verdict = against_history.compared(base, head, criteria)
    answer = answers.answer_sides(
        side_verdict, _earlier_answers(side_verdict, criteria, request)
    )
    return schema.ComparisonSerializer(answer, context={"request": request}).data
