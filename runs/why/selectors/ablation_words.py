"""What an ablation says, in the reader's language: pages, API and reports say the same."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.analysis.why.proof import Proof, Ratio, Share


def percent(share: float) -> str:
    """A share without decimals."""
    return f"{100 * share:.0f} %"


def proof_sentences(proof: Proof) -> Iterator[str]:
    """What an ablation proves."""
    if not proof.is_controlled:
        control = {"ratio": interval(proof.control)}
        yield _("No verdict: B again to B was %(ratio)s, and would have to be 1.") % control
        return
    if not proof.has_effect:
        yield _("The ablation did not find the difference again: B to A was %(ratio)s.") % {
            "ratio": interval(proof.effect)
        }
        return
    for each in proof.explained:
        words = {"name": each.name, "share": share(each)}
        yield _("Putting %(name)s back explains %(share)s of it.") % words
    if proof.interacts:
        yield _("Suspects interact: their single shares do not add up to that of all together.")
    if proof.explained and proof.all is not None and proof.all.share is not None:
        yield _("All that was tried explains %(share)s.") % {"share": share(proof.all)}
    if not proof.explained:
        yield _nothing(proof)


def _nothing(proof: Proof) -> str:
    if not proof.is_final:
        return _("The first six rounds did not decide; six more follow.")
    seen = max((each.least_seen for each in proof.suspects), default=0.0)
    return _(
        "Nothing that was tried explains it: a change of more than %(seen)s would have been seen. "
        "What stays is the code or the build."
    ) % {"seen": percent(seen)}


def share(each: Share) -> str:
    """The share with its interval: "84 % (71 to 96)"."""
    if each.share is None:
        return "?"
    low, high = (f"{100 * value:.0f}" for value in (each.share.low, each.share.high))
    return _between(percent(each.share.value), low, high)


def interval(ratio: Ratio) -> str:
    """A ratio with its interval: "0.98 (0.90 to 1.07)"."""
    return _between(*(f"{value:.2f}" for value in (ratio.value, ratio.low, ratio.high)))


def _between(share: str, low: str, high: str) -> str:
    return _("%(share)s (%(low)s to %(high)s)") % {"share": share, "low": low, "high": high}


def answer(each: Share) -> str:
    """What an ablation says of a suspect."""
    if each.answer == "proven":
        return _("explains %(share)s") % {"share": share(each)}
    if each.answer == "refuted":
        seen = {"seen": percent(each.least_seen)}
        return _("refuted: more than %(seen)s would have been seen") % seen
    return _("open") if each.answer == "open" else _("no verdict")
