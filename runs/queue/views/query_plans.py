"""The plan viewer: what EXPLAIN printed, as a tree, alone or two side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.cells.selectors.level_texts import level
from runs.models import Artifact
from runs.query_plans import Difference, Node, Pair, Plan, compare, findings, subplans
from runs.query_plans.node import MOST_CHARACTERS
from runs.queue.selectors import plan_words, runs
from runs.queue.services import artifacts
from runs.shared import pages, reading
from runs.shared.errors import ServiceError
from runs.shared.pages import or_404
from runs.shared.whole_numbers import whole_number

# From here on a line is highlighted: a share of the total time, and a factor of rows.
SLOW_SHARE, WRONG_ROWS = 0.2, 10
# Deeper lines are not indented any further.
DEEPEST = 40
TITLES = {
    Difference.ONLY_LEFT: gettext_lazy("only left"),
    Difference.ONLY_RIGHT: gettext_lazy("only right"),
    Difference.EXECUTED_LEFT: gettext_lazy("executed left only"),
    Difference.EXECUTED_RIGHT: gettext_lazy("executed right only"),
    Difference.KIND: gettext_lazy("other node"),
    Difference.LOOPS: gettext_lazy("other loops"),
    Difference.ROWS: gettext_lazy("other rows"),
    Difference.FASTER: gettext_lazy("faster right"),
    Difference.SLOWER: gettext_lazy("slower right"),
}
TONES = {
    Difference.ONLY_LEFT: "different",
    Difference.ONLY_RIGHT: "different",
    Difference.EXECUTED_LEFT: "failed",
    Difference.EXECUTED_RIGHT: "failed",
    Difference.FASTER: "faster",
    Difference.SLOWER: "slower",
}


@dataclass(frozen=True)
class Line:
    """A node of a plan as a line; times in milliseconds, None where nothing is printed."""

    depth: int
    node: Node
    share: float | None

    @property
    def is_slow(self) -> bool:
        """Whether much of the time passed in this node itself."""
        return self.share is not None and self.share >= SLOW_SHARE

    @property
    def is_misestimated(self) -> bool:
        """Whether the rows are far from what was estimated."""
        return (self.node.misestimate or 1) >= WRONG_ROWS


@dataclass(frozen=True)
class Row:
    """A line of the comparison; a side is None without such a node, a mark is (words, tone)."""

    left: Line | None
    right: Line | None
    marks: Sequence[tuple[str, str]]
    opens_branch: bool


def lines(plan: Plan) -> list[Line]:
    """Every node in the order of printing."""
    return [_line(depth, node, plan) for depth, node in plan.root.walk()]


def side_by_side(left_plan: Plan, right: Plan) -> dict[str, Any]:
    """Every node of both, with what differs; and the sub-plans that only one of them executed."""
    branches = [
        sub_plan for sub_plan in subplans(left_plan, right) if sub_plan.is_other_branch
    ]
    names = {sub_plan.role for sub_plan in branches}
    rows = [_row(pair, left_plan, right, names) for pair in compare(left_plan, right)]
    return {"rows": rows, "branches": branches}


def _row(pair: Pair, left_plan: Plan, right: Plan, branches: set[str]) -> Row:
    marks = [
        (str(TITLES[difference]), TONES.get(difference, "info"))
        for difference in pair.differences
    ]
    roles = {node.role for node in (pair.left, pair.right) if node is not None}
    return Row(
        left=_line(pair.depth_left, pair.left, left_plan) if pair.left else None,
        right=_line(pair.depth_right, pair.right, right) if pair.right else None,
        marks=marks,
        opens_branch=bool(roles & branches),
    )


def _line(depth: int, node: Node, plan: Plan) -> Line:
    own_ms, total = node.own_ms, plan.total_ms
    share = min(1.0, own_ms / total) if own_ms is not None and total else None
    return Line(min(depth, DEEPEST), node, share)


MOST_NODES = 5000


@dataclass(frozen=True)
class Side:
    """One of the two plans: its origin or the pasted text, and the parsed plan."""

    name: str
    place: str = ""
    text: str = ""
    artifact: Artifact | None = None
    plan: Plan | None = None
    problem: str = ""


@addresses.page("plan-viewer", posted=Right.OWN)
def plan_viewer(request: HttpRequest) -> HttpResponse:
    """The plans of `left` and `right`: artifacts as RUN/NAME, or what was pasted (not stored)."""
    names = ("left", "right")
    if request.method == "POST":
        return _shown(
            request,
            [_read(Side(name, text=request.POST.get(name, ""))) for name in names],
        )
    return _shown(request, [_kept(request, name) for name in names])


def _shown(request: HttpRequest, sides: list[Side]) -> HttpResponse:
    left_side, right = sides
    plans = [side.plan for side in sides if side.plan is not None]
    context = {
        "left": left_side,
        "right": right,
        "shown": next((side for side in sides if side.plan is not None), None),
        "lines": lines(plans[0]) if len(plans) == 1 else [],
        "parts": _parts(plans[0]) if len(plans) == 1 else [],
        "sentences": _sentences(plans),
        "comparison": side_by_side(*plans) if len(plans) == 2 else None,
        "others": _others(request, sides),
        "problems": [side.problem for side in sides if side.problem],
    }
    return render(request, "queue/query_plans/viewer.html", context)


def _parts(plan: Plan) -> list[tuple[str, findings.Spent]]:
    """What no node has done: its title, and its time."""
    return [
        (plan_words.part_title(spent.part), spent) for spent in findings.parts(plan)
    ]


def _sentences(plans: Sequence[Plan]) -> list[str]:
    if len(plans) == 2:
        return plan_words.difference(*plans)
    return plan_words.sentences(plans[0]) if plans else []


def _others(request: HttpRequest, sides: list[Side]) -> list[tuple[str, str]]:
    left_side = sides[0]
    if left_side.artifact is None:
        return []
    artifacts = runs.others(left_side.artifact, to=request.user)
    return [
        (f"{artifact.run_id}/{artifact.name}", _words(artifact))
        for artifact in artifacts
    ]


def _words(artifact: Artifact) -> str:
    levels = ", ".join(
        level(level_name, name) for name, level_name in artifact.run.cell.levels.items()
    )
    return f"{artifact.name} · {levels} · {artifact.run.repeat}"


def _kept(request: HttpRequest, name: str) -> Side:
    """The artifact that the address names; Http404 where the reader sees none."""
    address_text = request.GET.get(name, "")
    if not address_text:
        return Side(name)
    run, _slash, file = address_text.partition("/")
    visible = projects.visible(
        Artifact.objects.select_related("run__cell"), to=request.user
    )
    artifact = visible.filter(run_id=whole_number(run) or 0, name=file).first()
    if artifact is None:
        raise Http404(_("This plan does not exist."))
    gone = or_404(FileNotFoundError, _("This file is no longer kept."))
    with gone, artifacts.open_artifact(artifact) as content:
        text = content.read(MOST_CHARACTERS).decode(errors="replace")
    return _read(Side(name, place=address_text, text=text, artifact=artifact))


def _read(side: Side) -> Side:
    if not side.text.strip():
        return side
    try:
        with reading.reader() as reader:
            plan = reader.plan(side.text)
    except reading.NotUnderstood as error:
        return replace(side, problem=str(error))
    except ServiceError as error:
        return replace(side, problem=pages.sentence(error))
    if len(plan.nodes()) > MOST_NODES:
        problem = _("This plan has more than %(most)d nodes.") % {"most": MOST_NODES}
        return replace(side, problem=problem)
    return replace(side, plan=plan)
