"""One sentence for a comparison: who, by how much, in how many conditions, how surely.

Pages, reports and the API say this sentence of the same rows.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from django.utils.translation import gettext as _

from runs.analysis.inference import Inference
from runs.analysis.inference.verdicts import Direction
from runs.analysis.interval_words import TIMES
from runs.cells.selectors.factor_names import Words
from runs.compare.selectors.describe import job_words
from runs.compare.selectors.describe.series_labels import fact, fact_value
from runs.compare.selectors.describe.verdict_words import (
    TAKEN,
    VERDICTS,
    lacks_print,
    printed_size,
    sentence,
    size,
    size_of_all,
)
from runs.compare.selectors.judge.comparisons import ComparedPage, SeriesFit, Step
from runs.compare.selectors.judge.ratios import RatioRow
from runs.grouping import group_by_key
from runs.shared.formats import quantity

PROVEN = ("slower", "faster", "different")
# In the order in which a sentence names what is not proven.
OTHERS = ("same", "no_sign", "undecided", "too_few_runs", "not_comparable")


def summary(
    head: str,
    base: str,
    inferences: Sequence[Inference],
    *,
    together: Inference | None = None,
    direction: Direction = "higher",
    asked: int = 0,
) -> str:
    """What `inferences`, one for each condition, say of `head` against `base`; empty without any.

    `together` is the overall effect of all rows. `direction` says which values of the metric are
    better, for figures that are only printed. `asked` is the number of conditions where that is
    greater: in the others a side has no valid run.
    """
    if not inferences:
        return ""
    names = {"head": head, "base": base}
    if all(lacks_print(inference) for inference in inferences):
        return _summarise_printed(inferences, names, direction)
    measured = [
        row for row in inferences if "not_measured" not in row.reasons
    ] or inferences
    number = max(asked, len(inferences))
    text = _summarise_measured(measured, number, names, together)
    if len(measured) == number:
        return text
    missing = _("No valid runs of both sides in %(missing)d of %(number)d conditions.")
    return f"{text} {missing % {'missing': number - len(measured), 'number': number}}"


def _summarise_measured(
    inferences: Sequence[Inference],
    number: int,
    names: dict[str, str],
    together: Inference | None,
) -> str:
    rows = group_by_key((str(inference.verdict), inference) for inference in inferences)
    proven = [verdict for verdict in PROVEN if verdict in rows]
    if not proven:
        return _summarise_jobs(rows) or _summarise_open(rows, number, names, together)
    (first_size, first_where), *other_parts = [
        _part(rows[verdict], number, together) for verdict in proven
    ]
    sized = [_sized_at(size, where_text) for size, where_text in other_parts]
    sized += [_counted(verdict, rows) for verdict in OTHERS if verdict in rows]
    rest_of_sentence = "".join(
        _(", %(part)s") % {"part": sized_text} for sized_text in sized
    )
    values = names | {
        "first": first_size,
        "where": first_where,
        "rest": rest_of_sentence,
    }
    if len(proven) == 1 and _is_told_as_speed(rows[proven[0]]):
        if not first_where:
            return _("%(head)s is %(first)s than %(base)s%(rest)s.") % values
        return _("%(head)s is %(first)s than %(base)s %(where)s%(rest)s.") % values
    return _("%(head)s against %(base)s: %(first)s%(rest)s.") % (
        values | {"first": _sized_at(first_size, first_where)}
    )


def group_by_pair(
    rows: Sequence[RatioRow], words: Words
) -> dict[tuple[str, str], list[RatioRow]]:
    """The rows of the ratio table of a campaign by the names of (head, base)."""
    pairs: dict[tuple[str, str], list[RatioRow]] = defaultdict(list)
    for row in rows:
        head, base = (
            words.named(row.subject, side_label)
            for side_label in (row.head_label, row.base_label)
        )
        pairs[head, base].append(row)
    return pairs


def summarise_pair(head: str, base: str, rows: Sequence[RatioRow]) -> str:
    """The sentence of the rows of one (head, base), with what else than these differs."""
    inferences = [row.comparison for row in rows]
    sentence = summary(
        head, base, inferences, together=rows[0].together, asked=rows[0].asked
    )
    return " ".join(filter(None, (sentence, explain_builds(head, base, inferences))))


def explain_builds(head: str, base: str, inferences: Sequence[Inference]) -> str:
    """What of a difference may be the builds' doing: each was built in its own way. Else empty."""
    differing = {
        differing.name: differing
        for row in inferences
        if row.verdict != "not_comparable"
        for differing in row.differing
        if differing.kind == "build" and not differing.is_declared
    }
    if not differing:
        return ""
    heads = ", ".join(_built(fact.name, fact.head) for fact in differing.values())
    bases = ", ".join(_built(fact.name, fact.base) for fact in differing.values())
    text = _(
        "%(head)s was built with %(heads)s, %(base)s with %(bases)s: this may be the builds' doing."
    )
    return text % {"head": head, "base": base, "heads": heads, "bases": bases}


def _built(name: str, values: Sequence[object]) -> str:
    """ "-O2" and "gcc 14.2" say what they are, others their name as well."""
    text = ", ".join(fact_value(name, value) for value in values)
    return (
        text
        if name in ("optimisation", "compiler")
        else f"{fact('build', name)}: {text}"
    )


def summarise_table(
    rows: Sequence[RatioRow], words: Words
) -> dict[tuple[str, str], str]:
    """The sentence of each (head, base) that the ratio table of a campaign compares."""
    return {
        names: summarise_pair(*names, ratio_rows)
        for names, ratio_rows in group_by_pair(rows, words).items()
    }


def summarise_comparison(page: ComparedPage) -> list[str]:
    """The sentence of each series of the compare page against the baseline.

    Of versions in a row the newest comes first, then each step from version to version, what got
    slower before all else, then the other versions. Last is what fitted laws say.
    """
    if page.loaded.metric is None:
        return []
    together = {average.head_label: average.comparison for average in page.averages}
    rows = group_by_key((row.head_label, row.comparison) for row in page.rows)
    base = page.label(page.base) if page.base else ""
    levels_of = {page.label(series): len(series.cells) for series in page.loaded.series}
    direction = cast(Direction, page.loaded.metric.direction)
    sentences = {
        (head, base): summary(
            head,
            base,
            inferences,
            together=together.get(head),
            direction=direction,
            asked=levels_of.get(base, 0),
        )
        for head, inferences in rows.items()
    }
    laws = [_scaling(series_fit) for series_fit in page.fits]
    if not page.steps:
        return [*sentences.values(), *laws]
    steps = sorted(page.steps, key=_weight)
    newest = (page.steps[-1].head_label, base)
    sentence_of_newest = {newest: sentences[newest]} if newest in sentences else {}
    of_steps = {
        names: sentences.get(names)
        or summary(
            *names,
            step.found,
            together=step.together,
            direction=direction,
            asked=levels_of.get(step.base_label, 0),
        )
        for step in steps
        if (names := (step.head_label, step.base_label))
    }
    return [*(sentence_of_newest | of_steps | sentences).values(), *laws]


def _scaling(series_fit: SeriesFit) -> str:
    """Where the law through a series has its peak, as far as its points prove one."""
    fit, last_x = series_fit.fit, max(cell.x for cell in series_fit.series.cells)
    values = {"name": series_fit.label, "last": last_x}
    if fit.peak_level is None or fit.peak is None:
        return _("%(name)s: up to %(last)s no peak is proven.") % values
    values |= {"level": f"{fit.peak_level:.0f}", "peak": quantity(fit.peak)}
    text = _(
        "By the fitted law %(name)s does best at about %(level)s (%(peak)s); measured to %(last)s."
    )
    return text % values


def slower_steps(page: ComparedPage) -> int:
    """How many steps from version to version got slower anywhere: their sentences come first."""
    return sum(_weight(step)[0] < 0 for step in page.steps)


def _weight(step: Step) -> tuple[int, int]:
    """The steps that got slower first, then those of the most proven conditions."""
    inferences = [step.together, *step.found] if step.together else [*step.found]
    proven = [inference.verdict for inference in inferences if inference.is_proven]
    return -proven.count("slower"), -len(proven)


def _is_told_as_speed(rows: Sequence[Inference]) -> bool:
    """Whether the size is told in per cent faster or slower."""
    return all(
        inference.low
        and inference.high
        and 1 / TIMES < inference.low <= inference.high < TIMES
        and inference.verdict == ("faster" if inference.low > 1 else "slower")
        for inference in rows
    )


def _part(
    rows: Sequence[Inference], number: int, together: Inference | None
) -> tuple[str, str]:
    """The size of one verdict's rows and where it holds: "8 to 14 % faster", "in 2 of 3 ..."."""
    verdict = rows[0].verdict
    if number == 1:
        return size_of_all(rows) or str(VERDICTS[verdict]), ""
    values = {"count": len(rows), "number": number}
    is_everywhere = len(rows) == number
    if together is not None and together.verdict == verdict:
        if is_everywhere:
            text = _("on average, in all %(number)d conditions")
            both_text = _("on average, in both conditions")
            return size(together), both_text if number == 2 else text % values
        text = _("on average, proven in %(count)d of %(number)d conditions")
        return size(together), text % values
    if is_everywhere:
        text = _("in all %(number)d conditions")
        return size_of_all(rows), _(
            "in both conditions"
        ) if number == 2 else text % values
    return size_of_all(rows), _("in %(count)d of %(number)d conditions") % values


def _sized_at(size: str, where_text: str) -> str:
    return (
        _("%(size)s %(where)s") % {"size": size, "where": where_text}
        if where_text
        else size
    )


def _counted(verdict: str, rows: dict[str, list[Inference]]) -> str:
    return _("%(verdict)s in %(count)d") % {
        "verdict": VERDICTS[verdict],
        "count": len(rows[verdict]),
    }


def _summarise_jobs(rows: dict[str, list[Inference]]) -> str:
    """Of conditions that jobs of their own measured on both sides; empty for others."""
    open_ones = [*rows.get("undecided", ()), *rows.get("no_sign", ())]
    if not open_ones or not all(inference.base_jobs for inference in open_ones):
        return ""
    return job_words.explain_undecided(open_ones)


def _cannot_be_compared(unusable: Sequence[Inference], names: dict[str, str]) -> str:
    why = sentence(
        dict.fromkeys(code for inference in unusable for code in inference.reasons)
    )
    if not why:
        return _("%(head)s cannot be compared with %(base)s.") % names
    return _("%(head)s cannot be compared with %(base)s: %(why)s.") % (
        names | {"why": why}
    )


def _summarise_open(
    rows: dict[str, list[Inference]],
    number: int,
    names: dict[str, str],
    together: Inference | None,
) -> str:
    values = names | {"number": number}
    if set(rows) == {"same"}:
        return _same(rows["same"], number, names)
    unusable = [
        inference
        for inferences_of_verdict in rows.values()
        for inference in inferences_of_verdict
        if _is_unusable(inference)
    ]
    if len(unusable) == sum(map(len, rows.values())):
        return _cannot_be_compared(unusable, names)
    if set(rows) == {"too_few_runs"}:
        return _("%(head)s and %(base)s have too few runs for a verdict.") % values
    if together is not None and together.low is not None:
        if together.is_proven:
            text = _(
                "%(head)s against %(base)s: %(size)s on average of %(number)d conditions; no "
                "single condition is sure."
            )
        else:
            text = _(
                "Undecided whether %(head)s differs from %(base)s: %(size)s on average of "
                "%(number)d conditions."
            )
        return text % (values | {"size": size(together)})
    counted_texts = [_counted(verdict, rows) for verdict in OTHERS if verdict in rows]
    if number == 1:
        sized = size(next(iter(rows.values()))[0])
        if not sized:
            return _("Undecided whether %(head)s differs from %(base)s.") % values
        text = _("Undecided whether %(head)s differs from %(base)s: %(size)s.")
        return text % (values | {"size": sized})
    text = _(
        "Undecided whether %(head)s differs from %(base)s: %(parts)s of %(number)d conditions."
    )
    return text % (values | {"parts": ", ".join(counted_texts)})


def _same(inferences: Sequence[Inference], number: int, names: dict[str, str]) -> str:
    values = {
        "number": number,
        "count": len(inferences),
        "size": size_of_all(inferences),
    }
    if len(inferences) < number:
        text = _(
            "%(head)s and %(base)s are the same in %(count)d of %(number)d conditions, %(size)s."
        )
    elif number == 1:
        text = _("%(head)s and %(base)s are the same, %(size)s.")
    elif number == 2:
        text = _("%(head)s and %(base)s are the same in both conditions, %(size)s.")
    else:
        text = _(
            "%(head)s and %(base)s are the same in all %(number)d conditions, %(size)s."
        )
    return text % (names | values)


def _is_unusable(inference: Inference) -> bool:
    """Whether no number of further rounds would give an answer."""
    return inference.verdict == "not_comparable" or TAKEN in inference.reasons


def _summarise_printed(
    inferences: Sequence[Inference], names: dict[str, str], direction: Direction
) -> str:
    """The ratios that a publication prints; without repeats or their spread nothing is tested."""
    ratios = [inference.ratio for inference in inferences if inference.ratio]
    if not ratios:
        return ""
    values = names | {
        "size": printed_size(ratios, direction),
        "number": len(inferences),
    }
    is_one_way = max(ratios) < 1 or min(ratios) > 1
    if (
        direction != "higher"
        or not is_one_way
        or max(*ratios, *(1 / r for r in ratios)) >= TIMES
    ):
        values["says"] = _("%(head)s against %(base)s: %(size)s") % values
    else:
        values["says"] = _("%(head)s is %(size)s than %(base)s") % values
    if len(inferences) == 1:
        return (
            _("As printed, %(says)s; no spread is printed, so it is not tested.")
            % values
        )
    text = _(
        "As printed, %(says)s in %(number)d conditions; no spread is printed, so it is not tested."
    )
    return text % values
