"""What CI jobs were told before: an answer that was given stays, next to what is said today."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count, groupby
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from runs.analysis.inference import RULES, Verdict, overall
from runs.compare.selectors.describe.verdict_words import VERDICTS, size_of_all
from runs.compare.selectors.judge import gate
from runs.compare.selectors.judge.comparisons import ComparedPage
from runs.compare.selectors.judge.exit_codes import exit_code
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.fingerprints import fingerprint
from runs.models import GateAnswer, Run

# What was told longer ago is not shown next to an answer.
MOST_SHOWN, MOST_READ = 3, 20
BECAUSE = {
    "runs": _lazy("Runs were added or withdrawn since."),
    "rules": _lazy("The rules are newer."),
    "history": _lazy("What is known of the history has changed."),
}


@dataclass(frozen=True)
class EarlierAnswer:
    """What a CI job was told about a commit; `because` is the code of why today's word differs."""

    given_at: datetime
    head: str
    base: str
    overall: Verdict
    size: str
    rules: int
    because: str = ""

    @property
    def exit_code(self) -> int:
        """The status that the job ended with."""
        return exit_code(self.overall)

    @property
    def text(self) -> str:
        """The answer in a sentence, and why it is not today's where that is known."""
        words = {
            "at": f"{self.given_at:%Y-%m-%d %H:%M} UTC",
            "head": self.head,
            "base": self.base,
            "verdict": f"{VERDICTS[self.overall]}{f' ({self.size})' if self.size else ''}",
            "rules": self.rules,
        }
        text = _(
            "At %(at)s CI was told of %(head)s against %(base)s: %(verdict)s, by version %(rules)d "
            "of the rules."
        )
        return f"{text % words} {BECAUSE[self.because] if self.because else ''}".strip()


def question(
    side_verdict: SideVerdict, criteria: Criteria
) -> tuple[dict[str, Any], str]:
    """What was asked about the head, for a JSON column, and its fingerprint."""
    criteria_members = json.loads(json.dumps(asdict(criteria)))
    return criteria_members, fingerprint([side_verdict.base.text, criteria_members])


def runs_of(side_verdict: SideVerdict) -> str:
    """The finished runs of both sides as ranges of their keys, "811-813,820". One query."""
    cells = {
        cell.pk
        for side in (side_verdict.base, side_verdict.head)
        for cell in side.cells
    }
    runs = Run.objects.filter(cell__in=cells, state=Run.State.FINISHED).order_by("pk")
    return _ranges(runs.values_list("pk", flat=True))


def _ranges(keys: Iterable[int]) -> str:
    counter = count()
    groups = [
        list(run_group)
        for _far, run_group in groupby(keys, lambda key: key - next(counter))
    ]
    return ",".join(
        f"{run_group[0]}-{run_group[-1]}" if len(run_group) > 1 else f"{run_group[0]}"
        for run_group in groups
    )


def given(side_verdict: SideVerdict, criteria: Criteria) -> list[GateAnswer]:
    """The last answers to this question, the newest first. One query."""
    if side_verdict.head.revision is None:
        return []
    _known, fingerprint = question(side_verdict, criteria)
    gate_answers = GateAnswer.objects.filter(
        campaign=side_verdict.head.campaign, head=side_verdict.head.revision
    )
    return list(
        gate_answers.filter(fingerprint=fingerprint).select_related("head")[:MOST_READ]
    )


def is_as_today(gate_answer: GateAnswer, side_verdict: SideVerdict) -> bool:
    """Whether the words of all rows are those of today."""
    return gate_answer.overall == side_verdict.overall and _words(
        gate_answer.table
    ) == _words(gate.as_json(side_verdict))


def otherwise(
    answers: Iterable[GateAnswer], side_verdict: SideVerdict, runs: str
) -> list[EarlierAnswer]:
    """Those of the answers that differ from today's, which rests on `runs`."""
    differing = [
        gate_answer
        for gate_answer in answers
        if not is_as_today(gate_answer, side_verdict)
    ]
    return [
        _earlier(gate_answer, _because(gate_answer, runs))
        for gate_answer in differing[:MOST_SHOWN]
    ]


def list_earlier_answers(page: ComparedPage) -> list[EarlierAnswer]:
    """What was told of the commits of a page otherwise than it says. One query at most."""
    words: dict[int, set[Verdict]] = defaultdict(set)
    for row in page.rows:
        if row.head_cell.revision is not None:
            words[row.head_cell.revision].add(row.comparison.verdict)
    if not words:
        return []
    gate_answers = GateAnswer.objects.filter(head__in=words).select_related("head")[
        :MOST_READ
    ]
    differing = [
        gate_answer
        for gate_answer in gate_answers
        if overall(words[gate_answer.head_id]) != gate_answer.overall
    ]
    return [_earlier(gate_answer) for gate_answer in differing[:MOST_SHOWN]]


def _words(table: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    return sorted(
        (
            json.dumps(row["levels"], sort_keys=True),
            row["metric"],
            row["comparison"]["verdict"],
        )
        for row in table["rows"]
    )


def _because(gate_answer: GateAnswer, runs: str) -> str:
    if gate_answer.runs != runs:
        return "runs"
    return "rules" if gate_answer.rules < RULES else "history"


def _earlier(gate_answer: GateAnswer, because: str = "") -> EarlierAnswer:
    word: Verdict = gate_answer.overall  # type: ignore[assignment]  # as it was stored
    rows = [gate.inference(row["comparison"]) for row in gate_answer.table["rows"]]
    rows_of_word = [row for row in rows if row.verdict == word]
    return EarlierAnswer(
        gate_answer.given_at,
        str(gate_answer.head),
        gate_answer.base,
        word,
        size_of_all(rows_of_word) if rows_of_word else "",
        gate_answer.rules,
        because,
    )
