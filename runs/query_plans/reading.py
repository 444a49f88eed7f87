"""Reads the output of EXPLAIN in each of its formats, of 9.2 to 19, as people paste it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runs import foreign_json
from runs.query_plans.cleaning import LOGGED, Line, lines_of
from runs.query_plans.node import Plan, PlanUnreadableError
from runs.query_plans.structured import from_xml, from_yaml, read_structured
from runs.query_plans.text_format import MOST_MARKED, read_text
from runs.query_plans.times import with_times

__all__ = ["PlanUnreadableError", "looks_like_plan", "read"]

# Larger ones are not plans of ours, and no page could show them.
MOST_CHARACTERS = 4_000_000
_NODE = re.compile(
    r"\(cost=\d|\(actual (?:time|rows)=|\"Node Type\"|^[^\S\n]*+QUERY PLAN[^\S\n]*+$", re.MULTILINE
)
_YAML = re.compile(r"\A\s*+(?:- )?Plan: *+\Z")
_XML = re.compile(r"\A\s*+<explain\b")


def read(text: str) -> Plan:
    """The plan in a text: EXPLAIN's text, JSON, YAML or XML, with what may be around it.

    Raises PlanUnreadableError, which says what was found. Lines that are no part of a plan are
    named in `Plan.not_understood`.
    """
    if len(text) > MOST_CHARACTERS:
        raise PlanUnreadableError(f"A plan of {len(text):,} characters is too long to read.")
    if len(LOGGED.findall(text)) > 1:
        raise PlanUnreadableError("More than one plan is in this text. Paste one plan at a time.")
    plan = _structured(text) or read_text(lines_of(text))
    return replace(plan, root=with_times(plan.root))


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
    if _XML.match(text) or "<explain xmlns" in text[:20_000]:
        return _parsed(lambda: from_xml(text[text.find("<explain") :]), "XML")
    lines = lines_of(text)
    for at, (_number, line) in enumerate(lines):
        if line.lstrip()[:1] in {"[", "{"}:
            return _json(lines[at:])
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
        raise PlanUnreadableError("More than one plan is in this text. Paste one plan at a time.")
    plan = read_structured(whole)
    last = text.count("\n", 0, end)
    marked = tuple(each for each in lines[last + 1 :] if rest)[:MOST_MARKED]
    return Plan(plan.root, plan.planning_ms, plan.execution_ms, plan.footer, marked)
