"""Machines that measured one side alone: their runs are left out, and named.

A job's rerun may land on another machine. What both sides have of a machine is compared.
"""

import itertools
from collections.abc import Collection, Mapping

from django.db import connections, router

from runs.models import Run
from runs.selectors.compare import comparability
from runs.selectors.compare.cell_runs import CellRuns, Machine

_MACHINES = """
SELECT cell_id, hardware_id, environment_id FROM runs_run
WHERE cell_id = ANY(%s) AND state = %s AND (%s::bigint IS NULL OR id <= %s)
GROUP BY cell_id, hardware_id, environment_id ORDER BY 1, 2, 3
"""
# The conditions that are a machine's.
OF_MACHINE = ("hardware_differs", "environment_differs")


def are_several(runs: CellRuns | None) -> bool:
    """Whether a cell may have been measured on several machines."""
    return runs is not None and max(len(runs.hardware), len(runs.environment)) > 1


def of_cells(cells: Collection[int], until: int | None = None) -> dict[int, set[Machine]]:
    """The machines of each cell's runs, up to the run `until`. One query."""
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(_MACHINES, [list(cells), Run.State.FINISHED.value, until, until])
        found: dict[int, set[Machine]] = {}
        for cell, hardware, environment in cursor:
            found.setdefault(cell, set()).add((hardware, environment))
        return found


def strays(base: Collection[Machine], head: Collection[Machine]) -> frozenset[Machine]:
    """The machines that one side alone has, where both have another one in common.

    One query, none for a machine a side.
    """
    machines = sorted({*base, *head}, key=str)
    if max(len(base), len(head)) < 2:
        return frozenset()
    alike = _alike(machines)
    shared = {
        machine
        for one, other in itertools.product(base, head)
        if alike[one, other]
        for machine in (one, other)
    }
    return frozenset(set(machines) - shared) if shared else frozenset()


def _alike(machines: Collection[Machine]) -> Mapping[tuple[Machine, Machine], bool]:
    # Cells that are none: what is known of a machine alone.
    places = {machine: -number for number, machine in enumerate(machines, start=1)}
    runs = {
        place: CellRuns(
            hardware=(hardware,) if hardware else (),
            environment=(environment,) if environment else (),
        )
        for (hardware, environment), place in places.items()
    }
    under = comparability.of_cells(list(runs), runs)
    return {
        (one, other): not set(OF_MACHINE) & set(under.judgement(places[one], places[other]).reasons)
        for one, other in itertools.product(machines, repeat=2)
    }
