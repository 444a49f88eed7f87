"""What an ablation says, in the reader's language: pages, API and reports say the same."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.analysis.why.proof import GIVEN, Proof, Ratio, Share

# A share of the difference from here on is nearly all of it.
NEARLY_ALL = 0.5


def percent(share: float) -> str:
    """A share without decimals."""
    return f"{100 * share:.0f} %"


def proof_sentences(proof: Proof) -> Iterator[str]:
    """What an ablation proves of one metric, with all of its arms."""
    if not proof.is_controlled:
        control = {"ratio": interval(proof.control)}
        yield (
            _("No verdict: B again to B was %(ratio)s, and would have to be 1.")
            % control
        )
        return
    if not proof.has_effect:
        yield _(
            "Undecided whether the difference is there again: B to A was %(ratio)s."
        ) % {"ratio": interval(proof.effect)}
        return
    for share_of_suspect in proof.explained:
        words = {"name": share_of_suspect.name, "share": share(share_of_suspect)}
        yield _("Putting %(name)s back explains %(share)s of it.") % words
    if proof.is_joint:
        yield from _jointly(proof)
    elif proof.explained:
        yield from _together(proof)
    else:
        yield from _nothing(proof)
    yield from _given(proof)


def _jointly(proof: Proof) -> Iterator[str]:
    """All together explain it, and none alone."""
    words = {"names": _names(proof.suspects), "share": share(proof.all)}
    yield _("Put back together, %(names)s explain %(share)s of it.") % words
    if all(suspect.answer == "refuted" for suspect in proof.suspects):
        yield _none_alone(proof.suspects)
        if len(proof.suspects) == 2:
            yield _("So each of the two suffices to make the difference.")
    else:
        yield from _alone(proof)


def _together(proof: Proof) -> Iterator[str]:
    """What follows from single shares and that of all."""
    if proof.all is not None and proof.all.share is not None:
        yield _("All that was tried explains %(share)s.") % {"share": share(proof.all)}
    if proof.interacts:
        needed = [suspect for suspect in proof.explained if _is_most(suspect)]
        if len(needed) > 1:
            text = _(
                "Putting back any one of %(names)s takes most of it away: it needs them all."
            )
            yield text % {"names": _names(needed)}
        else:
            yield _(
                "Their single shares do not add up to that of all together: they interact."
            )
    yield from _alone(proof)


def _is_most(suspect: Share) -> bool:
    return suspect.share is not None and suspect.share.low > NEARLY_ALL


def _nothing(proof: Proof) -> Iterator[str]:
    if not proof.suspects:
        yield _("No suspect has enough runs for an answer.")
        return
    if not proof.is_final:
        yield _("Not decided after %(rounds)d rounds.") % {"rounds": proof.rounds}
        return
    if proof.all is not None:
        yield _("Together, all that was tried explains %(share)s: not proven.") % {
            "share": share(proof.all)
        }
    yield from _alone(proof)


def _none_alone(suspects: Sequence[Share]) -> str:
    most = max(suspect.most_seen for suspect in suspects)
    text = ngettext(
        "Alone, %(names)s has no effect above %(most)s.",
        "Alone, none of %(names)s has an effect above %(most)s.",
        len(suspects),
    )
    return text % {"names": _names(suspects), "most": percent(most)}


def _alone(proof: Proof) -> Iterator[str]:
    """Of each that is not proven, how large its effect may be."""
    refuted = [suspect for suspect in proof.suspects if suspect.answer == "refuted"]
    if refuted:
        yield _none_alone(refuted)
    for suspect in proof.suspects:
        words = {"name": suspect.name, "share": share(suspect)}
        if suspect.answer == "undecided":
            yield _("Of %(name)s alone it is undecided: %(share)s.") % words
        elif suspect.answer == "worse":
            yield (
                _("Putting %(name)s back makes the difference larger: %(share)s.")
                % words
            )


def _given(proof: Proof) -> Iterator[str]:
    """What A becomes with what B has of one suspect."""
    for given_share in proof.sufficient:
        words = {
            "name": given_share.name.removeprefix(GIVEN),
            "share": share(given_share),
        }
        yield _("A with only %(name)s of B has %(share)s of the difference.") % words
    refuted = [
        given_share for given_share in proof.given if given_share.answer == "refuted"
    ]
    if refuted and not proof.sufficient:
        names = ", ".join(
            given_share.name.removeprefix(GIVEN) for given_share in refuted
        )
        most = max(given_share.most_seen for given_share in refuted)
        text = ngettext(
            "A with only %(names)s of B differs by at most %(most)s.",
            "A with only one of %(names)s differs by at most %(most)s.",
            len(refuted),
        )
        yield text % {"names": names, "most": percent(most)}


def _names(suspects: Sequence[Share]) -> str:
    return ", ".join(suspect.name for suspect in suspects)


def share(share_of_suspect: Share | None) -> str:
    """The share with its interval: "84 % (71 to 96)"."""
    if share_of_suspect is None or share_of_suspect.share is None:
        return "?"
    low, high = (
        f"{100 * value:.0f}"
        for value in (share_of_suspect.share.low, share_of_suspect.share.high)
    )
    return _say_interval(percent(share_of_suspect.share.value), low, high)


def interval(ratio: Ratio) -> str:
    """A ratio with its interval: "0.98 (0.90 to 1.07)"."""
    return _say_interval(
        *(f"{value:.2f}" for value in (ratio.value, ratio.low, ratio.high))
    )


def _say_interval(share: str, low: str, high: str) -> str:
    return _("%(share)s (%(low)s to %(high)s)") % {
        "share": share,
        "low": low,
        "high": high,
    }


def answer(share_of_suspect: Share) -> str:
    """What an ablation says of a suspect alone."""
    words = {
        "share": share(share_of_suspect),
        "most": percent(share_of_suspect.most_seen),
    }
    texts = {
        "proven": _("explains %(share)s"),
        "refuted": _("alone no effect above %(most)s"),
        "worse": _("makes it larger: %(share)s"),
        "undecided": _("undecided: %(share)s"),
        "open": _("open"),
        "no_verdict": _("no verdict"),
    }
    return texts[share_of_suspect.answer] % words
