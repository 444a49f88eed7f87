"""Example comparisons from the archive: each answers a question that people ask."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy

from runs.models import Campaign
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader
from runs.selectors.compare import series_cells
from runs.selectors.compare.state import CompareState


@dataclass(frozen=True)
class Example:
    """A question, what the comparison shows, and its address."""

    question: str
    shows: str
    query: str


_STATES = (
    (
        gettext_lazy("Is PostgreSQL 9.3 slower than 9.2 on 80 cores?"),
        gettext_lazy("Reads at 1 to 128 clients, two lines, ratios at each client count"),
        CompareState(series=(series_cells.parse("wg1-2013-2-2"),), metric="tps"),
    ),
    (
        gettext_lazy("What do page checksums cost?"),
        gettext_lazy("9.3 with and without, against the one without"),
        CompareState(
            series=(series_cells.parse("wg1-2013-2-3"),), metric="tps", x="clients", relative=True
        ),
    ),
    (
        gettext_lazy("What should be on the SSD?"),
        gettext_lazy("WAL, indexes, tables or all, for updates and for reads"),
        CompareState(
            series=(series_cells.parse("wg1-2013-4-5"),),
            x="load",
            base="wg1-2013-4-5~placement=all-hdd",
            log_y=True,
        ),
    ),
    (
        gettext_lazy("Did reads get slower from 13 to 14?"),
        gettext_lazy("Clients 1 to 192, ratios to 13"),
        CompareState(series=(series_cells.parse("wg1-2021-read"),), metric="tps", relative=True),
    ),
    (
        gettext_lazy("What does synchronous replication cost?"),
        gettext_lazy("Three standbys: none, asynchronous, mixed, synchronous"),
        CompareState(series=(series_cells.parse("wg1-2017-8-10"),), metric="tps", x="none"),
    ),
    (
        gettext_lazy("How far does throughput scale with cores?"),
        gettext_lazy("8 to 80 cores with the Universal Scalability Law through them"),
        CompareState(series=(series_cells.parse("wg1-2013-2-5"),), metric="tps", fit="usl"),
    ),
)


def examples(reader: Reader) -> list[Example]:
    """Those whose campaigns are there. One query."""
    wanted = {key.slug for _question, _shows, state in _STATES for key in state.series}
    shown = projects.visible(Campaign.objects.filter(slug__in=wanted), to=reader)
    known = set(shown.values_list("slug", flat=True))
    return [
        Example(str(question), str(shows), state.query)
        for question, shows, state in _STATES
        if {key.slug for key in state.series} <= known
    ]
