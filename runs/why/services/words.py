"""What an explanation says, in the reader's language: page, API and Markdown say the same."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis.why.parts import Difference, Estimate
from runs.analysis.why.proof import LOOKS, Proof
from runs.analysis.why.suspects import Suspect
from runs.shared.formats import duration
from runs.why.selectors.ablation_words import percent, proof_sentences
from runs.why.services.explanations import Explanation
from runs.why.services.recorded import Recorded

OBSTACLES = {
    "same_cell": gettext_lazy("This is one cell, and no difference."),
    "published": gettext_lazy("Nobody recorded where the time of a published figure went."),
    "uploaded": gettext_lazy("Nobody recorded where the time of an uploaded run went."),
    "other_load": gettext_lazy("The load differs: %(b)s against %(a)s."),
    "other_machine": gettext_lazy(
        "The two were measured on other machines: no ablation can take that back."
    ),
    "no_evidence": gettext_lazy(
        "These runs kept no record of where their time went; measure them again to explain them."
    ),
}
PARTS = {
    "server": gettext_lazy("server on a processor"),
    "server_queue": gettext_lazy("server waiting for a processor"),
    "client": gettext_lazy("client on a processor"),
    "client_queue": gettext_lazy("client waiting for a processor"),
    "blocked": gettext_lazy("blocked"),
}
# What the server does at the same time, which is no part of the time of a transaction.
BESIDE = {
    "workers": gettext_lazy("beside: parallel workers"),
    "others": gettext_lazy("beside: other processes of the server"),
    "overlap": gettext_lazy("beside: client while the server works"),
}
# By whether processor time is compared, and whether it is less.
OF_ROUNDS = {
    (True, True): gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s less "
        "processor time per transaction than %(a)s."
    ),
    (True, False): gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s more "
        "processor time per transaction than %(a)s."
    ),
    (False, True): gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s less time "
        "per transaction than %(a)s."
    ),
    (False, False): gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s more time "
        "per transaction than %(a)s."
    ),
}
LIMITS = {
    "no_usage": gettext_lazy("The load was too short to know who used the processors."),
    "no_queue": gettext_lazy(
        "The kernel of the server counts no run queue: waiting for a processor is in “blocked”."
    ),
    "backends_unseen": gettext_lazy(
        "Sessions were sampled too seldom: waiting for a processor is in “blocked”."
    ),
    "reconnects": gettext_lazy(
        "Each transaction has a connection of its own, which lives shorter than the sampling: "
        "waiting for a processor is in “blocked”."
    ),
    "paced": gettext_lazy("The load has a rate: “blocked” has the pauses between transactions."),
    "pooler": gettext_lazy("A pooler stands between: its time is in “blocked”."),
    "client_elsewhere": gettext_lazy(
        "The load came from another machine: the client and the network are in “blocked”."
    ),
    "threads_shared": gettext_lazy(
        "A thread of the load serves several clients: waiting for it is in “blocked”."
    ),
    "overlap": gettext_lazy(
        "For a moment client and server work at the same time: that counts for the server alone."
    ),
    "parallel": gettext_lazy(
        "Parallel workers work beside the session that is timed: they are shown apart."
    ),
}
REASONS = {
    "plans_same": gettext_lazy("cannot act: the plans are the same on both sides"),
    "no_jit": gettext_lazy("cannot act: the server was built without LLVM"),
    "jit_not_used": gettext_lazy("cannot act: no plan uses JIT"),
    "not_prepared": gettext_lazy("cannot act: statements are not prepared"),
    "nothing_written": gettext_lazy("cannot act: the load writes nothing"),
    "no_checkpoint": gettext_lazy("cannot act: no checkpoint fell into the load"),
    "no_vacuum": gettext_lazy("cannot act: no autovacuum fell into the load"),
    "nothing_read": gettext_lazy("cannot act: the load reads nothing from disk"),
    "no_memory_used": gettext_lazy("cannot act: no plan sorts or hashes"),
    "not_in_load": gettext_lazy("does not act while a load is measured"),
    "part_not_moved": gettext_lazy("the part of the time that it can change did not move"),
    "rank": gettext_lazy("untried: others come first"),
}
KINDS = {
    "plan": gettext_lazy("Query plan"),
    "index": gettext_lazy("Indexes"),
    "bloat": gettext_lazy("Size of a relation"),
    "checksums": gettext_lazy("Page checksums"),
    "build": gettext_lazy("Build"),
    "vacuum": gettext_lazy("Autovacuum in the load"),
    "checkpoints": gettext_lazy("Checkpoints in the load"),
}
EVIDENCE = {
    "parallel_differs": gettext_lazy("one plan is parallel"),
    "jit_used": gettext_lazy("a plan uses JIT"),
    "plans_differ": gettext_lazy("the plans differ"),
    "counters_moved": gettext_lazy("counters of it moved"),
    "relations_differ": gettext_lazy("the relations differ"),
}


def amount(seconds: float) -> str:
    """A time per transaction without its sign: "0.31 ms", "12 µs"."""
    size = abs(seconds)
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size * 1e6:.3g} µs"


def signed(seconds: float) -> str:
    """A difference per transaction: "+0.31 ms"."""
    return f"{'-' if seconds < 0 else '+'}{amount(seconds)}"


def interval(estimate: Estimate) -> str:
    """Its bounds; empty without any."""
    bounds = (estimate.low, estimate.high)
    return " … ".join(signed(bound) for bound in bounds if bound is not None)


def sentence(explanation: Explanation) -> str:
    """The answer: the difference, its parts, and what is proven."""
    return " ".join(_sentences(explanation))


def _sentences(explanation: Explanation) -> Iterator[str]:
    if explanation.obstacle:
        yield str(OBSTACLES[explanation.obstacle]) % dict(
            zip("ab", explanation.labels, strict=True)
        )
    difference = explanation.difference
    if difference is not None:
        if difference.is_crowded:
            share = max(difference.a.queue_share, difference.b.queue_share)
            yield _(
                "The machine was not this experiment's alone: %(share)s of the time was spent "
                "waiting for a processor, so processor time is compared."
            ) % {"share": percent(share)}
        yield _difference(explanation, difference)
        if difference.rounds < 2:
            yield _("That is of one run a side, and may be chance.")
    yield from _instructions(explanation.labels[1], explanation.recorded)
    if explanation.proof is not None:
        yield from proof_sentences(explanation.proof)
    elif explanation.ablation is None and not explanation.obstacle and _is_sure(difference):
        yield _untried(explanation)


def _instructions(b: str, recorded: Recorded) -> Iterator[str]:
    if (counted := recorded.instructions) is None:
        return
    share = counted.b / counted.a - 1
    words = {"b": b, "change": f"{abs(100 * share):.1f} %"}
    if share < 0:
        yield _("%(b)s executes %(change)s fewer instructions per transaction.") % words
    else:
        yield _("%(b)s executes %(change)s more instructions per transaction.") % words
    if (read := recorded.reading) is not None:
        yield _("If it has to read its pages: %(change)s.") % {
            "change": f"{100 * (read.b / read.a - 1):+.1f} %"
        }


def _is_sure(difference: Difference | None) -> bool:
    return difference is not None and (difference.rounds < 2 or _whole(difference).is_apart)


def _whole(difference: Difference) -> Estimate:
    """What is compared: the time, or processor time where the machine was not free."""
    is_of_cpu = difference.is_crowded and difference.cpu is not None
    return difference.cpu if is_of_cpu and difference.cpu else difference.seconds


def _difference(explanation: Explanation, difference: Difference) -> str:
    is_of_cpu = difference.is_crowded and difference.cpu is not None
    whole_difference = _whole(difference)
    names = {
        "a": explanation.labels[0],
        "b": explanation.labels[1],
        "amount": amount(whole_difference.value),
    }
    if difference.rounds >= 2 and not whole_difference.is_apart:
        if (
            explanation.proof is not None
            and explanation.proof.is_controlled
            and explanation.proof.has_effect
        ):
            return _of_ablation(explanation, explanation.proof)
        return _("It is not sure that %(b)s and %(a)s differ.") % names
    if is_of_cpu and whole_difference.value < 0:
        return _("%(b)s needs %(amount)s less processor time per transaction than %(a)s.") % names
    if is_of_cpu:
        return _("%(b)s needs %(amount)s more processor time per transaction than %(a)s.") % names
    moved = "".join(
        _(", %(part)s") % {"part": _part(name, difference.by_part[name])}
        for name in difference.moved
    ).lstrip(_(", %(part)s") % {"part": ""})
    if whole_difference.value < 0:
        sentence = _("%(b)s needs %(amount)s less per transaction than %(a)s") % names
    else:
        sentence = _("%(b)s needs %(amount)s more per transaction than %(a)s") % names
    return (
        _("%(difference)s: %(parts)s.") % {"difference": sentence, "parts": moved}
        if moved
        else _("%(difference)s.") % {"difference": sentence}
    )


def _of_ablation(explanation: Explanation, proof: Proof) -> str:
    """The difference as its rounds have it, where the runs before were too few to be sure."""
    least, most = sorted(
        abs(ratio_bound - 1) for ratio_bound in (proof.effect.low, proof.effect.high)
    )
    words = {
        "a": explanation.labels[0],
        "b": explanation.labels[1],
        "rounds": proof.rounds,
        "least": f"{100 * least:.1f}",
        "most": f"{100 * most:.1f} %",
    }
    return str(OF_ROUNDS[explanation.is_of_cpu, proof.effect.value < 1]) % words


def _part(name: str, estimate: Estimate) -> str:
    words = {"amount": amount(estimate.value), "part": PARTS[name]}
    if estimate.value < 0:
        return _("%(amount)s less %(part)s") % words
    return _("%(amount)s more %(part)s") % words


def _untried(explanation: Explanation) -> str:
    number = len(explanation.candidates)
    if not number:
        return _("Nothing that differs can be put back: what stays is the code or the build.")
    return ngettext(
        "%(number)d suspect can be tried.", "%(number)d suspects can be tried.", number
    ) % {"number": number}


def suspect_name(suspect: Suspect) -> str:
    """A setting by its name, and other suspects in words."""
    if suspect.kind == "setting":
        return suspect.name
    kind = str(KINDS[suspect.kind])
    return f"{kind}: {suspect.name}" if suspect.name else kind


def reason(suspect: Suspect) -> str:
    """Why it is left out: it cannot act, or no setting puts it back."""
    if suspect.reason:
        return str(REASONS[suspect.reason])
    return "" if suspect.put_back else _("no setting puts it back")


def shows(suspect: Suspect, labels: Sequence[str]) -> str:
    """The sentence what would show it."""
    if not suspect.is_candidate:
        return ""
    values = ", ".join(f"{name} = {value}" for name, value in suspect.put_back.items())
    words = {"a": labels[0], "b": labels[1], "values": values}
    return _("%(b)s with %(values)s should be as %(a)s.") % words


def length(explanation: Explanation) -> str:
    """How long an ablation takes."""
    if explanation.length is None:
        return ""
    first_look, second = (duration(seconds) for seconds in explanation.length.seconds)
    return _("%(arms)d arms, %(rounds)d rounds: %(first)s; %(second)s if those do not decide") % {
        "arms": explanation.length.arms,
        "rounds": LOOKS[0],
        "first": first_look,
        "second": second,
    }
