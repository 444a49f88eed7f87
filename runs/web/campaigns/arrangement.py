"""What machines and clusters a campaign's runs have, as drawings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.charts.arrangement import Drawing, Part, drawing
from runs.execution.plan import MAIN
from runs.scenarios import arrangements
from runs.scenarios.definition import FurtherCluster
from runs.services.campaigns.designs import Design, DesignCell
from runs.wording import gettext_noop

MOST_DRAWINGS = 6
# The roles of further clusters, as scenarios name them in the record of a run.
ROLES = (
    gettext_noop("standby"), gettext_noop("subscriber"), gettext_noop("foreign server"),
    gettext_noop("node"),
)  # fmt: skip
LINKS = {
    "sync": gettext_noop("synchronous"),
    "async": gettext_noop("asynchronous"),
    "quorum": gettext_noop("quorum"),
}


@dataclass(frozen=True)
class Arrangement:
    """A drawing and what it is of."""

    title: str
    drawing: Drawing


def arrangements_of(design: Design) -> list[Arrangement]:
    """A drawing for each arrangement of the design; none if there is only a single cluster."""
    found: dict[object, Arrangement] = {}
    for cell in design.parts[0].cells if design.parts else ():
        clusters = design.scenario.arrangement(cell.installation.version_num, cell.levels)
        level = cell.levels.get(arrangements.NAME)
        key = (level, tuple((each.name, each.role) for each in clusters))
        if key not in found and len(found) < MOST_DRAWINGS:
            found[key] = Arrangement(_title(level), drawing(_parts(design, cell, clusters)))
    is_plain = all(len(each.drawing.boxes) <= 2 for each in found.values())
    return [] if is_plain and not design.generators else list(found.values())


def _title(level: Any) -> str:
    known = {choice.value: choice.title for choice in arrangements.FACTOR.choices}
    return _(known[level]) if level in known else ""


def _parts(design: Design, cell: DesignCell, clusters: tuple[FurtherCluster, ...]) -> list[Part]:
    own = design.parts[0].server.name
    loads = [each.server.name for each in design.generators] or [own]
    parts = [Part("load", name, "pgbench", _("load")) for name in loads]
    if cell.levels.get(arrangements.NAME) == arrangements.POOLED:
        machine = next((each.server.name for each in design.cluster_machines), own)
        parts.append(Part("pool", machine, "PgBouncer", _("connection pool")))
    version = f"PostgreSQL {cell.installation.version}"
    parts.append(Part("database", own, MAIN if clusters else version, _("database")))
    modes = _modes(cell.levels)
    for place, each in enumerate(clusters):
        machines = design.cluster_machines
        machine = machines[place % len(machines)].server.name if machines else own
        parts.append(
            Part("further", machine, each.name, _(each.role), _(modes.get(place, "")) or "")
        )
    return parts


def _modes(levels: Mapping[str, Any]) -> dict[int, str]:
    """How each standby follows, by its place; of a scenario's own by its numbers of them."""
    level = levels.get(arrangements.NAME)
    if level in arrangements.MODES:
        return {place: LINKS[mode] for place, mode in enumerate(arrangements.MODES[str(level)])}
    if "sync_standbys" not in levels:
        return {}
    number = int(levels["sync_standbys"])
    mode = LINKS["quorum" if levels.get("synchronous_by") == "majority" else "sync"]
    return {place: mode if place < number else LINKS["async"] for place in range(16)}
