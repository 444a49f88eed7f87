"""Why two cells differ: the explanation, and the ablation that proves it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.analysis.why.functions import Compared
from runs.analysis.why.parts import PARTS, Difference, Estimate, Parts
from runs.analysis.why.waits import NO_EVENT, Slept
from runs.campaigns.selectors import answers as campaign_answers
from runs.campaigns.selectors.ablation_words import percent
from runs.charts import framed
from runs.charts.bars import ranking
from runs.charts.figure import Figure
from runs.models import Ablation, Campaign, Cell
from runs.shared import chart_files, embedding, pages
from runs.shared.chart_files import ChartFile
from runs.shared.pages import or_404
from runs.shared.whole_numbers import whole_number
from runs.why.selectors import answers, words
from runs.why.selectors.explanation import Explanation
from runs.why.selectors.recordings import Call, Instructions, Stack
from runs.why.services import ablations
from runs.why.services.explanations import explain
from runs.why.services.recorded import ADDRESS

MUCH_UNNAMED = 0.1
Row = tuple[str, Sequence[str]]


def _table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Row],
    note: str = "",
    link: str = "",
) -> dict[str, Any]:
    """Each row has its head, which is code, and its figures, each with the head of its column."""
    labelled = [
        (name, list(zip(columns[1:], values, strict=True))) for name, values in rows
    ]
    return {
        "title": title,
        "columns": columns,
        "labelled": labelled,
        "note": note,
        "link": link,
    }


def tables(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """Those for which there is something."""
    a, b = explanation.labels
    recorded = explanation.recorded
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
        yield _functions(explanation, recorded.profile)
    if recorded.calls:
        figures = (_("share of the time"), _("per transaction"), _("failed"))
        yield _table(
            _("System calls"),
            (
                _("Call"),
                *(
                    f"{side}: {figure}"
                    for figure in figures
                    for side in explanation.labels
                ),
            ),
            [(call.name, list(_format_call(call))) for call in recorded.calls],
            _(
                "Counted by strace in all processes of the server, which slows them down."
            ),
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
            _semaphores(recorded.stacks, explanation.labels),
        ),
    ):
        if stacks:
            yield _table(
                title,
                (_("Functions, the innermost first"), _("Side"), _("Call"), _("Share")),
                [
                    (
                        stack.functions,
                        (
                            explanation.labels[stack.is_of_b],
                            stack.call,
                            percent(stack.share),
                        ),
                    )
                    for stack in stacks
                ],
                note,
            )


def _instructions(counted: Instructions) -> Iterator[Row]:
    rows = {_("all"): (counted.a, counted.b), **counted.functions}
    for name, (a, b) in rows.items():
        function_name = _("functions without a name") if name == ADDRESS else name
        yield function_name, (str(a), str(b), f"{b - a:+,d}")


def _format_call(call: Call) -> Iterator[str]:
    for index, format_value in enumerate((percent, "{:.3g}".format, percent)):
        yield from (format_value(side[index]) for side in (call.a, call.b))


def _functions(explanation: Explanation, compared: Compared) -> dict[str, Any]:
    a, b = explanation.labels
    address = ""
    if explanation.recorded.profiles is not None:
        before, after = explanation.recorded.profiles
        address = (
            f"{reverse('run-profile', args=[after])}?{urlencode({'against': before})}"
        )
    return _table(
        _("Processor time per transaction, by function"),
        (_("Function"), a, b, _("Difference"), _("interval (95 %)")),
        [
            (
                function.name,
                (
                    words.amount(function.a),
                    words.amount(function.b),
                    words.signed(function.difference.value),
                    words.interval(function.difference),
                ),
            )
            for function in compared.functions
        ],
        " ".join(_say_samples(compared)),
        address,
    )


def _say_samples(compared: Compared) -> Iterator[str]:
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
        any(stack.call in SYSTEM_V for stack in stacks if stack.is_of_b == side)
        for side in (0, 1)
    ]
    if of_side[0] == of_side[1] or not all(
        any(e.is_of_b == s for e in stacks) for s in (0, 1)
    ):
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
        explanation = explain(a, b, reader=request.user)
    if request.method == "POST":
        _start(request, explanation)
        return redirect(f"{request.path}?a={a}&b={b}")
    return render(request, "why/why.html", context(explanation))


@addresses.page("compare-why-chart")
@embedding.tagged
def compare_why_chart(request: HttpRequest, form: str) -> HttpResponseBase:
    """Where the time of a transaction goes, on both sides, as a picture."""
    a, b = (_key(request, name) for name in ("a", "b"))
    with or_404(Cell.DoesNotExist):
        explanation = explain(a, b, reader=request.user)
    # Further runs change it, of whichever campaign: nothing of it is kept here.
    return chart_files.answer(request, form, None, None, lambda: _drawn(explanation))


def _drawn(explanation: Explanation) -> ChartFile | None:
    if not explanation.difference:
        return None
    dates = campaign_answers.dates_of([explanation.a.campaign, explanation.b.campaign])
    days = [
        day
        for ends in dates.values()
        for day in (ends.first, ends.last)
        if day is not None
    ]
    base, head = explanation.labels
    return ChartFile(
        [framed.tile(_figure(explanation))],
        title=_("Why %(b)s differs from %(a)s") % {"a": base, "b": head},
        texts=[answers.answer_explanation(explanation).sentence],
        data=chart_files.dates_text(min(days, default=None), max(days, default=None)),
        path=f"/compare/why/?a={explanation.a.pk}&b={explanation.b.pk}",
    )


def _key(request: HttpRequest, name: str) -> int:
    key = whole_number(request.GET.get(name, ""))
    if key is None:
        raise BadRequest(_("Name two cells, as in ?a=1&b=2."))
    return key


def _start(request: HttpRequest, explanation: Explanation) -> None:
    with pages.refusals(request):
        records = request.POST.get("count") == "instructions"
        ablations.check(explanation, reader=request.user, records=records)
        person = cast(User, request.user)
        if records:
            ablation = ablations.record(found=explanation, by=person)
        else:
            keys = request.POST.getlist("alone") or request.POST.getlist("try")
            ablation = ablations.start(found=explanation, by=person, keys=keys)
        messages.success(
            request, _("Queued: %(title)s.") % {"title": ablation.campaign.title}
        )


def context(explanation: Explanation) -> dict[str, Any]:
    """What the page shows."""
    difference = explanation.difference
    return {
        "found": explanation,
        "answer": answers.answer_explanation(explanation),
        "figure": _figure(explanation) if difference else None,
        "parts": _parts(difference) if difference else [],
        "waits": [_slept(slept) for slept in explanation.recorded.waits],
        "limits": [
            words.LIMITS[code] for code in (difference.limits if difference else ())
        ],
        "tables": list(tables(explanation)),
        "is_recording": _is_live(explanation.recording),
        "may_record": explanation.obstacle == "",
        "may_try": explanation.obstacle in {"", "no_evidence"}
        and bool(explanation.candidates),
        "is_live": _is_live(explanation.ablation),
    }


def _is_live(ablation: Ablation | None) -> bool:
    return ablation is not None and ablation.campaign.state in Campaign.LIVE


def _parts(difference: Difference) -> list[dict[str, Any]]:
    titles = words.PARTS | {
        "seconds": _("all"),
        "cpu": _("processor time of the server"),
    }
    rows = [
        _row(titles[row.name], row.a, row.b, row.difference, is_moved=row.is_moved)
        for row in difference.rows()
    ]
    return rows + [
        _row(title, a, b, Estimate(b - a), is_moved=False)
        for name, title in words.BESIDE.items()
        if (a := getattr(difference.a, name)) + (b := getattr(difference.b, name)) > 0
    ]


def _slept(slept: Slept) -> dict[str, Any]:
    title = f"{slept.type}: {slept.event}" if slept.type != NO_EVENT else _("no event")
    return _row(
        title, slept.a, slept.b, slept.difference, is_moved=slept.difference.is_apart
    )


def _row(
    title: Any, a: float, b: float, difference: Estimate, *, is_moved: bool
) -> dict[str, Any]:
    return {
        "title": str(title),
        "a": words.amount(a),
        "b": words.amount(b),
        "difference": words.signed(difference.value),
        "interval": words.interval(difference),
        "moved": is_moved,
    }


def _figure(explanation: Explanation) -> Figure:
    """One bar a side, of the parts that both sides know; workers and others are not in it."""
    difference = cast(Difference, explanation.difference)
    sides: list[Parts] = [difference.a, difference.b]
    return ranking(
        list(explanation.labels),
        {
            str(words.PARTS[name]): [
                1000 * max(0.0, getattr(side, name)) for side in sides
            ]
            for name in PARTS
            if name in difference.by_part
        },
        x_title=_("ms per transaction"),
    )
