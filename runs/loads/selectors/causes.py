"""Which setting puts a slower statement back: what can be tried, and what a trial of it proves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from runs.analysis.why import proof
from runs.analysis.why.proof import Arms, Proof
from runs.campaigns.selectors import ablation_words
from runs.statements.put_back import PutBack


@dataclass(frozen=True)
class FoundTrial:
    """What the runs of a trial found of a statement, on `head` against `base`.

    `slug` is that of its campaign. `put_back` are the settings that are tried, by name.
    """

    slug: str
    statement: int
    base: str
    head: str
    has_ended: bool
    put_back: Mapping[str, str]
    arms: Arms

    @cached_property
    def proof(self) -> Proof | None:
        """None before the end, and where an arm that all are compared with has too few times."""
        if not self.has_ended:
            return None
        return proof.prove_ended(self.arms, list(self.put_back), metrics=1)

    @property
    def sentences(self) -> list[str]:
        """What is being tried, or what it has proven."""
        return list(_say_trial(self))


@dataclass(frozen=True)
class Cause:
    """Of a slower statement: the settings to which its plan points, and the newest trial of them.

    `is_inlined`: a CTE became a part of the query around it.
    """

    settings: tuple[PutBack, ...] = ()
    is_inlined: bool = False
    trial: FoundTrial | None = None

    @property
    def can_be_tried(self) -> bool:
        """Whether there is something to try, and no trial goes on."""
        return bool(self.settings) and (self.trial is None or self.trial.has_ended)

    @property
    def sentences(self) -> list[str]:
        """What puts it back, what could, or that nothing here does."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.is_inlined:
            yield _(
                "Since 12 a CTE is a part of the query around it, and no setting changes that: AS "
                "MATERIALIZED in the statement does."
            )
        if self.trial is not None:
            yield from self.trial.sentences
        elif self.settings:
            yield _(
                "Its plan points to settings whose defaults differ, which were not tried: "
                "%(names)s."
            ) % {"names": ", ".join(map(_say_setting, self.settings))}
        elif not self.is_inlined:
            yield _("Its plan points to no setting whose default differs.")


def _say_setting(setting: PutBack) -> str:
    values = {"name": setting.name, "base": setting.base, "head": setting.head}
    if setting.base is None:
        return _("%(name)s (new, %(head)s)") % values
    return _("%(name)s (%(base)s before, now %(head)s)") % values


def _say_trial(trial: FoundTrial) -> Iterator[str]:
    names = ", ".join(f"{name} = {value}" for name, value in trial.put_back.items())
    if not trial.has_ended:
        yield _("It is being tried with %(names)s.") % {"names": names}
        return
    yield _("Tried with %(names)s on %(head)s (B), against %(base)s (A).") % {
        "names": names,
        "base": trial.base,
        "head": trial.head,
    }
    trial_proof = trial.proof
    if trial_proof is None:
        yield _("No answer: the statement failed, or was executed too rarely.")
        return
    is_known = trial_proof.is_controlled and trial_proof.has_effect
    if is_known and not trial_proof.explained and not trial_proof.is_joint:
        yield _("None of those tried is proven to put it back.")
    yield from ablation_words.proof_sentences(trial_proof)
