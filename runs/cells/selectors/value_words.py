"""The runs behind the value of a cell, in words: the same beside each value that is compared."""

from django.utils.translation import gettext as _

from runs.analysis.inference.cells import CellValue
from runs.analysis.summary import Summary
from runs.shared.formats import quantity, repeats


def runs_of(summary: Summary, value: CellValue | None) -> str:
    """From the least run to the greatest, and how many: "602.8 - 725.3 · n = 3".

    A value that is not one of theirs says what it is: of slices only the rounds that count are
    compared, and a model allows for rounds that lack a run. It may then lie beside all runs.
    """
    ends = [quantity(summary.minimum)]
    if summary.minimum < summary.maximum:
        ends.append(quantity(summary.maximum))
    runs = " · ".join([" \N{EN DASH} ".join(ends), repeats(summary.n)])
    if value is not None and value.is_of_slices:
        return _("mean of the slices that count; whole runs %(runs)s") % {"runs": runs}
    if len(ends) == 1:
        return repeats(summary.n)
    if value is None or summary.minimum <= value.value <= summary.maximum:
        return runs
    return _("by the model, which allows for the rounds; runs %(runs)s") % {
        "runs": runs
    }
