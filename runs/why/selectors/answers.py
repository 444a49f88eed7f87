"""What an explanation says: made once, and printed by the page, the API, Markdown and reports.

`answer_ablation` is the part that an ablation proves, which reports print without the records of
runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from runs.analysis.why.proof import GIVEN, LEAST_EFFECT, LOOKS, Proof, Share
from runs.analysis.why.suspects import Suspect
from runs.campaigns.selectors import ablation_words
from runs.campaigns.selectors.explanations import AblationAnswer, TriedRow
from runs.models import Ablation
from runs.why.selectors import words
from runs.why.selectors.ablations import Answers
from runs.why.selectors.explanation import Explanation


@dataclass(frozen=True)
class DifferenceRow:
    """Something that differs, and what is known of it.

    `state` is `acts`, `no_sign` or `not_judged`; `word` says it. `signs` point to it, `looked` is
    what was looked at and what was not. `back` says how it is put back; `can_try` whether anything
    here does, `is_proposed` whether an ablation would now.
    """

    key: str
    kind: str
    name: str
    a: str
    b: str
    state: str
    word: str
    signs: str
    looked: str
    back: str
    can_try: bool
    is_proposed: bool


@dataclass(frozen=True)
class WhyAnswer:
    """Why B differs from A, in the language of its reader.

    `sentences` has the difference first, then what an ablation proves, or what can be tried and
    what nobody looked at. `differences` has everything that differs, the most evidence first.
    """

    question: str
    sentences: tuple[str, ...]
    differences: tuple[DifferenceRow, ...]
    ablation: AblationAnswer
    length: str

    @property
    def sentence(self) -> str:
        """All of it in a paragraph."""
        return " ".join(self.sentences)


def answer_explanation(explanation: Explanation) -> WhyAnswer:
    """The answer of the page. No queries."""
    answers = explanation.answers
    ablation = (
        answer_ablation(explanation.ablation, answers)
        if explanation.ablation is not None and answers is not None
        else AblationAnswer()
    )
    return WhyAnswer(
        question=_("Why %(b)s differs from %(a)s")
        % {"a": explanation.labels[0], "b": explanation.labels[1]},
        sentences=tuple(_sentences(explanation, ablation)),
        differences=tuple(
            _row(explanation, suspect) for suspect in explanation.suspects
        ),
        ablation=ablation,
        length=words.length(explanation),
    )


def _sentences(explanation: Explanation, ablation: AblationAnswer) -> Iterator[str]:
    yield from words.differences(explanation)
    yield from words.plans(explanation)
    yield from words.instructions(explanation)
    yield from ablation.sentences
    if explanation.obstacle or explanation.difference is None:
        return
    if explanation.ablation is None:
        yield from words.untried(explanation)
    elif (
        not ablation.is_explained
        and explanation.has_ended
        and any(words.has_verdict(proof) for proof in explanation.proofs)
    ):
        yield _("Not explained by what was tried.")
        yield from words.looked(explanation)


def _row(explanation: Explanation, suspect: Suspect) -> DifferenceRow:
    return DifferenceRow(
        key=suspect.key,
        kind=suspect.kind,
        name=words.suspect_name(suspect),
        a=suspect.a,
        b=suspect.b,
        state=suspect.state,
        word=str(words.STATES[suspect.state]),
        signs=words.signs(suspect),
        looked=words.looked_at(suspect),
        back=words.how_back(suspect, has_setup=explanation.has_setup),
        can_try=suspect.is_candidate,
        is_proposed=suspect.key in explanation.proposed,
    )


def answer_ablation(ablation: Ablation, answers: Answers) -> AblationAnswer:
    """What its proofs say, of time and of processor time. No queries."""
    proofs = _title_proofs(answers)
    names = {
        suspect.key: words.name_in_sentence(suspect)
        for suspect in map(Suspect.from_json, ablation.suspects)
    }
    sentences: list[str] = []
    for title, proof in proofs.items():
        if proof is not None:
            text = " ".join(ablation_words.proof_sentences(_named(proof, names)))
            sentences.append(_("%(title)s: %(text)s") % {"title": title, "text": text})
        elif answers.has_ended and not answers.unchanged:
            text = _("%(title)s: no answer, since an arm has too few runs that count.")
            sentences.append(text % {"title": title})
    return AblationAnswer(
        sentences=(*sentences, *_unchanged(answers, names)),
        rows=tuple(_tried(ablation, answers)),
        notes=(
            *_figures(proofs),
            *_missing(answers),
            *words.not_given([*map(Suspect.from_json, ablation.suspects)]),
        ),
        is_explained=any(
            proof is not None and _is_whole(proof) for proof in proofs.values()
        ),
    )


def _title_proofs(answers: Answers) -> dict[str, Proof | None]:
    return {
        pgettext("per transaction", "Time"): answers.time,
        _("Processor time"): answers.cpu,
    }


def _is_whole(proof: Proof) -> bool:
    """Whether what is proven may be all of the difference."""
    if proof.is_joint and proof.all is not None:
        share = proof.all.share
    elif proof.explained:
        share = (proof.all or proof.explained[0]).share
    else:
        return False
    return share is None or share.high >= 1 - LEAST_EFFECT


def _tried(ablation: Ablation, answers: Answers) -> Iterator[TriedRow]:
    of_time, of_cpu = (_index_shares(proof) for proof in (answers.time, answers.cpu))
    for row in ablation.suspects:
        suspect = Suspect.from_json(row)
        shares = [shares.get(suspect.key) for shares in (of_time, of_cpu)]
        time, cpu = (ablation_words.answer(share) if share else "" for share in shares)
        yield TriedRow(
            name=_tried_name(suspect),
            a=suspect.a,
            b=suspect.b,
            time=time,
            cpu=cpu,
            is_proven=any(
                share is not None and share.answer == "proven" for share in shares
            ),
        )


def _tried_name(suspect: Suspect) -> str:
    if suspect.members:
        return f"{words.suspect_name(suspect)}: {', '.join(suspect.members)}"
    return words.suspect_name(suspect)


def _index_shares(proof: Proof | None) -> dict[str, Share]:
    return {share.name: share for share in proof.suspects} if proof is not None else {}


def _figures(proofs: dict[str, Proof | None]) -> Iterator[str]:
    for title, proof in proofs.items():
        if proof is not None:
            yield _(
                "%(title)s: B to A %(effect)s, control (B again to B) %(control)s, "
                "%(rounds)d rounds"
            ) % {
                "title": title,
                "effect": ablation_words.interval(proof.effect),
                "control": ablation_words.interval(proof.control),
                "rounds": proof.rounds,
            }


def _named(proof: Proof, names: Mapping[str, str]) -> Proof:
    """The proof with the names that a sentence has, in place of keys."""
    given = tuple(
        replace(share, name=f"{GIVEN}{_name_of(share.name.removeprefix(GIVEN), names)}")
        for share in proof.given
    )
    suspects = tuple(
        replace(share, name=_name_of(share.name, names)) for share in proof.suspects
    )
    return replace(proof, suspects=suspects, given=given)


def _name_of(key: str, names: Mapping[str, str]) -> str:
    return names.get(key, key)


def _unchanged(answers: Answers, names: Mapping[str, str]) -> Iterator[str]:
    for key in answers.unchanged:
        yield _(
            "%(name)s was not put back: the records of its runs show it as B has it, so they tell "
            "nothing of it."
        ) % {"name": _name_of(key, names)}


def _missing(answers: Answers) -> Iterator[str]:
    """What has no answer at the end, and why."""
    for title, proof in _title_proofs(answers).items():
        if proof is not None and proof.missing:
            text = ngettext(
                "%(title)s: %(missing)d run of %(rounds)d rounds is missing or invalid.",
                "%(title)s: %(missing)d runs of %(rounds)d rounds are missing or invalid.",
                proof.missing,
            )
            yield text % {
                "title": title,
                "missing": proof.missing,
                "rounds": proof.rounds,
            }
            if answers.has_ended and not proof.explained:
                yield _("Put it back again when nobody else uses the machine.")
    if answers.cpu is not None and answers.time is None and not answers.has_ended:
        yield _(
            "Time: no answer, since runs in which others had the machine count for processor time "
            "only."
        )
    for name, count in answers.lacking.items():
        yield _(
            "%(name)s: no answer, since %(count)d of its runs have ended with a figure; the "
            "campaign says why. The others can be put back without it."
        ) % {
            "name": name,
            "count": count,
        }
    if not answers.has_ended and (answers.time or answers.cpu):
        open_proofs = [
            proof for proof in (answers.time, answers.cpu) if proof is not None
        ]
        if not all(proof.is_final for proof in open_proofs):
            yield _("Up to %(rounds)d rounds follow.") % {"rounds": LOOKS[1]}
