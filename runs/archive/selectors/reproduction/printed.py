"""What a publication says of its design, in the terms of the scenario that repeats it."""

from collections.abc import Mapping, Sequence
from typing import Any

from runs.models import Campaign, PublishedNode
from runs.scenarios.definition import Parameter, Place, Scenario

VERSION, BLOCK_SIZE = "version", "block_size"


def levels(campaign: Campaign) -> dict[str, list[Any]]:
    """The levels of each factor, including those that the publication keeps constant. One query."""
    found = {name: list(levels) for name, levels in campaign.factors.items()}
    for of_cell in campaign.cells.order_by("ordinal").values_list("levels", flat=True):
        for name, level in of_cell.items():
            known = found.setdefault(name, [])
            if level not in known:
                known.append(level)
    wanted = campaign.published.reproduce
    found |= {name: list(levels) for name, levels in wanted.get("levels", {}).items()}
    if wanted.get("versions"):
        found[VERSION] = list(wanted["versions"])
    return found


def parameter(
    campaign: Campaign, scenario: Scenario, wanted: Parameter, known: Mapping[str, Sequence[Any]]
) -> int | float | None:
    """A constant in the scenario's unit; None if the publication does not print it."""
    given = {**campaign.parameters, **campaign.published.reproduce.get("parameters", {})}
    name, times = scenario.printed.get(wanted.name, ("", 1))
    if name in given:
        given[wanted.name] = times * given[name]
    constant = known.get(wanted.name, ())
    found = given.get(wanted.name, constant[0] if len(constant) == 1 else None)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return found if is_number else None


def of_factor(
    campaign: Campaign, place: Place, name: str, known: Mapping[str, Sequence[Any]]
) -> list[Any]:
    """The levels of a factor, as printed or as the place says; empty if nothing tells them."""
    found = list(known.get(name, ()))
    if not found and name in campaign.parameters:
        found = [campaign.parameters[name]]
    return found or list(place.levels.get(name, ()))


def database_node(campaign: Campaign) -> PublishedNode | None:
    """The machine of the database, with its hardware and configuration. One query."""
    nodes = PublishedNode.objects.filter(table__campaign=campaign, role="database")
    return nodes.select_related("hardware", "configuration").order_by("ordinal").first()
