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
    for share_of_suspect in proof.explained:
        words = {"name": share_of_suspect.name, "share": share(share_of_suspect)}
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
    least_seen = max((share.least_seen for share in proof.suspects), default=0.0)
    return _(
        "Nothing that was tried explains it: a change of more than %(seen)s would have been seen. "
        "What stays is the code or the build."
    ) % {"seen": percent(least_seen)}


def share(share_of_suspect: Share) -> str:
    """The share with its interval: "84 % (71 to 96)"."""
    if share_of_suspect.share is None:
        return "?"
    low, high = (
        f"{100 * value:.0f}" for value in (share_of_suspect.share.low, share_of_suspect.share.high)
    )
    return _between(percent(share_of_suspect.share.value), low, high)


def interval(ratio: Ratio) -> str:
    """A ratio with its interval: "0.98 (0.90 to 1.07)"."""
    return _between(*(f"{value:.2f}" for value in (ratio.value, ratio.low, ratio.high)))


def _between(share: str, low: str, high: str) -> str:
    return _("%(share)s (%(low)s to %(high)s)") % {"share": share, "low": low, "high": high}


def answer(share_of_suspect: Share) -> str:
    """What an ablation says of a suspect."""
    if share_of_suspect.answer == "proven":
        return _("explains %(share)s") % {"share": share(share_of_suspect)}
    if share_of_suspect.answer == "refuted":
        seen_text = {"seen": percent(share_of_suspect.least_seen)}
        return _("refuted: more than %(seen)s would have been seen") % seen_text
    return _("open") if share_of_suspect.answer == "open" else _("no verdict")
