"""Whether cells can be compared: the one judgement for all pages, programs and gates."""

import itertools
import json
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.analysis.comparability_judgement import (
    WORKLOAD,
    Conditions,
    Judgement,
    Known,
    judge,
    known,
)
from runs.analysis.comparability_rules import SETTINGS
from runs.compare.selectors.load import stored_cells
from runs.compare.selectors.load.stored_cells import CellRuns, Machine
from runs.execution.machine.treatment import UNTREATED
from runs.models import Run
from runs.models.campaigns import Origin
from runs.scenarios.withdrawn import DUET
from runs.shared import queries

# pgbench's defaults, which apply to every scenario that sets none of them.
_EXECUTED = {"query_mode": "simple", "connection": "kept", "rate": 0, "max_tries": 1}
_TREATMENT = vars(UNTREATED)

# One round trip for everything. Of some 390 settings only those that are judged are read.
_SQL = """
WITH cell AS MATERIALIZED (
    SELECT id, levels, workload, version, campaign_id, installation_id FROM runs_cell
    WHERE id = ANY(%s)
)
SELECT 'hardware', id, to_jsonb(row) || facts FROM runs_hardwareprofile row WHERE id = ANY(%s)
UNION ALL
SELECT 'environment', id, to_jsonb(row) || facts FROM runs_environment row WHERE id = ANY(%s)
UNION ALL
SELECT 'settings', id, (
    SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(settings)
    WHERE key = ANY(%s)
) FROM runs_settingssnapshot WHERE id = ANY(%s)
UNION ALL
SELECT 'build', id, to_jsonb(row) FROM runs_installation row
WHERE id = ANY(ARRAY(SELECT DISTINCT installation_id FROM cell))
UNION ALL
SELECT 'campaign', campaign.id, jsonb_build_object(
    'origin', origin, 'slug', campaign.slug, 'parameters', parameters, 'treatment', treatment,
    'scenario', scenario.slug
) FROM runs_campaign campaign JOIN runs_scenario scenario ON scenario.id = scenario_id
WHERE campaign.id = ANY(ARRAY(SELECT DISTINCT campaign_id FROM cell))
UNION ALL
SELECT 'cell', id, jsonb_build_object(
    'levels', levels, 'workload', workload, 'version', version,
    'campaign', campaign_id, 'build', installation_id
) FROM cell
"""


@dataclass(frozen=True)
class Comparability:
    """The conditions of some cells, by cell."""

    of: Mapping[int, Conditions] = field(default_factory=dict)
    _judged: dict[tuple[int, int, Collection[str]], Judgement] = field(
        default_factory=dict
    )

    def judgement(
        self, base: int | None, head: int | None, *, ignore: Collection[str] = ()
    ) -> Judgement:
        """Whether the head can be compared with the base, and despite which differences.

        `ignore` has the codes of differences that do not prevent it. There is nothing to say about
        a cell that was not measured (None).
        """
        if base is None or head is None:
            return Judgement()
        # A pair has the same answer for each of its metrics.
        question = (base, head, tuple(ignore))
        if question not in self._judged:
            nothing = Conditions()
            sides = (self.of.get(base, nothing), self.of.get(head, nothing))
            self._judged[question] = judge(*sides, ignore)
        return self._judged[question]


def read_comparability(
    cell_ids: Collection[int], runs: Mapping[int, CellRuns] | None = None
) -> Comparability:
    """The conditions of these cells. One query, and one more if the `runs` are not given."""
    runs_of_cells = stored_cells.read_runs(cell_ids) if runs is None else runs
    rows = _rows(cell_ids, runs_of_cells)
    known_facts: dict[Hashable, Known] = {}
    return Comparability(
        {
            cell: _conditions(
                rows, cell, runs_of_cells.get(cell, _NO_RUNS), known_facts
            )
            for cell in cell_ids
        }
    )


_NO_RUNS = CellRuns()

Rows = Mapping[tuple[str, int], dict[str, Any]]


def _rows(
    cell_ids: Collection[int], runs: Mapping[int, CellRuns]
) -> dict[tuple[str, int], dict[str, Any]]:
    runs_given = [runs[cell] for cell in cell_ids if cell in runs]
    hardware, environment, settings = (
        stored_cells.keys_of(runs_given, kind)
        for kind in ("hardware", "environment", "settings")
    )
    content_rows = queries.rows(
        _SQL, [list(cell_ids), hardware, environment, list(SETTINGS), settings]
    )
    return {(kind, key): _loaded(content) for kind, key, content in content_rows}


def _loaded(content: Any) -> dict[str, Any]:
    """Django's connections leave JSON to its fields."""
    loaded: dict[str, Any] = (
        json.loads(content) if isinstance(content, str) else content
    )
    return loaded


def _conditions(
    rows: Rows, key: int, runs: CellRuns, known_facts: dict[Hashable, Known]
) -> Conditions:
    """Those of a cell. Most cells have the machine and the workload of others, read once each."""
    cell = rows.get(("cell", key), _NO_CELL)
    campaign = rows.get(("campaign", cell["campaign"]), {})
    governor = campaign.get("treatment", {}).get("governor")
    on = (
        (runs.hardware, runs.environment, runs.settings),
        governor,
        cell["build"],
        cell["version"],
    )
    if on not in known_facts:
        known_facts[on] = _machine(rows, runs, cell, campaign)
    workload_levels = {
        name: level
        for name, level in (*cell["workload"].items(), *cell["levels"].items())
        if name in WORKLOAD
    }
    # As text, since 1 and true are equal.
    work = (cell["campaign"], repr(workload_levels))
    if work not in known_facts:
        known_facts[work] = known(
            {"workload": [{**_workload(campaign), **workload_levels}]}
        )
    levels = cell["levels"]
    if campaign.get("origin") == Origin.UPLOADED:
        # These are read from the output; nobody chose them as something to compare.
        levels = {
            name: level
            for name, level in levels.items()
            if name not in cell["workload"]
        }
    return Conditions((known_facts[on], known_facts[work]), levels)


_NO_CELL: dict[str, Any] = {
    "levels": {},
    "workload": {},
    "version": "",
    "campaign": 0,
    "build": None,
}


def _machine(
    rows: Rows, runs: CellRuns, cell: Mapping[str, Any], campaign: Mapping[str, Any]
) -> Known:
    """All of them but the workload: the machine, its system, the build and the settings."""

    def rows_of(kind: str, keys: Iterable[int]) -> list[dict[str, Any]]:
        return [rows[kind, key] for key in keys if (kind, key) in rows]

    # As it was during the run: a governor set by the campaign was read before it was set.
    governor = campaign.get("treatment", {}).get("governor")
    treated = {"governor": governor} if governor else {}
    return known(
        {
            "hardware": rows_of("hardware", runs.hardware),
            "environment": [
                environment_row | treated
                for environment_row in rows_of("environment", runs.environment)
            ],
            "build": rows_of("build", [cell["build"] or 0]),
        },
        settings=rows_of("settings", runs.settings),
        version=cell["version"],
    )


def _workload(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """What all cells of a campaign do, as far as they do not say otherwise."""
    stated = {"scenario": campaign.get("scenario"), **campaign.get("parameters", {})}
    if stated["scenario"] == DUET.slug:
        # Ratios to another campaign's partner are no figures of the same thing.
        stated["partner"] = campaign["slug"]
    if campaign.get("origin") == Origin.EXECUTED:
        return {**_EXECUTED, **_TREATMENT, **stated, **campaign.get("treatment", {})}
    return stated


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


def machines_of_cells(
    cells: Collection[int], until: int | None = None
) -> dict[int, set[Machine]]:
    """The machines of each cell's runs, up to the run `until`. One query."""
    values = [list(cells), Run.State.FINISHED.value, until, until]
    machines_found: dict[int, set[Machine]] = {}
    for cell, hardware, environment in queries.rows(_MACHINES, values, of=Run):
        machines_found.setdefault(cell, set()).add((hardware, environment))
    return machines_found


def strays(base: Collection[Machine], head: Collection[Machine]) -> frozenset[Machine]:
    """The machines of one side alone where both have another. One query, none for one a side."""
    machines = sorted({*base, *head}, key=str)
    if max(len(base), len(head)) < 2:
        return frozenset()
    are_alike = _alike(machines)
    shared = {
        machine
        for base_machine, head_machine in itertools.product(base, head)
        if are_alike[base_machine, head_machine]
        for machine in (base_machine, head_machine)
    }
    return frozenset(set(machines) - shared) if shared else frozenset()


def _alike(machines: Collection[Machine]) -> Mapping[tuple[Machine, Machine], bool]:
    # Cells that are none: what is known of a machine alone.
    places = {machine: -number for number, machine in enumerate(machines, start=1)}
    runs = {
        position: CellRuns(
            hardware=(hardware,) if hardware else (),
            environment=(environment,) if environment else (),
        )
        for (hardware, environment), position in places.items()
    }
    comparability_known = read_comparability(list(runs), runs)
    return {
        (base_machine, head_machine): not set(OF_MACHINE)
        & set(
            comparability_known.judgement(
                places[base_machine], places[head_machine]
            ).reasons
        )
        for base_machine, head_machine in itertools.product(machines, repeat=2)
    }
