"""Reads the output of EXPLAIN in any of its formats."""

import re

from runs.query_plans import reading_json, reading_text
from runs.query_plans.node import Plan
from runs.query_plans.unreadable import PlanUnreadableError

__all__ = ["PlanUnreadableError", "looks_like_plan", "read"]

# Larger ones are not plans of ours, and no page could show them.
MOST_CHARACTERS = 4_000_000
_NODE = re.compile(
    r"\(cost=\d|\(actual (?:time|rows)=|\"Node Type\"|^\s*QUERY PLAN\s*$", re.MULTILINE
)


def read(text: str) -> Plan:
    """The plan in a text: format text or JSON, of any version from 9.2 on, as psql prints it.

    Raises PlanUnreadableError, which says what was found.
    """
    if len(text) > MOST_CHARACTERS:
        raise PlanUnreadableError(f"A plan of {len(text):,} characters is too long to read.")
    if reading_json.is_json(text):
        return reading_json.read(text)
    return reading_text.read(text)


def looks_like_plan(text: str) -> bool:
    """Whether a text may be a plan, without reading all of it."""
    return bool(_NODE.search(text[:20_000]))
