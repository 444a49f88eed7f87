"""How an uploaded run was loaded: part of its cell wherever it is not what pgbench does by itself.

Two runs of other scripts, query modes, rates, connections or tries are no repeats of each other.
What everybody means without saying it (one script of TPC-B, simple statements, connections that are
kept, no rate, one try) is no level, so that it does not part versions that print less.
"""

from collections.abc import Mapping
from typing import Any

USUAL: Mapping[str, frozenset[Any]] = {
    "script": frozenset({"tpcb-like"}),
    "query_mode": frozenset({"simple"}),
    "connection": frozenset({"kept"}),
    "rate": frozenset({0}),
    "max_tries": frozenset({0, 1}),
}
NAMES = frozenset(USUAL)


def with_workload(levels: Mapping[str, Any], workload: Mapping[str, Any]) -> dict[str, Any]:
    """The levels with whatever is unusual of the workload; what they say themselves stays."""
    unusual = {
        name: value
        for name, value in workload.items()
        if name in USUAL and name not in levels and value not in USUAL[name]
    }
    return {**levels, **unusual}
