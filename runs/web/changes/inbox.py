"""The inbox of changes: what histories found, and what people say of it."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.models import Change
from runs.selectors.access import projects
from runs.selectors.histories import histories
from runs.selectors.runs import jobs

ROWS = 50
NEWEST = 5
LARGEST_ID = 2**63 - 1
WHICH = (
    ("new", _("new"), (Change.Decision.OPEN,)),
    ("confirmed", _("confirmed"), (Change.Decision.CONFIRMED,)),
    ("dismissed", _("dismissed"), (Change.Decision.DISMISSED, Change.Decision.REFUTED)),
    ("all", _("all"), tuple(Change.Decision)),
)
DECISIONS = [(each.value, each.label) for each in Change.Decision if each != "refuted"]


@dataclass(frozen=True)
class Row:
    """A change, and the CI job of the first run after it."""

    change: Change
    job_url: str


@require_safe
def change_list(request: HttpRequest) -> HttpResponse:
    """Changes of all campaigns, the newest first, by what was decided about them."""
    names = {name: decisions for name, _title, decisions in WHICH}
    which = request.GET.get("which", "new")
    which = which if which in names else "new"
    shown = projects.visible(histories.all_changes(), to=request.user)
    shown = shown.filter(decision__in=names[which])
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit():
        shown = shown.filter(pk__lt=min(int(before[:20]), LARGEST_ID))
    # One more than is shown, to know whether there are older ones.
    found = list(shown[: ROWS + 1])
    context = {
        "section": "campaigns",
        "which": which,
        "choices": [(name, title) for name, title, _decisions in WHICH],
        "rows": [Row(change, jobs.address(change.run.labels)) for change in found[:ROWS]],
        "older": found[ROWS - 1].pk if len(found) > ROWS else None,
        "is_first": not before,
        "decisions": DECISIONS,
    }
    return render(request, "changes/list.html", context)


def newest(to: projects.Reader) -> list[Row]:
    """The newest changes that nobody has decided about, for the first page. Two queries at most."""
    # To plan the joins of eight tables takes PostgreSQL longer than to find that there is nothing.
    open_ones = Change.objects.filter(decision=Change.Decision.OPEN).order_by("-pk")
    shown = list(projects.visible(open_ones, to=to).values_list("pk", flat=True)[:NEWEST])
    found = histories.all_changes().filter(pk__in=shown) if shown else ()
    return [Row(change, jobs.address(change.run.labels)) for change in found]
