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


def question(found: SideVerdict, criteria: Criteria) -> tuple[dict[str, Any], str]:
    """What was asked about the head, for a JSON column, and its fingerprint."""
    known = json.loads(json.dumps(asdict(criteria)))
    return known, fingerprint([found.base.text, known])


def runs_of(found: SideVerdict) -> str:
    """The finished runs of both sides as ranges of their keys, "811-813,820". One query."""
    cells = {cell.pk for side in (found.base, found.head) for cell in side.cells}
    runs = Run.objects.filter(cell__in=cells, state=Run.State.FINISHED).order_by("pk")
    return _ranges(runs.values_list("pk", flat=True))


def _ranges(keys: Iterable[int]) -> str:
    place = count()
    groups = [list(own) for _far, own in groupby(keys, lambda key: key - next(place))]
    return ",".join(f"{own[0]}-{own[-1]}" if len(own) > 1 else f"{own[0]}" for own in groups)


def given(found: SideVerdict, criteria: Criteria) -> list[GateAnswer]:
    """The last answers to this question, the newest first. One query."""
    if found.head.revision is None:
        return []
    _known, fingerprint = question(found, criteria)
    own = GateAnswer.objects.filter(campaign=found.head.campaign, head=found.head.revision)
    return list(own.filter(fingerprint=fingerprint).select_related("head")[:MOST_READ])


def is_as_today(answer: GateAnswer, found: SideVerdict) -> bool:
    """Whether the words of all rows are those of today."""
    return answer.overall == found.overall and _words(answer.table) == _words(gate.as_json(found))


def otherwise(answers: Iterable[GateAnswer], found: SideVerdict, runs: str) -> list[EarlierAnswer]:
    """Those of the answers that differ from today's, which rests on `runs`."""
    differing = [each for each in answers if not is_as_today(each, found)]
    return [_earlier(each, _because(each, runs)) for each in differing[:MOST_SHOWN]]


def of_page(page: ComparedPage) -> list[EarlierAnswer]:
    """What was told of the commits of a page otherwise than it says. One query at most."""
    words: dict[int, set[Verdict]] = defaultdict(set)
    for row in page.rows:
        if row.head_cell.revision is not None:
            words[row.head_cell.revision].add(row.comparison.verdict)
    if not words:
        return []
    own = GateAnswer.objects.filter(head__in=words).select_related("head")[:MOST_READ]
    differing = [each for each in own if overall(words[each.head_id]) != each.overall]
    return [_earlier(each) for each in differing[:MOST_SHOWN]]


def _words(table: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    return sorted(
        (json.dumps(row["levels"], sort_keys=True), row["metric"], row["comparison"]["verdict"])
        for row in table["rows"]
    )


def _because(answer: GateAnswer, runs: str) -> str:
    if answer.runs != runs:
        return "runs"
    return "rules" if answer.rules < RULES else "history"


def _earlier(answer: GateAnswer, because: str = "") -> EarlierAnswer:
    word: Verdict = answer.overall  # type: ignore[assignment]  # as it was stored
    rows = [gate.inference(row["comparison"]) for row in answer.table["rows"]]
    own = [row for row in rows if row.verdict == word]
    return EarlierAnswer(
        answer.given_at,
        str(answer.head),
        answer.base,
        word,
        size_of_all(own) if own else "",
        answer.rules,
        because,
    )
