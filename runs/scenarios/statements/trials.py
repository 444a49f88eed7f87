"""One statement with settings put back, in turn with the version that it is compared with.

Each slice has the statement in all arms of the run, in a random order, by an own session of psql
for each. The server is the same for all of them: its settings are those of its version.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from runs.analysis.why.proof import LOOKS
from runs.execution import turns
from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.reporter import ArtifactData
from runs.scenarios.statements import cold, passes
from runs.scenarios.statements.passes import Head, Planned
from runs.statements import content, trial
from runs.statements.content import LoadContent
from runs.statements.load import Unit
from runs.statements.trial import TrialTimes
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

# What an arm takes in a slice, and how often a statement is executed for that at most.
ARM_MS, MOST_TIMES = 300.0, 20


@dataclass(frozen=True)
class Trial:
    """What a run tries: a unit, and the settings of each arm by its name."""

    unit: Unit
    arms: Mapping[str, Mapping[str, str]]


def read_trial(bench: Bench, load: LoadContent) -> Trial | None:
    """The trial that a run is; None for one of the whole load. Raises TargetProblem."""
    number = bench.parameters.get(trial.STATEMENT)
    if number is None:
        return None
    unit = next((unit for unit in load.units if unit.number == number), None)
    if unit is None:
        raise TargetProblem(
            _("The load has no statement %(number)s."),
            code="statement_missing",
            remedy=_("Bring the load again, and queue a new campaign of it."),
            number=number,
        )
    return Trial(unit, trial.arms(str(bench.levels[trial.LEVEL])))


async def measure(bench: Bench, load: LoadContent, tried: Trial) -> None:
    """All slices, and what they found, encrypted with the load's own key."""
    await passes.send_statements(bench, load, numbers=[tried.unit.number])
    arms = [
        await _prepare(bench, tried.unit, arm, place)
        for place, arm in enumerate(tried.arms.items())
    ]
    found: dict[str, dict[int, float]] = {name: {} for name in tried.arms}
    for number in range(1, bench.parameters["duration"] + 1):
        await _reach(bench, turns.slice_of(number))
        random.Random(f"{bench.plan.run_id}/{number}").shuffle(arms)  # noqa: S311 -- repeatable
        for arm in arms:
            time = await _execute(bench, tried.unit, arm, number)
            if time is not None:
                found[arm.name][number] = time
    for act in bench.after_slices:
        await act()
    await _reach(bench, turns.END)
    times = TrialTimes({name: of_arm for name, of_arm in found.items() if of_arm})
    kept = content.sealed(load.key, times.to_json())
    bench.findings.artifacts.append(
        ArtifactData(trial.ARTIFACT, kept, content.MEDIA_TYPE)
    )
    first_arm = next(iter(found.values()))
    if first_arm:
        bench.measured(known_metrics.LOAD_CALL, fmean(first_arm.values()))
    bench.measured(known_metrics.LOAD_STATEMENTS, float(bool(first_arm)))
    bench.measured(known_metrics.LOAD_FAILED, float(not first_arm))
    bench.findings.tool_name = "psql"


def number_of_slices(milliseconds_of_all_arms: float) -> int:
    """How many slices a trial has, the arms of which take so long once: as many as two looks of the
    proof, or as one where these took minutes."""
    return LOOKS[1] if milliseconds_of_all_arms < 7_500 else LOOKS[0]


@dataclass(frozen=True)
class _Arm:
    """An arm by its name: what its session is told, and executes in each slice.

    The first `left_out` executions do not count.
    """

    name: str
    head: Head
    planned: Sequence[Planned]
    left_out: int = 0


async def _prepare(
    bench: Bench, unit: Unit, arm: tuple[str, Mapping[str, str]], place: int
) -> _Arm:
    """An arm, which is executed once for how often a slice can; a cold one is once in each."""
    name, settings = arm
    head = await passes.send_head(bench, f"arm-{place}", settings)
    once = passes.once([unit])
    if cold.is_cold(bench):
        return _Arm(name, head, once)
    _result, calls = await passes.execute(
        bench, f"first-{head.name}", once, is_load=False, head=head
    )
    once_ms = sum(call.milliseconds for call in calls)
    times = max(1, min(MOST_TIMES, int(ARM_MS / max(once_ms, 0.01))))
    # The first ones of a session read the catalogue, and are left out.
    return _Arm(name, head, once * (1 + times), left_out=len(once))


async def _execute(bench: Bench, unit: Unit, arm: _Arm, number: int) -> float | None:
    """The milliseconds of a call; None where it failed, or a setting was refused."""
    name = f"slice-{number:02}-{arm.head.name}"
    if cold.is_cold(bench):
        _seconds, calls = await passes.execute_cold(
            bench, name, arm.planned, head=arm.head
        )
    else:
        _result, calls = await passes.execute(
            bench, name, arm.planned, is_load=True, head=arm.head
        )
    return passes.timed(unit, calls[arm.left_out :]).milliseconds


async def _reach(bench: Bench, point: turns.Point) -> None:
    if bench.turns is not None:
        await bench.turns.reached(bench.plan.run_id, point)
