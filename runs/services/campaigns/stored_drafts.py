"""Drafts as JSON, for a worker that is to look at one soon: objects by their keys."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Model, QuerySet

from runs.execution.treatment import Treatment
from runs.models import Configuration, Installation, Server
from runs.services.campaigns.drafts import Draft

_PLAIN = (
    *("title", "scenario", "repeats", "seed", "priority", "most_attempts", "remeasures"),
    *("leaves_out_doubtful", "wanted_half_width", "most_repeats", "is_a_a", "reproduces"),
)


def stored(draft: Draft) -> dict[str, Any]:
    """What `restored` needs."""
    return {
        **{name: getattr(draft, name) for name in _PLAIN},
        "levels": {name: list(levels) for name, levels in draft.levels.items()},
        "parameters": dict(draft.parameters),
        "settings": {name: list(levels) for name, levels in draft.settings.items()},
        "treatment": vars(draft.treatment),
        "servers": _keys([draft.server, *draft.more_servers]),
        "generators": _keys(draft.generators),
        "cluster_servers": _keys(draft.cluster_servers),
        "installations": _keys(draft.installations),
        "client": draft.client.pk if draft.client else None,
        "configurations": [
            each.pk if each else None for each in (draft.configuration, *draft.more_configurations)
        ],
    }


def restored(kept: dict[str, Any]) -> Draft:
    """The draft. What was removed meanwhile is missing. Four queries at most."""
    machines = [*kept["servers"], *kept["generators"], *kept["cluster_servers"]]
    servers = _found(Server.objects.select_related("hardware", "environment"), machines)
    installations = _found(
        Installation.objects.select_related("server"), [*kept["installations"], kept["client"]]
    )
    configurations = _found(Configuration.objects.all(), kept["configurations"])
    configuration, *more = [configurations.get(each) for each in kept["configurations"]]
    first, *others = [servers[each] for each in kept["servers"]]
    return Draft(
        **{name: kept[name] for name in _PLAIN},
        levels=kept["levels"],
        parameters=kept["parameters"],
        settings=kept["settings"],
        treatment=Treatment.of(kept["treatment"]),
        server=first,
        more_servers=others,
        generators=[servers[each] for each in kept["generators"]],
        cluster_servers=[servers[each] for each in kept["cluster_servers"]],
        installations=[
            installations[each] for each in kept["installations"] if each in installations
        ],
        client=installations.get(kept["client"]),
        configuration=configuration,
        more_configurations=[each for each in more if each is not None],
    )


def _keys(rows: Sequence[Model]) -> list[int]:
    return [each.pk for each in rows]


def _found(rows: QuerySet[Any], keys: Sequence[int | None]) -> dict[Any, Any]:
    wanted = {each for each in keys if each is not None}
    return rows.in_bulk(wanted) if wanted else {}
