"""The workload of an uploaded run: part of its cell wherever it differs from pgbench's default.

Runs with different scripts, query modes, rates, connections or tries are not repeats of each other.
The default that everybody means without saying it (one TPC-B script, simple protocol, kept
connections, no rate, one try) is not a level, so that it does not separate versions that print
less.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from runs.models import Campaign
from runs.uploads.services import factors

USUAL: Mapping[str, frozenset[Any]] = {
    "script": frozenset({"tpcb-like"}),
    "query_mode": frozenset({"simple"}),
    "connection": frozenset({"kept"}),
    "rate": frozenset({0}),
    "max_tries": frozenset({0, 1}),
}
NAMES = frozenset(USUAL)


def add_workload(
    levels: Mapping[str, Any], workload: Mapping[str, Any]
) -> dict[str, Any]:
    """The levels with whatever is unusual about the workload; levels that are given stay."""
    unusual = {
        name: value
        for name, value in workload.items()
        if name in USUAL and name not in levels and value not in USUAL[name]
    }
    return {**levels, **unusual}


@transaction.atomic
def note_levels(*, campaign_id: int) -> None:
    """Add to a campaign's factors what its cells have: uploads do so for new levels only."""
    campaign = Campaign.objects.select_for_update(no_key=True).get(pk=campaign_id)
    levels_of_cells = campaign.cells.order_by("ordinal", "pk").values_list(
        "levels", flat=True
    )
    are_new = [
        factors.note(campaign.factors, levels) for levels in levels_of_cells.iterator()
    ]
    if any(are_new):
        campaign.save(update_fields=["factors"])
