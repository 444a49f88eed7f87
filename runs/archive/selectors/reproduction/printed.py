"""What a publication says of its design, in the terms of the scenario that repeats it."""

from collections.abc import Mapping, Sequence
from typing import Any

from runs.models import Campaign, PublishedNode
from runs.scenarios.definition import Parameter, Place, Scenario

VERSION, BLOCK_SIZE = "version", "block_size"


def levels(campaign: Campaign) -> dict[str, list[Any]]:
    """The levels of each factor, including those that the publication keeps constant. One query."""
    levels_of = {name: list(levels) for name, levels in campaign.factors.items()}
    for of_cell in campaign.cells.order_by("ordinal").values_list("levels", flat=True):
        for name, level in of_cell.items():
            known_levels = levels_of.setdefault(name, [])
            if level not in known_levels:
                known_levels.append(level)
    instructions = campaign.published.reproduce
    levels_of |= {
        name: list(levels) for name, levels in instructions.get("levels", {}).items()
    }
    if instructions.get("versions"):
        levels_of[VERSION] = list(instructions["versions"])
    return levels_of


def parameter(
    campaign: Campaign,
    scenario: Scenario,
    scenario_parameter: Parameter,
    published_levels: Mapping[str, Sequence[Any]],
) -> int | float | None:
    """A constant in the scenario's unit; None if the publication does not print it."""
    constants = {
        **campaign.parameters,
        **campaign.published.reproduce.get("parameters", {}),
    }
    name, times = scenario.printed.get(scenario_parameter.name, ("", 1))
    if name in constants:
        constants[scenario_parameter.name] = times * constants[name]
    constant = published_levels.get(scenario_parameter.name, ())
    constant_value = constants.get(
        scenario_parameter.name, constant[0] if len(constant) == 1 else None
    )
    is_number = isinstance(constant_value, int | float) and not isinstance(
        constant_value, bool
    )
    return constant_value if is_number else None


def list_levels(
    campaign: Campaign,
    place_of_scenario: Place,
    name: str,
    published_levels: Mapping[str, Sequence[Any]],
) -> list[Any]:
    """The levels of a factor, as printed or as the place says; empty if nothing tells them."""
    factor_levels = list(published_levels.get(name, ()))
    if not factor_levels and name in campaign.parameters:
        factor_levels = [campaign.parameters[name]]
    return factor_levels or list(place_of_scenario.levels.get(name, ()))


def database_node(campaign: Campaign) -> PublishedNode | None:
    """The machine of the database, with its hardware and configuration. One query."""
    nodes = PublishedNode.objects.filter(table__campaign=campaign, role="database")
    return nodes.select_related("hardware", "configuration").order_by("ordinal").first()
