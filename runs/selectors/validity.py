"""Valid, doubtful, invalid, unknown: what certificates say of the runs behind a figure, in words.

Every page, list, chart, export, report and API has its judgements from here.
"""

from collections.abc import Collection

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs import queries
from runs.analysis.validity import Judged
from runs.models import Run
from runs.models.campaigns import Origin
from runs.models.runs import SUMMARY_REPEAT

LABELS = {
    "valid": _("valid"),
    "doubtful": _("doubtful"),
    "invalid": _("invalid"),
    "unknown": _("unknown"),
    "": "",
}
TONES = {"valid": "success", "doubtful": "warning", "invalid": "error", "unknown": "info", "": ""}

# Of the rows of runs_run, those that have a result of their own or are left out for being invalid.
# A printed summary of printed repeats is not a run.
_S, _V = Run.State, Run.Validity
_HAS_RESULT = f"(state = '{_S.FINISHED.value}' AND repeat <> {SUMMARY_REPEAT})"
_LEFT_OUT = f"(state = '{_S.WITHDRAWN.value}' AND code = '{_V.INVALID.value}')"
COUNTED = f"(state = '{_S.FINISHED.value}' OR {_LEFT_OUT})"
COUNTS = f"""
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = '{_V.VALID.value}'),
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = '{_V.DOUBTFUL.value}'),
    count(*) FILTER (WHERE ({_HAS_RESULT} OR {_LEFT_OUT}) AND validity = '{_V.INVALID.value}'),
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = ''),
    count(*) FILTER (WHERE {_LEFT_OUT}),
    count(*) FILTER (WHERE {_LEFT_OUT} AND EXISTS (
        SELECT FROM runs_run AS again WHERE again.again_of_id = runs_run.id)),
    count(*) FILTER (WHERE origin = '{Origin.EXECUTED.value}')
"""


def of_cells(cell_ids: Collection[int]) -> dict[int, Judged]:
    """What is said of the runs of each cell that has any with a result. One query."""
    statement = (
        f"SELECT cell_id, {COUNTS} FROM runs_run"  # noqa: S608 - of constants
        f" WHERE cell_id = ANY(%s) AND {COUNTED} GROUP BY 1"
    )
    found = queries.rows(statement, [list(cell_ids)], of=Run)
    return {cell: Judged(*counts) for cell, *counts in found}


def counted(judged: Judged) -> str:
    """How many runs are not valid, by their judgements; empty where none needs a mark."""
    if not judged.has_doubts:
        return ""
    in_use = judged.invalid - judged.left_out
    parts = (
        (judged.doubtful, gettext("%(n)d doubtful")),
        (judged.left_out, gettext("%(n)d invalid, left out")),
        (in_use, gettext("%(n)d invalid, counted by decision")),
        (judged.unknown if judged.ours else 0, gettext("%(n)d unknown")),
    )
    return ", ".join(words % {"n": number} for number, words in parts if number)


def mark(judged: Judged) -> str:
    """The mark beside a figure: ⚠ 1 doubtful, 2 invalid, left out. Empty where none is needed."""
    words = counted(judged)
    return f"\N{WARNING SIGN} {words}" if words else ""
