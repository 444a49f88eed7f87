"""The plan viewer: what EXPLAIN printed, as a tree, alone or two side by side."""

from dataclasses import dataclass, replace

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.models import Artifact
from runs.query_plans import Plan, PlanUnreadableError, read
from runs.query_plans.reading import MOST_CHARACTERS
from runs.selectors.access import projects
from runs.selectors.runs import plans as selectors
from runs.services.runs import artifacts
from runs.web.runs import plan_page

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


@require_http_methods(["GET", "HEAD", "POST"])
def plan_viewer(request: HttpRequest) -> HttpResponse:
    """The plans of `left` and `right`: artifacts as RUN/NAME, or what was pasted (not stored)."""
    if request.method == "POST":
        return _pasted(request)
    return _shown(request, [_kept(request, name) for name in ("left", "right")])


def _pasted(request: HttpRequest) -> HttpResponse:
    texts = {name: request.POST.get(name, "") for name in ("left", "right")}
    sides = [_read(Side(name, text=text)) for name, text in texts.items()]
    return _shown(request, sides)


def _shown(request: HttpRequest, sides: list[Side]) -> HttpResponse:
    left, right = sides
    plans = [each.plan for each in sides if each.plan is not None]
    context = {
        "section": "campaigns",
        "left": left,
        "right": right,
        "shown": next((each for each in sides if each.plan is not None), None),
        "lines": plan_page.lines(plans[0]) if len(plans) == 1 else [],
        "comparison": plan_page.side_by_side(*plans) if len(plans) == 2 else None,
        "others": _others(request, sides),
        "problems": [each.problem for each in sides if each.problem],
    }
    return render(request, "plans/viewer.html", context)


def _others(request: HttpRequest, sides: list[Side]) -> list[tuple[str, str]]:
    """(address, words) of the plans that the one on the left can be compared with."""
    left = sides[0]
    if left.artifact is None:
        return []
    found = selectors.others(left.artifact, to=request.user)
    return [(f"{each.run_id}/{each.name}", _words(each)) for each in found]


def _words(artifact: Artifact) -> str:
    levels = ", ".join(f"{name} {level}" for name, level in artifact.run.cell.levels.items())
    return f"{artifact.name} · {levels} · {artifact.run.repeat}"


def _kept(request: HttpRequest, name: str) -> Side:
    """The artifact that the address names; Http404 where the reader sees none."""
    place = request.GET.get(name, "")
    if not place:
        return Side(name)
    run, _slash, file = place.partition("/")
    visible = projects.visible(Artifact.objects.select_related("run__cell"), to=request.user)
    found = visible.filter(run_id=int(run) if run.isdecimal() else 0, name=file).first()
    if found is None or len(run) > 18:
        raise Http404(_("This plan does not exist."))
    try:
        with artifacts.open_artifact(found) as content:
            text = content.read(MOST_CHARACTERS).decode(errors="replace")
    except FileNotFoundError as error:
        raise Http404(_("This file is no longer kept.")) from error
    return _read(Side(name, place=place, text=text, artifact=found))


def _read(side: Side) -> Side:
    if not side.text.strip():
        return side
    try:
        plan = read(side.text)
    except PlanUnreadableError as error:
        return replace(side, problem=str(error))
    if len(plan.nodes()) > MOST_NODES:
        problem = _("This plan has more than %(most)d nodes.") % {"most": MOST_NODES}
        return replace(side, problem=problem)
    return replace(side, plan=plan)
