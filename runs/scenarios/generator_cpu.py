"""How much processor time the load generator itself uses."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.steps import StepResult
from runs.scenarios.metrics import GENERATOR_CPU

# A thread of pgbench that is busy for more than this share of its time cannot send more.
SATURATED_THREADS = 0.9


def note(bench: Bench, steps: Sequence[StepResult], threads: Sequence[int | None]) -> None:
    """Add pgbench's processor time, and whether its threads were the bottleneck."""
    known = [each.cpu_seconds / each.seconds for each in steps if each.cpu_seconds is not None]
    if len(known) < len(steps):
        return
    bench.findings.measurements[GENERATOR_CPU.name] = round(sum(known), 3)
    for used, own, step in zip(known, threads, steps, strict=True):
        if own and used > SATURATED_THREADS * own:
            bench.note(
                "generator_saturated",
                f"{step.name} kept {used:.1f} processors busy with {own} thread(s): the load "
                "generator is what was measured. Use more threads or further machines for it.",
            )
