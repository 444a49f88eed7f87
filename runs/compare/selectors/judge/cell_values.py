"""What the model says of single cells: the values that are compared, drawn where they are shown."""

import math
from collections.abc import Iterable, Mapping

import scipy as sp

from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.inference.cells import CellValue
from runs.compare.selectors.judge.judging import Judge
from runs.models import Metric

# Of logs: an interval of runs that say next to nothing ends somewhere.
WIDEST = 50.0


def cell_values(
    judge: Judge,
    metric: Metric,
    cells: Iterable[int],
    tested: Mapping[int, float] | None = None,
) -> dict[int, CellValue]:
    """By cell what the judge's model says of it; cells of which it says nothing are left out.

    `tested` are the values that rows of a table say of cells: what is drawn is what they say.
    """
    tested = tested or {}
    values: dict[int, CellValue] = {}
    for cell in cells:
        stored, reading = (
            judge.stored.get((cell, metric.pk)),
            judge.reading(cell, metric),
        )
        if stored is None:
            continue
        if reading is None:
            if cell in tested:
                values[cell] = CellValue(
                    tested[cell], runs=stored.values, is_of_slices=bool(stored.slices)
                )
            continue
        log, variance, freedom = reading
        value = tested.get(cell, math.exp(log))
        quantile = -float(sp.special.stdtrit(freedom, SIGNIFICANCE / 2))
        factor = math.exp(min(quantile * math.sqrt(variance), WIDEST))
        values[cell] = CellValue(
            value, value / factor, value * factor, stored.values, bool(stored.slices)
        )
    return values
