"""Clocks of the machines of a run, compared before it is measured.

A wrong clock does not affect measurements on one machine, whose times are all its own. It shifts
the series of several machines against each other, which `skew_s` corrects.
"""

from collections.abc import Sequence
from itertools import combinations

from runs.execution.bench import Bench
from runs.execution.errors import OUT_OF_REACH, TargetProblem
from runs.execution.machine.clock_skew import Skew, measure
from runs.execution.nodes import Node
from runs.wording import gettext_noop as _

# A larger difference is reported: logs of two such machines cannot be read side by side.
SKEW_LIMIT_SECONDS = 1.0


async def compare(bench: Bench) -> None:
    """Measure every machine's clock, store the result, and report one that is far off."""
    for node in bench.nodes:
        skew = await _measure_skew(node)
        if skew is not None:
            bench.skews[node.name] = skew
    message = ", ".join(
        f"{name} {skew.skew_s:+.4f} s (\N{PLUS-MINUS SIGN} {skew.uncertainty_s:.4f})"
        for name, skew in bench.skews.items()
    )
    if bench.skews:
        text = _("Clock against BenchLab's worker: %(clocks)s.")
        bench.note("clock_skew", text, level="info", clocks=message)
    if is_off(list(bench.skews.values())):
        bench.note(
            "clocks_differ",
            _(
                "A clock is off by more than %(seconds)s s (%(clocks)s): let chrony or ntpd set it."
            ),
            seconds=f"{SKEW_LIMIT_SECONDS:g}",
            clocks=message,
        )


def is_off(skews: Sequence[Skew]) -> bool:
    """Whether one certainly differs from the worker, or another one, by more than the limit."""
    least = [max(abs(skew.skew_s) - skew.uncertainty_s, 0.0) for skew in skews]
    apart = [
        abs(one_skew.skew_s - other_skew.skew_s)
        - one_skew.uncertainty_s
        - other_skew.uncertainty_s
        for one_skew, other_skew in combinations(skews, 2)
    ]
    return max([*least, *apart], default=0.0) > SKEW_LIMIT_SECONDS


async def _measure_skew(node: Node) -> Skew | None:
    try:
        return await node.retry_on_host(measure)
    except OUT_OF_REACH:
        raise
    except TargetProblem:  # no run fails for want of its clock
        return None
