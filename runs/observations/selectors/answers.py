"""What an edition says: made once, and printed by its page, the API and its report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.campaigns.selectors import explanations
from runs.campaigns.selectors.explanations import AblationAnswer, Explanation
from runs.models import Campaign, Edition
from runs.observations.selectors import editions
from runs.observations.selectors.editions import Again, Part


@dataclass(frozen=True)
class Cause:
    """What an ablation says of one step between two versions."""

    step: str
    ablation: AblationAnswer

    @property
    def sentence(self) -> str:
        """The step, and all that the ablation says of it."""
        text = " ".join(self.ablation.sentences)
        return _("%(step)s: %(text)s") % {"step": self.step, "text": text}


@dataclass(frozen=True)
class PartAnswer:
    """What one scenario of an edition says, in the language of its reader.

    `total` is the newest version against the oldest; `decided` are the steps with a verdict of a
    difference, `others` the rest. `causes` are what ablations say of steps, `open_questions` the
    proven steps of which none has said why.
    """

    scenario: str
    total: str
    decided: tuple[str, ...]
    others: tuple[str, ...]
    remarks: tuple[str, ...]
    causes: tuple[Cause, ...]
    open_questions: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All but the remarks: of the whole first."""
        total = (self.total,) if self.total else ()
        return (*total, *self.decided, *self.others)


@dataclass(frozen=True)
class EditionAnswer:
    """What an edition says: `against` of another edition, then each scenario by its name."""

    question: str
    against: tuple[str, ...]
    parts: tuple[PartAnswer, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each with what it is of, so that one pair of versions never has two answers."""
        of_parts = [
            _("%(scenario)s: %(text)s") % {"scenario": part.scenario, "text": text}
            for part in self.parts
            for text in (*part.sentences, *part.remarks)
        ]
        return (*self.against, *of_parts)


def answer_edition(edition: Edition, before: Edition | None = None) -> EditionAnswer:
    """The answer of an edition, against `before`, else the last one. Twenty queries a scenario."""
    return answer_parts(
        edition, editions.parts(edition), editions.again(edition, before)
    )


def answer_parts(
    edition: Edition, parts: list[Part], again: list[Again]
) -> EditionAnswer:
    """The same of what was read already."""
    return EditionAnswer(
        question=_(
            "How fast is each version of PostgreSQL on %(server)s, and between which two does it "
            "change?"
        )
        % {"server": edition.observation.server.name},
        against=tuple(
            text for answer in again for text in (answer.sentence, *answer.remarks)
        ),
        parts=tuple(answer_part(part) for part in parts),
    )


def answer_part(part: Part) -> PartAnswer:
    """The answer of one scenario."""
    asked_about = explanations.list_explanations(part.campaign)
    pairs = {(explanation.base.pk, explanation.head.pk) for explanation in asked_about}
    return PartAnswer(
        scenario=str(_(part.campaign.scenario.title)),
        total=part.total,
        decided=tuple(part.decided),
        others=tuple(part.others),
        remarks=tuple(part.remarks),
        causes=tuple(_causes(asked_about)),
        open_questions=tuple(_open(part, pairs))
        if part.campaign.state not in LIVE
        else (),
    )


LIVE = Campaign.LIVE


def _causes(asked_about: Iterable[Explanation]) -> Iterator[Cause]:
    for explanation in asked_about:
        if explanation.answer.sentences:
            step = f"{explanation.base.version} → {explanation.head.version}"
            yield Cause(step, explanation.answer)


def _open(part: Part, asked_about: set[tuple[int, int]]) -> Iterator[str]:
    """The proven steps of which nobody asked why."""
    for pair in part.line.pairs:
        cells = (pair.base.cell, pair.head.cell)
        if pair.comparison.is_proven and cells not in asked_about:
            yield _("Why %(b)s differs from %(a)s") % dict(
                zip("ab", pair.ends, strict=True)
            )
