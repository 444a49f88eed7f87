"""When the load generator, and not the database, is what a run measures."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.nodes import DATABASE_NODE
from runs.execution.steps.steps import StepResult
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

# Of the processors, in %.
SATURATED_IDLE = 10.0
IDLING_DATABASE = 20.0
# A thread of pgbench that is busy for more than this share of its time cannot send more.
SATURATED_THREADS = 0.9


def note_machines(bench: Bench, idle: dict[str, float]) -> None:
    """If a generator is busy while the database is not, the run measures the generator."""
    database = idle.get(DATABASE_NODE, 0.0)
    for name, mean in idle.items():
        if (
            name != DATABASE_NODE
            and mean < SATURATED_IDLE
            and database > IDLING_DATABASE
        ):
            bench.note(
                "generator_saturated",
                _(
                    "%(name)s had %(own)s %% of its processors idle and the database %(idle)s %%: "
                    "the load generator was the bottleneck. Use more or stronger ones."
                ),
                name=name,
                own=f"{mean:.0f}",
                idle=f"{database:.0f}",
            )


def note_threads(
    bench: Bench, steps: Sequence[StepResult], threads: Sequence[int | None]
) -> None:
    """Add pgbench's processor time, and whether its threads were the bottleneck."""
    # One that fails at once takes less than the hundredth of a second that is counted.
    used_shares = [
        step_result.cpu_seconds / step_result.seconds
        for step_result in steps
        if step_result.cpu_seconds is not None and step_result.seconds > 0
    ]
    if len(used_shares) < len(steps):
        return
    bench.measured(known_metrics.GENERATOR_CPU, round(sum(used_shares), 3))
    for used, thread_count, step in zip(used_shares, threads, steps, strict=True):
        _note_saturated(bench, step.name, used, thread_count)


def note_share(bench: Bench, name: str, used: float, threads: int | None) -> None:
    """The same of one generator that kept `used` processors busy in all its steps."""
    bench.measured(known_metrics.GENERATOR_CPU, round(used, 3))
    _note_saturated(bench, name, used, threads)


def _note_saturated(bench: Bench, name: str, used: float, threads: int | None) -> None:
    if not threads or used <= SATURATED_THREADS * threads:
        return
    bench.note(
        "generator_saturated",
        _(
            "%(name)s kept %(used)s processors busy with %(threads)s thread(s): the load "
            "generator is what was measured. Use more threads or further machines for it."
        ),
        name=name,
        used=f"{used:.1f}",
        threads=threads,
    )
