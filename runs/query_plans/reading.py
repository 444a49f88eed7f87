"""Reads the output of EXPLAIN in each of its formats, of 9.2 to 19, as people paste it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runs import enclosed, foreign_json
from runs.query_plans.cleaning import LOGGED, Line, lines_of
from runs.query_plans.documents import from_xml, from_yaml
from runs.query_plans.node import Plan, PlanUnreadableError
from runs.query_plans.structured import read_structured
from runs.query_plans.text_format import MOST_MARKED, read_text
from runs.query_plans.times import with_times

__all__ = ["PlanUnreadableError", "looks_like_plan", "read"]

# Larger ones are not plans of ours, and no page could show them.
MOST_CHARACTERS = 4_000_000
# In larger texts nobody looks for a plan within something else.
MOST_ENCLOSED, MOST_LINES = 500_000, 5_000
_SEVERAL = "More than one plan is in this text. Paste one plan at a time."
_NODE = re.compile(
    r"\(cost=\d|\(actual (?:time|rows)=|\"Node Type\"|^[^\S\n]*+QUERY PLAN[^\S\n]*+$", re.MULTILINE
)
_YAML = re.compile(r"\A\s*+(?:- )?Plan: *+\Z")
_XML = re.compile(r"\A\s*+<explain\b")
_JSON = re.compile(r"\A\s*+[\[{]\s*+(?:[\[{}\]\"]|\Z)")


def read(text: str) -> Plan:
    """The plan in a text: EXPLAIN's text, JSON, YAML or XML, with what may be around it.

    Raises PlanUnreadableError, which says what was found. Lines that are no part of a plan are
    named in `Plan.not_understood`.
    """
    if len(text) > MOST_CHARACTERS:
        raise PlanUnreadableError(f"A plan of {len(text):,} characters is too long to read.")
    if len(LOGGED.findall(text)) > 1:
        raise PlanUnreadableError(_SEVERAL)
    text = foreign_json.of_program(enclosed.without_quotes(text))
    plan = _read(text)
    if not _is_whole(plan) or text.count("\\n") > text.count("\n"):
        plan = max((plan, *_inside(text)), key=_worth)
    if not isinstance(plan, Plan):
        raise plan
    return replace(plan, root=with_times(plan.root))


def _read(text: str) -> Plan | PlanUnreadableError:
    try:
        if plan := _structured(text):
            logged = tuple(f"Duration: {each[1]} ms" for each in LOGGED.finditer(text))
            return replace(plan, footer=(*logged, *plan.footer))
        return read_text(lines_of(text))
    except PlanUnreadableError as refused:
        return refused


def _inside(text: str) -> list[Plan | PlanUnreadableError]:
    """The plans in what may have been written around one: logs, documents, prefixes."""
    if len(text) > MOST_ENCLOSED or text.count("\n") > MOST_LINES:
        return []
    whole = [inside for inside, _around in enclosed.whole(text)]
    plans = [_read(inside) for inside in whole]
    several = zip(whole, plans, strict=True)
    if len({str(plan) for inside, plan in several if "\n" in inside and _is_whole(plan)}) > 1:
        return [PlanUnreadableError(_SEVERAL)]
    framed = [each for outer in (text, *whole) for each, _around in enclosed.frames(outer)]
    return plans + [_read(inside) for inside in framed]


def _is_whole(plan: Plan | PlanUnreadableError) -> bool:
    return isinstance(plan, Plan) and not plan.not_understood


def _worth(plan: Plan | PlanUnreadableError) -> tuple[int, int]:
    """How much was understood; of equals the text as it is comes first."""
    if not isinstance(plan, Plan):
        return 0, 0
    return len(plan.nodes()), -len(plan.not_understood)


def looks_like_plan(text: str) -> bool:
    """Whether a text may be a plan, without reading all of it."""
    return bool(_NODE.search(text[:20_000]))


def _parsed(parse: Callable[[], Any], form: str) -> Plan:
    try:
        return read_structured(parse())
    except PlanUnreadableError:
        raise
    except ValueError as error:
        raise PlanUnreadableError(f"This {form} cannot be read: {error}") from error


def _structured(text: str) -> Plan | None:
    """The plan of JSON, YAML or XML; None for a text of none of these."""
    lines = lines_of(text)
    for at, (_number, line) in enumerate(lines):
        begins = line.lstrip()[:1]
        if begins in {"[", "{"} and _JSON.match(line):
            return _json(lines[at:])
        if begins == "<" and _XML.match(line):
            return _parsed(lambda: from_xml("\n".join(line for _n, line in lines[at:])), "XML")  # noqa: B023
        if _YAML.match(line):
            return _parsed(lambda: from_yaml([line for _n, line in lines[at:]]), "YAML")  # noqa: B023
        if line.lstrip().startswith("->") or "(cost=" in line:
            break
    return None


def _json(lines: list[Line]) -> Plan:
    text = "\n".join(line for _number, line in lines)
    try:
        begin = len(text) - len(text.lstrip())
        whole, end = foreign_json.first(text, begin)
    except ValueError as error:
        raise PlanUnreadableError(f"This JSON cannot be read: {error}") from error
    rest = text[end:].strip()
    if '"Plan"' in rest:
        raise PlanUnreadableError(_SEVERAL)
    plan = read_structured(whole)
    last = text.count("\n", 0, end)
    marked = tuple(each for each in lines[last + 1 :] if rest)[:MOST_MARKED]
    return Plan(plan.root, plan.planning_ms, plan.execution_ms, plan.footer, marked)
