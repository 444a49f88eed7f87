"""Why two cells differ: the explanation, and the ablation that proves it."""

from dataclasses import dataclass
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.analysis.why.parts import PARTS, Difference, Estimate, Parts
from runs.analysis.why.suspects import Suspect
from runs.analysis.why.waits import NO_EVENT, Slept
from runs.charts.bars import ranking
from runs.charts.figure import Figure
from runs.models import Ablation, Campaign, Cell
from runs.selectors.why import words as proof_words
from runs.services.why import ablations, words
from runs.services.why.explanations import Explanation, explain
from runs.web import pages
from runs.web.compare import recordings


@dataclass(frozen=True)
class PartRow:
    """A part on both sides, as text."""

    title: str
    a: str
    b: str
    difference: str
    interval: str
    moved: bool


@dataclass(frozen=True)
class SuspectRow:
    """A suspect, and what is known of it: of the time, and of processor time."""

    suspect: Suspect
    name: str
    shows: str
    evidence: str
    reason: str
    time: str
    cpu: str
    tone: str


@require_http_methods(["GET", "HEAD", "POST"])
def compare_why(request: HttpRequest) -> HttpResponse:
    """The explanation of b against a; POST queues its ablation."""
    a, b = (_key(request, name) for name in ("a", "b"))
    try:
        found = explain(a, b, reader=request.user)
    except Cell.DoesNotExist:
        raise Http404("cell") from None
    if request.method == "POST":
        _start(request, found)
        return redirect(f"{request.path}?a={a}&b={b}")
    return render(request, "compare/why.html", {"section": "compare", **context(found)})


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
    rows = [_suspect(found, each, by_name) for each in found.suspects]
    return {
        "found": found,
        "sentence": words.sentence(found),
        "figure": _figure(found) if found.difference else None,
        "parts": _parts(found.difference) if found.difference else [],
        "waits": [_slept(each) for each in found.recorded.waits],
        "limits": [words.LIMITS[code] for code in _limits(found)],
        "tried": [row for row in rows if row.suspect.is_candidate],
        "left_out": [row for row in rows if not row.suspect.is_candidate],
        "proofs": [
            (title, proof, proof_words.interval(proof.effect), proof_words.interval(proof.control))
            for title, proof in zip((_("time"), _("processor time")), proofs, strict=True)
            if proof is not None
        ],
        "has_no_time": bool(found.answers and found.answers.cpu and not found.answers.time),
        "length": words.length(found),
        "tables": list(recordings.tables(found)),
        "is_recording": _is_live(found.recording),
        "may_record": found.obstacle == "",
        "may_try": found.obstacle in {"", "no_evidence"} and bool(found.candidates),
        "is_live": _is_live(found.ablation),
    }


def _is_live(ablation: Ablation | None) -> bool:
    return ablation is not None and ablation.campaign.state in Campaign.LIVE


def _limits(found: Explanation) -> tuple[str, ...]:
    return found.difference.limits if found.difference else ()


def _suspect(found: Explanation, each: Suspect, by_name: list[dict[str, Any]]) -> SuspectRow:
    of_time, of_cpu = (known.get(each.name) for known in by_name)
    is_proven = any(share and share.answer == "proven" for share in (of_time, of_cpu))
    return SuspectRow(
        suspect=each,
        name=words.suspect_name(each),
        shows=words.shows(each, found.labels),
        evidence=", ".join(str(words.EVIDENCE[code]) for code in each.evidence),
        reason=words.reason(each),
        time=proof_words.answer(of_time) if of_time else "",
        cpu=proof_words.answer(of_cpu) if of_cpu else "",
        tone="success" if is_proven else "",
    )


def _parts(difference: Difference) -> list[PartRow]:
    rows = [
        _part(str(words.PARTS[name]), difference, name, is_moved=name in difference.moved)
        for name in PARTS
        if name in difference.by_part
    ]
    rows.append(_part(_("all"), difference, "seconds", is_moved=difference.seconds.is_apart))
    if difference.cpu is not None:
        title = _("processor time of the server")
        rows.append(_part(title, difference, "cpu", is_moved=difference.cpu.is_apart))
    rows += [
        PartRow(str(title), words.amount(a), words.amount(b), words.signed(b - a), "", moved=False)
        for name, title in words.BESIDE.items()
        if (a := getattr(difference.a, name)) + (b := getattr(difference.b, name)) > 0
    ]
    return rows


def _slept(each: Slept) -> PartRow:
    return PartRow(
        title=f"{each.type}: {each.event}" if each.type != NO_EVENT else _("no event"),
        a=words.amount(each.a),
        b=words.amount(each.b),
        difference=words.signed(each.difference.value),
        interval=words.interval(each.difference),
        moved=each.difference.is_apart,
    )


def _part(title: str, difference: Difference, name: str, *, is_moved: bool) -> PartRow:
    estimate: Estimate = difference.by_part.get(name) or getattr(difference, name)
    a, b = (words.amount(getattr(side, name) or 0.0) for side in (difference.a, difference.b))
    return PartRow(
        title=title,
        a=a,
        b=b,
        difference=words.signed(estimate.value),
        interval=words.interval(estimate),
        moved=is_moved,
    )


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
