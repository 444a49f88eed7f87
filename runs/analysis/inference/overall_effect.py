"""The overall effect: head against base over all levels of a campaign, as one contrast.

Of one machine it is the mean of the rows' differences. If several machines took part, each has its
own effect, which deviates from that of all machines as in the version line (line.py): the interval
is that of machines like these, and wider than the scatter of the runs alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from runs.analysis.inference.cells import Pair
from runs.analysis.inference.kernel import judged
from runs.analysis.inference.model import Contrasts, Model
from runs.analysis.inference.verdicts import Inference, Rule
from runs.analysis.inference.version_indices import USUAL_FREEDOM, USUAL_MACHINES
from runs.grouping import group_by_key


def judge_together(
    model: Model, pairs: Sequence[Pair], machines: Sequence[Hashable], rule: Rule
) -> Inference | None:
    """The mean effect of pairs of one campaign, each measured on one of `machines`.

    None for fewer than two pairs, and where a pair has no interval.
    """
    if len(pairs) < 2 or not all(model.is_tested(pair) for pair in pairs):
        return None
    model = model.adapt_to_table(pairs)
    groups = group_by_key(zip(machines, pairs))
    contrasts_of_machines = [model.together(group) for group in groups.values()]
    contrast = (
        contrasts_of_machines[0]
        if len(contrasts_of_machines) == 1
        else _average_machines(contrasts_of_machines)
    )
    (inference,) = judged(model, pairs[:1], contrast, rule)
    return inference


def _average_machines(contrasts_of_machines: Sequence[Contrasts]) -> Contrasts:
    """The mean over machines: its error has what the machines differ by, and the runs' scatter."""
    count = len(contrasts_of_machines)
    differences = np.array(
        [contrasts.differences[0] for contrasts in contrasts_of_machines]
    )
    noises = np.array([contrasts.errors[0] ** 2 for contrasts in contrasts_of_machines])
    seen_variance = max(float(differences.var(ddof=1) - noises.mean()), 0.0)
    freedom = count - 1 + USUAL_FREEDOM
    between = (
        (count - 1) * seen_variance + USUAL_FREEDOM * USUAL_MACHINES**2
    ) / freedom
    noise, machines = float(noises.sum()) / count**2, between / count
    of_noise = min(float(contrasts.freedom[0]) for contrasts in contrasts_of_machines)
    variance = noise + machines
    inverse_freedom = noise**2 / max(of_noise, 1.0) + machines**2 / freedom
    return replace(
        contrasts_of_machines[0],
        differences=differences.mean(keepdims=True),
        bases=np.array(
            [np.mean([contrasts.bases[0] for contrasts in contrasts_of_machines])]
        ),
        heads=np.array(
            [np.mean([contrasts.heads[0] for contrasts in contrasts_of_machines])]
        ),
        errors=np.sqrt(np.array([variance])),
        freedom=np.array([variance**2 / inverse_freedom]),
    )
