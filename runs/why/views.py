"""Why two cells differ: the explanation, and the ablation that proves it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.analysis.why.functions import Compared
from runs.analysis.why.parts import PARTS, Difference, Estimate, Parts
from runs.analysis.why.suspects import Suspect
from runs.analysis.why.waits import NO_EVENT, Slept
from runs.charts.bars import ranking
from runs.charts.figure import Figure
from runs.models import Ablation, Campaign, Cell
from runs.shared import pages
from runs.shared.pages import or_404
from runs.why.selectors import ablation_words as proof_words
from runs.why.selectors.ablation_words import percent
from runs.why.services import ablations, words
from runs.why.services.explanations import Explanation, explain
from runs.why.services.recorded import ADDRESS, Call, Instructions, Stack

MUCH_UNNAMED = 0.1
Row = tuple[str, Sequence[str]]


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Row], note: str = "", link: str = ""
) -> dict[str, Any]:
    """Each row has its head, which is code, and its figures, each with the head of its column."""
    labelled = [(name, list(zip(columns[1:], values, strict=True))) for name, values in rows]
    return {"title": title, "columns": columns, "labelled": labelled, "note": note, "link": link}


def tables(found: Explanation) -> Iterator[dict[str, Any]]:
    """Those for which there is something."""
    a, b = found.labels
    recorded = found.recorded
    for title, counted in (
        (_("Instructions per transaction, pages in memory"), recorded.instructions),
        (_("Instructions per transaction that reads its pages"), recorded.reading),
    ):
        if counted is not None:
            yield _table(
                title,
                (_("Function"), a, b, _("Difference")),
                _instructions(counted),
                _("Counted by callgrind in single-user mode: work, not time."),
            )
    if recorded.profile is not None:
        yield _functions(found, recorded.profile)
    if recorded.calls:
        figures = (_("share of the time"), _("per transaction"), _("failed"))
        yield _table(
            _("System calls"),
            (_("Call"), *(f"{side}: {figure}" for figure in figures for side in found.labels)),
            [(each.name, list(_of_call(each))) for each in recorded.calls],
            _("Counted by strace in all processes of the server, which slows them down."),
        )
    for title, stacks, note in (
        (
            _("Where sessions leave the processor"),
            recorded.sleeps,
            _("By perf, where the kernel may be seen: how often, not for how long."),
        ),
        (
            _("Who waits for semaphores, and who wakes others"),
            recorded.stacks,
            _semaphores(recorded.stacks, found.labels),
        ),
    ):
        if stacks:
            yield _table(
                title,
                (_("Functions, the innermost first"), _("Side"), _("Call"), _("Share")),
                [
                    (each.functions, (found.labels[each.is_of_b], each.call, percent(each.share)))
                    for each in stacks
                ],
                note,
            )


def _instructions(counted: Instructions) -> Iterator[Row]:
    rows = {_("all"): (counted.a, counted.b), **counted.functions}
    for name, (a, b) in rows.items():
        shown = _("functions without a name") if name == ADDRESS else name
        yield shown, (str(a), str(b), f"{b - a:+,d}")


def _of_call(each: Call) -> Iterator[str]:
    for place, shown in enumerate((percent, "{:.3g}".format, percent)):
        yield from (shown(side[place]) for side in (each.a, each.b))


def _functions(found: Explanation, compared: Compared) -> dict[str, Any]:
    a, b = found.labels
    address = ""
    if found.recorded.profiles is not None:
        before, after = found.recorded.profiles
        address = f"{reverse('run-profile', args=[after])}?{urlencode({'against': before})}"
    return _table(
        _("Processor time per transaction, by function"),
        (_("Function"), a, b, _("Difference"), _("interval (95 %)")),
        [
            (
                each.name,
                (
                    words.amount(each.a),
                    words.amount(each.b),
                    words.signed(each.difference.value),
                    words.interval(each.difference),
                ),
            )
            for each in compared.functions
        ],
        " ".join(_of_samples(compared)),
        address,
    )


def _of_samples(compared: Compared) -> Iterator[str]:
    a, b = compared.samples
    yield _("%(a)d and %(b)d samples by perf.") % {"a": a, "b": b}
    if not compared.functions:
        yield _("Of no function it is sure that it differs.")
    if min(a, b) < compared.enough:
        yield _("A difference of 1 %% takes %(number)d samples a side.") % {
            "number": compared.enough
        }
    for name, share in compared.unnamed.items():
        if share > MUCH_UNNAMED:
            yield _(
                "%(share)s of the samples are in %(file)s, whose functions have no names: install "
                "its symbols (postgresql-NN-dbgsym on Debian, postgresqlNN-debuginfo on RHEL)."
            ) % {"share": percent(share), "file": name.strip("[]")}


# Which semaphores a build has is chosen when it is configured: POSIX on Linux since PostgreSQL 10.
SYSTEM_V = frozenset({"semop", "semtimedop"})


def _semaphores(stacks: Sequence[Stack], labels: Sequence[str]) -> str:
    """That the builds have other semaphores, which no setting changes."""
    of_side = [
        any(each.call in SYSTEM_V for each in stacks if each.is_of_b == side) for side in (0, 1)
    ]
    if of_side[0] == of_side[1] or not all(any(e.is_of_b == s for e in stacks) for s in (0, 1)):
        return ""
    system_v, posix = labels[of_side[1]], labels[of_side[0]]
    return _(
        "%(system_v)s was built with semaphores of System V (semop), %(posix)s with those of POSIX "
        "(futex): no setting puts that back."
    ) % {"system_v": system_v, "posix": posix}


@addresses.page("compare-why", posted=Right.QUEUE)
def compare_why(request: HttpRequest) -> HttpResponse:
    """The explanation of b against a; POST queues its ablation."""
    a, b = (_key(request, name) for name in ("a", "b"))
    with or_404(Cell.DoesNotExist):
        found = explain(a, b, reader=request.user)
    if request.method == "POST":
        _start(request, found)
        return redirect(f"{request.path}?a={a}&b={b}")
    return render(request, "why/why.html", context(found))


def _key(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    if not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise BadRequest(_("Name two cells, as in ?a=1&b=2."))
    return int(text)


def _start(request: HttpRequest, found: Explanation) -> None:
    with pages.refusals(request):
        records = request.POST.get("count") == "instructions"
        ablations.check(found, reader=request.user, records=records)
        queue = ablations.record if records else ablations.start
        made = queue(found=found, by=cast(User, request.user))
        messages.success(request, _("Queued: %(title)s.") % {"title": made.campaign.title})


def context(found: Explanation) -> dict[str, Any]:
    """What the page shows."""
    answers = found.answers
    proofs = (answers.time, answers.cpu) if answers else (None, None)
    by_name = [{each.name: each for each in proof.suspects} if proof else {} for proof in proofs]
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for each in found.suspects:
        rows[each.is_candidate].append(_suspect(found, each, by_name))
    return {
        "found": found,
        "sentence": words.sentence(found),
        "figure": _figure(found) if found.difference else None,
        "parts": _parts(found.difference) if found.difference else [],
        "waits": [_slept(each) for each in found.recorded.waits],
        "limits": [
            words.LIMITS[code] for code in (found.difference.limits if found.difference else ())
        ],
        "tried": rows[True],
        "left_out": rows[False],
        "proofs": [
            (title, proof, proof_words.interval(proof.effect), proof_words.interval(proof.control))
            for title, proof in zip((_("time"), _("processor time")), proofs, strict=True)
            if proof is not None
        ],
        "has_no_time": bool(found.answers and found.answers.cpu and not found.answers.time),
        "length": words.length(found),
        "tables": list(tables(found)),
        "is_recording": _is_live(found.recording),
        "may_record": found.obstacle == "",
        "may_try": found.obstacle in {"", "no_evidence"} and bool(found.candidates),
        "is_live": _is_live(found.ablation),
    }


def _is_live(ablation: Ablation | None) -> bool:
    return ablation is not None and ablation.campaign.state in Campaign.LIVE


def _suspect(found: Explanation, each: Suspect, by_name: list[dict[str, Any]]) -> dict[str, Any]:
    of_time, of_cpu = (known.get(each.name) for known in by_name)
    is_proven = any(share and share.answer == "proven" for share in (of_time, of_cpu))
    return {
        "suspect": each,
        "name": words.suspect_name(each),
        "shows": words.shows(each, found.labels),
        "evidence": ", ".join(str(words.EVIDENCE[code]) for code in each.evidence),
        "reason": words.reason(each),
        "time": proof_words.answer(of_time) if of_time else "",
        "cpu": proof_words.answer(of_cpu) if of_cpu else "",
        "tone": "success" if is_proven else "",
    }


def _parts(difference: Difference) -> list[dict[str, Any]]:
    titles = words.PARTS | {"seconds": _("all"), "cpu": _("processor time of the server")}
    rows = [
        _row(titles[name], a, b, estimate, is_moved=is_moved)
        for name, a, b, estimate, is_moved in difference.rows()
    ]
    return rows + [
        _row(title, a, b, Estimate(b - a), is_moved=False)
        for name, title in words.BESIDE.items()
        if (a := getattr(difference.a, name)) + (b := getattr(difference.b, name)) > 0
    ]


def _slept(each: Slept) -> dict[str, Any]:
    title = f"{each.type}: {each.event}" if each.type != NO_EVENT else _("no event")
    return _row(title, each.a, each.b, each.difference, is_moved=each.difference.is_apart)


def _row(title: Any, a: float, b: float, difference: Estimate, *, is_moved: bool) -> dict[str, Any]:
    return {
        "title": str(title),
        "a": words.amount(a),
        "b": words.amount(b),
        "difference": words.signed(difference.value),
        "interval": words.interval(difference),
        "moved": is_moved,
    }


def _figure(found: Explanation) -> Figure:
    """One bar a side, of the parts that both sides know; workers and others are not in it."""
    difference = cast(Difference, found.difference)
    sides: list[Parts] = [difference.a, difference.b]
    return ranking(
        list(found.labels),
        {
            str(words.PARTS[name]): [1000 * max(0.0, getattr(side, name)) for side in sides]
            for name in PARTS
            if name in difference.by_part
        },
        x_title=_("ms per transaction"),
    )
