"""What pages say of workers and control that show no sign of life."""

import time
from collections.abc import Sequence

from runs.selectors.operations import checks
from runs.selectors.operations.checks import OK, Outcome

# Pages are asked for every 2 s by each reader, and a Redis that is away is waited for.
KEPT_SECONDS = 2.0

_kept: dict[str, tuple[float, Sequence[Outcome]]] = {}


def silences() -> Sequence[Outcome]:
    """What `/readyz` says of control and workers, where it is not good. Raises nothing."""
    until, found = _kept.get("", (0.0, ()))
    if time.monotonic() >= until:
        found = [each for each in (checks.control(), checks.workers()) if each.status != OK]
        _kept[""] = (time.monotonic() + KEPT_SECONDS, found)
    return found
