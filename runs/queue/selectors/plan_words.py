"""What a plan shows, and what differs between two, as sentences in the reader's language."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.query_plans.findings import (
    Compared,
    Finding,
    Misestimated,
    Missing,
    Part,
    Removed,
    Spent,
    Spilled,
    compared,
    findings,
)
from runs.query_plans.node import Node, Plan
from runs.shared.formats import factor, milliseconds, quantity

MOST_SENTENCES = 6


def sentences(plan: Plan) -> list[str]:
    """Where the time is first; then what did not come, was estimated wrong, or spilled."""
    return [_sentence(finding, plan) for finding in findings(plan)][:MOST_SENTENCES]


def difference(left: Plan, right: Plan) -> list[str]:
    """Which is slower, by what, and for which node."""
    result = compared(left, right)
    return list(_compare_words(result)) if result is not None else []


def part_title(part: Part) -> str:
    """What time that is no node's is called."""
    titles = {
        Part.JIT: _("Just-in-time compilation (JIT)"),
        Part.TRIGGERS: _("Triggers"),
        Part.PLANNING: _("Planning"),
        Part.NODE: _("Nodes"),
    }
    return titles[part]


def _sentence(finding: Finding, plan: Plan) -> str:
    if isinstance(finding, Spent):
        return _time_words(finding, plan)
    values: dict[str, object] = {"node": finding.node.name}
    if isinstance(finding, Missing):
        values |= {"planned": finding.planned, "launched": finding.launched}
        return _("%(node)s: %(launched)d of %(planned)d workers came.") % values
    if isinstance(finding, Misestimated):
        return _rows_of(finding.node, finding.factor)
    if isinstance(finding, Spilled):
        if not finding.kilobytes:
            return (
                _("%(node)s did not fit into memory and wrote batches to disk.")
                % values
            )
        values["kilobytes"] = quantity(finding.kilobytes)
        return (
            _("%(node)s did not fit into memory and wrote %(kilobytes)s kB to disk.")
            % values
        )
    assert isinstance(finding, Removed)  # noqa: S101  # for the type checker
    values["rows"] = quantity(finding.rows)
    return (
        _("%(node)s looked at %(rows)s pairs that its join filter threw away.") % values
    )


def _time_words(spent: Spent, plan: Plan) -> str:
    values = {
        "what": spent.node.name if spent.node is not None else part_title(spent.part),
        "ms": milliseconds(spent.ms),
        "all": milliseconds(plan.whole_ms),
        "percent": f"{100 * spent.share:.0f}",
    }
    return _("%(percent)s %% of the time is in %(what)s: %(ms)s of %(all)s.") % values


def _rows_of(node: Node, times: float) -> str:
    values = {
        "node": node.name,
        "estimated": quantity(node.estimated_rows),
        "rows": quantity(node.rows),
        "factor": factor(times),
    }
    return _(
        "%(node)s was estimated at %(estimated)s rows; %(rows)s came (a factor of %(factor)s)."
    ) % (values)


def _compare_words(result: Compared) -> Iterator[str]:
    values: dict[str, object] = {
        "left": milliseconds(result.left_ms),
        "right": milliseconds(result.right_ms),
        "factor": factor(result.factor),
    }
    if result.is_right_slower:
        yield (
            _("The right plan takes %(factor)s times as long: %(right)s, not %(left)s.")
            % values
        )
    else:
        yield (
            _("The left plan takes %(factor)s times as long: %(left)s, not %(right)s.")
            % values
        )
    node = result.node
    if node is None:
        return
    values |= {"node": node.name, "own": milliseconds(node.own_ms)}
    if result.instead is not None and result.instead.name != node.name:
        values["instead"] = result.instead.name
        yield (
            _("Most of it is in %(node)s (%(own)s), where the other has %(instead)s.")
            % values
        )
    else:
        yield _("Most of it is in %(node)s (%(own)s).") % values
    if result.misestimated is not None:
        yield _rows_of(result.misestimated.node, result.misestimated.factor)
