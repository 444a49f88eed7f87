"""What an edition says: made once, and printed by its page, the API and its report."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.models import Ablation, Campaign, Edition
from runs.observations.selectors import editions
from runs.observations.selectors.editions import Again, Part
from runs.why.selectors import ablations
from runs.why.selectors import answers as why_answers
from runs.why.selectors.answers import AblationAnswer


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


def of_edition(edition: Edition, before: Edition | None = None) -> EditionAnswer:
    """The answer of an edition, against `before`, else the last one. Twenty queries a scenario."""
    return of_read(edition, editions.parts(edition), editions.again(edition, before))


def of_read(edition: Edition, parts: list[Part], again: list[Again]) -> EditionAnswer:
    """The same of what was read already."""
    return EditionAnswer(
        question=_(
            "How fast is each version of PostgreSQL on %(server)s, and between which two does it "
            "change?"
        )
        % {"server": edition.observation.server.name},
        against=tuple(text for answer in again for text in (answer.sentence, *answer.remarks)),
        parts=tuple(of_part(part) for part in parts),
    )


def of_part(part: Part) -> PartAnswer:
    """The answer of one scenario."""
    tried = ablations.about(part.campaign.pk)
    causes = tuple(cause for ablation in tried for cause in _causes(ablation))
    explained = {(ablation.base_id, ablation.head_id) for ablation in tried}
    return PartAnswer(
        scenario=str(_(part.campaign.scenario.title)),
        total=part.total,
        decided=tuple(part.decided),
        others=tuple(part.others),
        remarks=tuple(part.remarks),
        causes=causes,
        open_questions=tuple(_open(part, explained)) if part.campaign.state not in LIVE else (),
    )


LIVE = Campaign.LIVE


def _causes(ablation: Ablation) -> Iterator[Cause]:
    answer = why_answers.of_ablation(ablation, ablations.answers(ablation))
    if answer.sentences:
        step = f"{ablation.base.version} → {ablation.head.version}"
        yield Cause(step, answer)


def _open(part: Part, explained: set[tuple[int, int]]) -> Iterator[str]:
    """The proven steps that no ablation was asked about."""
    for pair in part.line.pairs:
        cells = (pair.base.cell, pair.head.cell)
        if pair.comparison.is_proven and cells not in explained:
            yield _("Why %(b)s differs from %(a)s") % dict(zip("ab", pair.ends, strict=True))
