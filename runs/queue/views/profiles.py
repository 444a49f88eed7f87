"""The flame graph of a run as a page: zoomed, searched, and against that of another run."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.charts import flame_graph, stacks
from runs.charts.stacks import Change, Frame
from runs.models import Artifact
from runs.queue.selectors import runs
from runs.queue.services import artifacts

MOST_CHARACTERS = 32 * 1024 * 1024
MOST_FUNCTIONS, MOST_DEPTH = 25, 100


@dataclass(frozen=True)
class Asked:
    """What the address asks for; all that stays when one of it changes."""

    against: str
    search: str
    zoom: flame_graph.Zoom

    def query(self, **changed: str) -> str:
        """The address's query with something else."""
        zoom = ".".join(map(str, self.zoom))
        fields = {"against": self.against, "q": self.search, "zoom": zoom} | changed
        return "?" + urlencode({name: value for name, value in fields.items() if value})


@addresses.page("run-profile")
def run_profile(request: HttpRequest, run_id: int) -> HttpResponse:
    """A run's profile, or with `?against=` the difference to another run's."""
    chosen = _read_address(request)
    own_profile = _artifact(request, run_id)
    other_profile = _artifact(request, int(chosen.against)) if chosen.against else None
    after, before = _tree(own_profile), _tree(other_profile) if other_profile else None
    drawn = flame_graph.view(
        after,
        link=lambda zoom: chosen.query(zoom=".".join(map(str, zoom))),
        zoom=chosen.zoom,
        search=chosen.search,
        before=before,
    )
    context = {
        "run": own_profile.run,
        "against": other_profile.run if other_profile else None,
        "asked": chosen,
        # Every text in it is escaped where it is drawn.
        "svg": mark_safe(drawn.svg),  # noqa: S308
        "found": drawn.found,
        "way": [
            (name, chosen.query(zoom=".".join(map(str, zoom))))
            for name, zoom in drawn.way
        ],
        "functions": _functions(after, before),
        "samples": after.samples,
        "samples_before": before.samples if before else None,
        "others": runs.others(own_profile, to=request.user),
    }
    return render(request, "queue/profiles/profile.html", context)


def _functions(after: Frame, before: Frame | None) -> Sequence[Change]:
    """The functions with most samples of their own; of a difference those that surely differ."""
    if before is not None:
        return [change for change in stacks.changes(before, after) if change.is_sure][
            :MOST_FUNCTIONS
        ]
    sample_counts = stacks.own_samples(after).most_common(MOST_FUNCTIONS)
    return [
        stacks.change(name, 0, 0, count, after.samples) for name, count in sample_counts
    ]


def _read_address(request: HttpRequest) -> Asked:
    against = request.GET.get("against", "")
    words = request.GET.get("zoom", "").split(".")
    zoom = tuple(
        int(word) for word in words[:MOST_DEPTH] if word.isdecimal() and len(word) < 9
    )
    return Asked(
        against=against if against.isdecimal() and len(against) < 18 else "",
        search=request.GET.get("q", "").strip()[:200],
        zoom=zoom,
    )


def _artifact(request: HttpRequest, run_id: int) -> Artifact:
    artifact = runs.profile_of(run_id, to=request.user)
    if artifact is None:
        raise Http404(_("This run has no profile."))
    return artifact


def _tree(artifact: Artifact) -> Frame:
    try:
        with artifacts.open_artifact(artifact) as content:
            return stacks.tree_of(
                content.read(MOST_CHARACTERS).decode(errors="replace")
            )
    except FileNotFoundError as error:
        raise Http404(_("This file is no longer kept.")) from error
