"""What an explanation says, in the reader's language: page, API and Markdown say the same."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis.inference import Inference
from runs.analysis.why.parts import Difference, Estimate
from runs.analysis.why.plan_reads import PlanRead
from runs.analysis.why.proof import LOOKS, Proof
from runs.analysis.why.suspects import MOST_GIVEN, Suspect
from runs.campaigns.selectors.ablation_words import percent
from runs.shared.formats import duration, quantity
from runs.why.selectors.explanation import Explanation

# Of a difference; the page lists all counters below.
MOST_SIGNS = 3
# Machines change more slowly than that.
MOST_DAYS_APART = 1
OBSTACLES = {
    "same_cell": gettext_lazy("This is one cell, and no difference."),
    "published": gettext_lazy(
        "Nobody recorded where the time of a published figure went."
    ),
    "uploaded": gettext_lazy("Nobody recorded where the time of an uploaded run went."),
    "other_load": gettext_lazy("The load differs: %(b)s against %(a)s."),
    "other_machine": gettext_lazy(
        "The two were measured on other machines: no ablation can take that back."
    ),
    "no_evidence": gettext_lazy(
        "No record is left of where the time of %(silent)s went; measure it again to explain it."
    ),
    "no_runs": gettext_lazy(
        "No run of %(silent)s has ended with a figure: its campaign says why."
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
# Beyond this ratio a percentage is hard to read.
MOST_IN_PERCENT = 5.0
OF_ROUNDS_IN_TIMES = {
    True: gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s times the "
        "processor time per transaction of %(a)s."
    ),
    False: gettext_lazy(
        "In the %(rounds)d rounds of the ablation %(b)s needs %(least)s to %(most)s times the time "
        "per transaction of %(a)s."
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
    "paced": gettext_lazy(
        "The load has a rate: “blocked” has the pauses between transactions."
    ),
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
STATES = {
    "acts": gettext_lazy("signs of it"),
    "no_sign": gettext_lazy("no sign of it"),
    "not_judged": gettext_lazy("not judged"),
}
# Every kind of difference that is looked for.
KINDS = {
    "setting": gettext_lazy("Setting"),
    "group": gettext_lazy("Half"),
    "plan": gettext_lazy("Query plan"),
    "index": gettext_lazy("Index"),
    "relation": gettext_lazy("Table"),
    "column": gettext_lazy("Column"),
    "constraint": gettext_lazy("Constraint"),
    "trigger": gettext_lazy("Trigger"),
    "function": gettext_lazy("Function"),
    "sequence": gettext_lazy("Sequence"),
    "statistics": gettext_lazy("Extended statistics"),
    "freshness": gettext_lazy("State of the statistics"),
    "extension": gettext_lazy("Extension"),
    "database": gettext_lazy("Database"),
    "default": gettext_lazy("Setting of a role or a database"),
    "view": gettext_lazy("View"),
    "policy": gettext_lazy("Policy"),
    "partition": gettext_lazy("Partition or inheritance"),
    "generated": gettext_lazy("Generated column"),
    "domain": gettext_lazy("Constraint of a domain"),
    "identity": gettext_lazy("Replica identity"),
    "publication": gettext_lazy("Publication of tables"),
    "slot": gettext_lazy("Replication slot"),
    "prepared": gettext_lazy("Prepared transaction"),
    "distribution": gettext_lazy("How values lie"),
    "bloat": gettext_lazy("Size of a relation"),
    "rows": gettext_lazy("Number of rows"),
    "checksums": gettext_lazy("Page checksums"),
    "setup": gettext_lazy("Set-up of the data"),
    "initdb": gettext_lazy("Options of initdb"),
    "treatment": gettext_lazy("Treatment"),
    "client": gettext_lazy("Client"),
    "machine": gettext_lazy("Machine"),
    "build": gettext_lazy("Build"),
    "vacuum": gettext_lazy("Autovacuum in the load"),
    "checkpoints": gettext_lazy("Checkpoints in the load"),
}
# Kinds that are recorded by name; the others are read from counters, sizes and plans.
RECORDED_KINDS = (
    "setting",
    "relation",
    "index",
    "column",
    "constraint",
    "trigger",
    "function",
    "sequence",
    "statistics",
    "freshness",
    "extension",
    "database",
    "default",
    "view",
    "policy",
    "partition",
    "generated",
    "domain",
    "identity",
    "publication",
    "slot",
    "prepared",
    "distribution",
    "setup",
    "initdb",
    "treatment",
    "client",
    "machine",
    "build",
)
EVIDENCE = {
    "parallel_differs": gettext_lazy("one plan is parallel"),
    "jit_used": gettext_lazy("a plan uses JIT"),
    "plans_differ": gettext_lazy("the plans differ"),
    "relations_differ": gettext_lazy("the relations differ"),
    "blocked_moved": gettext_lazy("the time that is blocked moved"),
}
# Why plans are missing, by its code.
PLANS_MISSING = {
    "": gettext_lazy("these runs recorded none"),
    "elsewhere": gettext_lazy("the load came from another machine, or by another way"),
    "unknown_statements": gettext_lazy("the statements of the load could not be read"),
    "refused": gettext_lazy("the server explained none of the statements"),
}
# What nobody looked at, by its code; a counter is its own name.
UNSEEN = {
    "plans": gettext_lazy("the plans, which are not known"),
    "rounds": gettext_lazy("counters, since a side has one run"),
    "functions": gettext_lazy("the plans of statements within functions"),
    "conditions": gettext_lazy("conditions and costs within a plan"),
    "in_memory": gettext_lazy("how much memory a plan uses"),
    "device": gettext_lazy("what the disk does"),
    "short_run": gettext_lazy("what takes longer than a run"),
    "catalogues": gettext_lazy("the system catalogues"),
    "system_cache": gettext_lazy("the file cache of the system"),
    "log_elsewhere": gettext_lazy("logs that are not the server's own file"),
    "inlined": gettext_lazy("functions that are inlined or not counted"),
    "hint_bits": gettext_lazy("pages that were written for their hint bits"),
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


def differences(explanation: Explanation) -> Iterator[str]:
    """How the sides differ: what moved beyond the queue first, then doubts, then processor time."""
    if explanation.obstacle:
        yield str(OBSTACLES[explanation.obstacle]) % _labels(explanation)
    difference = explanation.difference
    if difference is None:
        return
    if explanation.days_apart > MOST_DAYS_APART:
        text = _(
            "%(number)d days lie between their runs, and what changed on the machine meanwhile is "
            "in the difference; an ablation measures both again."
        )
        yield text % {"number": explanation.days_apart}
    proof = explanation.proofs[0] if explanation.proofs else None
    if proof is not None and not _is_sure(difference) and has_verdict(proof):
        yield _say_ablation(explanation, proof)
    elif explanation.in_turn is not None and not _agrees(
        explanation.in_turn, difference
    ):
        yield _say_slices(explanation, explanation.in_turn)
    else:
        yield from _say_time(explanation, difference)
    if difference.is_crowded:
        yield _say_queues(explanation, difference)
    if difference.cpu is not None and (
        difference.is_crowded or not _is_sure(difference)
    ):
        yield _say_cpu(explanation, difference.cpu)
    if difference.rounds < 2:
        yield _("That is of one run a side, and may be chance.")


def _say_queues(explanation: Explanation, difference: Difference) -> str:
    """How long each side waited for a processor, as far as that is known."""
    known = [
        (label, percent(share))
        for label, share in zip(explanation.labels, difference.queues, strict=True)
        if share is not None
    ]
    if not known:
        return _(
            "The load waited for a processor: the machine was not this experiment's alone."
        )
    if len(known) == 1:
        ((label, share),) = known
        words = {"share": share, "label": label}
        return (
            _(
                "Waiting for a processor took %(share)s of the time of %(label)s, and of the other "
                "it is not known: the machine was not this experiment's alone."
            )
            % words
        )
    (label_a, a), (label_b, b) = known
    return _(
        "Waiting for a processor took %(a)s of the time of %(label_a)s and %(b)s of that of "
        "%(label_b)s: the machine was not this experiment's alone."
    ) % {"a": a, "b": b, "label_a": label_a, "label_b": label_b}


def _labels(explanation: Explanation) -> dict[str, object]:
    return {
        "a": explanation.labels[0],
        "b": explanation.labels[1],
        "silent": ", ".join(explanation.silent),
    }


def has_verdict(proof: Proof) -> bool:
    """Whether it has found the difference again, and B like B."""
    return proof.is_controlled and proof.has_effect


def _is_sure(difference: Difference) -> bool:
    """Whether the time differs, also that without the queue on a crowded machine."""
    if difference.rounds < 2:
        return True
    is_without = difference.is_crowded and difference.unqueued.is_apart
    return difference.seconds.is_apart or is_without


def _agrees(in_turn: Inference, difference: Difference) -> bool:
    """Whether the runs are sure of what their slices have decided."""
    is_more = (in_turn.ratio or 1.0) > 1
    return (
        in_turn.is_proven
        and difference.seconds.is_apart
        and (difference.seconds.value > 0) == is_more
    )


def _say_slices(explanation: Explanation, in_turn: Inference) -> str:
    """The difference as the campaign has it, whose slices took turns."""
    least, most = ((bound or 1.0) - 1 for bound in (in_turn.low, in_turn.high))
    words = _labels(explanation)
    if not in_turn.is_proven:
        words |= {"least": f"{100 * least:+.1f}", "most": f"{100 * most:+.1f} %"}
        if in_turn.verdict == "same":
            return (
                _(
                    "By their slices the time per transaction is the same: %(b)s to %(a)s "
                    "%(least)s to %(most)s."
                )
                % words
            )
        return (
            _("Undecided by their slices: %(b)s to %(a)s %(least)s to %(most)s time.")
            % words
        )
    smaller, larger = sorted((abs(least), abs(most)))
    words |= {"least": f"{100 * smaller:.1f}", "most": f"{100 * larger:.1f} %"}
    if least < 0:
        return (
            _(
                "By their slices %(b)s needs %(least)s to %(most)s less time per transaction "
                "than %(a)s."
            )
            % words
        )
    return (
        _(
            "By their slices %(b)s needs %(least)s to %(most)s more time per transaction "
            "than %(a)s."
        )
        % words
    )


def _say_time(explanation: Explanation, difference: Difference) -> Iterator[str]:
    labels = _labels(explanation)
    if not _is_sure(difference):
        yield _(
            "Undecided: %(b)s needs %(least)s to %(most)s per transaction against %(a)s."
        ) % (labels | _bounds(difference.seconds))
        return
    whole_difference = difference.seconds
    is_whole = difference.rounds < 2 or whole_difference.is_apart
    if not is_whole:
        whole_difference = difference.unqueued
    words = labels | {"amount": amount(whole_difference.value)}
    if is_whole:
        less = _("%(b)s needs %(amount)s less per transaction than %(a)s")
        more = _("%(b)s needs %(amount)s more per transaction than %(a)s")
    else:
        less = _(
            "Without the time in the queue %(b)s needs %(amount)s less per transaction than %(a)s"
        )
        more = _(
            "Without the time in the queue %(b)s needs %(amount)s more per transaction than %(a)s"
        )
    sentence = (less if whole_difference.value < 0 else more) % words
    moved = "".join(
        _(", %(part)s") % {"part": _part(name, difference.by_part[name])}
        for name in difference.moved
    ).lstrip(_(", %(part)s") % {"part": ""})
    if moved:
        yield _("%(difference)s: %(parts)s.") % {"difference": sentence, "parts": moved}
    else:
        yield _("%(difference)s.") % {"difference": sentence}
    yield from _waiting(explanation, difference, whole_difference)


def _waiting(
    explanation: Explanation, difference: Difference, whole: Estimate
) -> Iterator[str]:
    """How much of the difference is waiting, where it is most of it, and for what."""
    blocked = difference.by_part.get("blocked")
    if blocked is None or "blocked" not in difference.moved:
        return
    if blocked.value * whole.value <= 0 or abs(blocked.value) < abs(whole.value) / 2:
        return
    words: dict[str, object] = {
        "part": amount(blocked.value),
        "whole": amount(whole.value),
    }
    slept = [event for event in explanation.recorded.waits if event.difference.is_apart]
    if slept:
        words["event"] = f"{slept[0].type}: {slept[0].event}"
        yield _("%(part)s of %(whole)s are waiting, most of it for %(event)s.") % words
    else:
        yield _("%(part)s of %(whole)s are waiting.") % words


def _bounds(estimate: Estimate) -> dict[str, object]:
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {"least": signed(low), "most": signed(high)}


def _say_cpu(explanation: Explanation, cpu: Estimate) -> str:
    words = _labels(explanation) | {"amount": amount(cpu.value)} | _bounds(cpu)
    if cpu.low is not None and not cpu.is_apart:
        return (
            _("Undecided of processor time: %(least)s to %(most)s per transaction.")
            % words
        )
    if cpu.value < 0:
        return (
            _("%(b)s needs %(amount)s less processor time per transaction than %(a)s.")
            % words
        )
    return (
        _("%(b)s needs %(amount)s more processor time per transaction than %(a)s.")
        % words
    )


def instructions(explanation: Explanation) -> Iterator[str]:
    """What was counted of instructions."""
    if (counted := explanation.recorded.instructions) is None:
        return
    share = counted.b / counted.a - 1
    words = {"b": explanation.labels[1], "change": f"{abs(100 * share):.1f} %"}
    if share < 0:
        yield _("%(b)s executes %(change)s fewer instructions per transaction.") % words
    else:
        yield _("%(b)s executes %(change)s more instructions per transaction.") % words
    if (read := explanation.recorded.reading) is not None:
        yield _("If it has to read its pages: %(change)s.") % {
            "change": f"{100 * (read.b / read.a - 1):+.1f} %"
        }


def _say_ablation(explanation: Explanation, proof: Proof) -> str:
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
    is_of_cpu = explanation.answers is not None and explanation.answers.time is None
    if proof.effect.value > MOST_IN_PERCENT:
        times = {"least": f"{proof.effect.low:.3g}", "most": f"{proof.effect.high:.3g}"}
        return str(OF_ROUNDS_IN_TIMES[is_of_cpu]) % (words | times)
    return str(OF_ROUNDS[is_of_cpu, proof.effect.value < 1]) % words


def _part(name: str, estimate: Estimate) -> str:
    words = {"amount": amount(estimate.value), "part": PARTS[name]}
    if estimate.value < 0:
        return _("%(amount)s less %(part)s") % words
    return _("%(amount)s more %(part)s") % words


def plans(explanation: Explanation) -> Iterator[str]:
    """What the plans do, where they differ; or that they are missing."""
    if explanation.difference is None or explanation.obstacle not in {"", "other_load"}:
        return
    if explanation.plans is None:
        reason = PLANS_MISSING.get(explanation.plans_missing, PLANS_MISSING[""])
        yield _("The plans are not known: %(reason)s.") % {"reason": reason}
        return
    if any(suspect.kind == "plan" for suspect in explanation.suspects):
        a, b = explanation.plans
        if a == b:
            yield _("The plans differ, and each %(reads)s.") % {"reads": _reading(a)}
            return
        yield _("The plans differ: %(b)s, where %(a)s.") % {
            "a": f"{explanation.labels[0]} {_reading(a)}",
            "b": f"{explanation.labels[1]} {_reading(b)}",
        }


def _reading(plan: PlanRead) -> str:
    words = {
        "rows": f"{plan.rows:,.0f}",
        "relation": plan.relation,
        "index": plan.index,
    }
    if not plan.relation:
        return _("reads no table")
    if plan.index:
        text = ngettext(
            "reads an estimated %(rows)s row of %(relation)s by %(index)s",
            "reads an estimated %(rows)s rows of %(relation)s by %(index)s",
            round(plan.rows),
        )
    else:
        text = ngettext(
            "reads an estimated %(rows)s row of %(relation)s",
            "reads an estimated %(rows)s rows of %(relation)s",
            round(plan.rows),
        )
    return text % words


def untried(explanation: Explanation) -> Iterator[str]:
    """What can be tried, or what nobody looked at where nothing can."""
    number = len(explanation.candidates)
    if number:
        yield ngettext(
            "%(number)d difference can be put back.",
            "%(number)d differences can be put back.",
            number,
        ) % {"number": number}
        return
    yield _("Not explained: no difference was found that can be put back.")
    yield from looked(explanation)


def looked(explanation: Explanation) -> Iterator[str]:
    """What was looked at and what was not, and a build that differs."""
    kinds = [str(KINDS[kind]) for kind in RECORDED_KINDS if kind in explanation.kinds]
    missing = [
        str(KINDS[kind]) for kind in RECORDED_KINDS if kind not in explanation.kinds
    ]
    if explanation.has_plans:
        kinds.append(str(KINDS["plan"]))
    else:
        missing.append(str(KINDS["plan"]))
    missing.append(_("what no record has, such as the order of rows on disk"))
    yield _("Looked at: %(kinds)s; not looked at: %(missing)s.") % {
        "kinds": ", ".join(kinds) or "–",
        "missing": ", ".join(missing),
    }
    builds = [suspect for suspect in explanation.untried if suspect.kind == "build"]
    if builds:
        yield _("The build differs (%(builds)s) and was not tried.") % {
            "builds": "; ".join(
                f"{build.name} {build.a or '–'}, {build.b or '–'}" for build in builds
            )
        }


def suspect_name(suspect: Suspect) -> str:
    """A setting by its name, and other differences in words."""
    if suspect.kind == "setting":
        return suspect.name
    kind = str(KINDS.get(suspect.kind, suspect.kind))
    return f"{kind}: {suspect.name}" if suspect.name else kind


def name_in_sentence(suspect: Suspect) -> str:
    """As `suspect_name`, within a sentence: "work_mem", "index orders_customer"."""
    if suspect.kind == "setting":
        return suspect.name
    kind = str(KINDS.get(suspect.kind, suspect.kind)).lower()
    if suspect.kind in {"setup", "initdb"} or not suspect.name:
        return kind
    return f"{kind} {suspect.name}"


def signs(suspect: Suspect) -> str:
    """What points to a difference: "the plans differ, pg_stat_wal.wal_sync 0.002 → 1"."""
    codes = [code for code in suspect.evidence if code != "counters_moved"]
    moved = [
        f"{counter.view}.{counter.column} {quantity(counter.a)} → {quantity(counter.b)}"
        for counter in suspect.moved[:MOST_SIGNS]
    ]
    further = len(suspect.moved) - len(moved)
    if further:
        text = ngettext(
            "%(number)d further counter", "%(number)d further counters", further
        )
        moved.append(text % {"number": further})
    return ", ".join([*(str(EVIDENCE[code]) for code in codes), *moved])


def looked_at(suspect: Suspect) -> str:
    """What was looked at and what was not, where nothing points to it."""
    if suspect.state == "acts":
        return ""
    unseen = ", ".join(str(UNSEEN.get(code, code)) for code in suspect.unseen)
    if suspect.state == "not_judged":
        return (
            _("not looked at: %(unseen)s") % {"unseen": unseen}
            if unseen
            else _("no counter and no plan shows whether it acts")
        )
    looked_at = ", ".join(_looked_word(code) for code in suspect.looked)
    words = {"looked": looked_at, "unseen": unseen}
    if unseen:
        return _("did not move: %(looked)s; not looked at: %(unseen)s") % words
    return _("did not move: %(looked)s") % words


def _looked_word(code: str) -> str:
    return _("the form of the plans") if code == "plans" else code


def how_back(suspect: Suspect, *, has_setup: bool = False) -> str:
    """How it is put back, or that nothing here does; `has_setup`: the set-up of the data can be."""
    if suspect.put_back:
        values = ", ".join(
            f"{name} = {value}" for name, value in suspect.put_back.items()
        )
        return "; ".join([values, *suspect.statements])
    backs = [str(BACK[part]) for part in suspect.plan_parts]
    return (
        ", ".join(backs) or " ".join(suspect.statements) or _nothing(suspect, has_setup)
    )


def _nothing(suspect: Suspect, has_setup: bool) -> str:
    texts = []
    if has_setup and suspect.is_of_data:
        texts.append(_("only with the set-up of the data"))
    elif not suspect.undefined:
        texts.append(_("nothing here puts it back"))
    if suspect.undefined:
        text = _("B lacks %(functions)s, and no record has a definition to make it by")
        texts.append(text % {"functions": ", ".join(suspect.undefined)})
    return "; ".join(texts)


def not_given(tried: Sequence[Suspect]) -> Iterator[str]:
    """What A was not given of these for the want of a function, where A is given any."""
    if not 2 <= len(tried) <= MOST_GIVEN:
        return
    for suspect in tried:
        if suspect.undefined_forth:
            text = _(
                "A with only %(name)s of B was not tried: A lacks %(functions)s, and no record has "
                "a definition to make it by."
            )
            if suspect.members:
                text = _(
                    "A with only %(name)s of B was tried without what calls %(functions)s: A lacks "
                    "it, and no record has a definition to make it by."
                )
            yield text % {
                "name": name_in_sentence(suspect),
                "functions": ", ".join(suspect.undefined_forth),
            }


BACK = {
    "setup": gettext_lazy("load the data as A does"),
    "treatment": gettext_lazy("treat as A"),
    "initdb": gettext_lazy("initdb with the options of A"),
}


def length(explanation: Explanation) -> str:
    """How long an ablation takes."""
    if explanation.length is None:
        return ""
    first_look, second = (duration(seconds) for seconds in explanation.length.seconds)
    return _(
        "%(arms)d arms, %(rounds)d rounds: %(first)s; %(second)s if those do not decide"
    ) % {
        "arms": explanation.length.arms,
        "rounds": LOOKS[0],
        "first": first_look,
        "second": second,
    }
