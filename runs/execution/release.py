"""Whether the server that was started is of the release that is to be measured."""

from collections.abc import Mapping

from runs.execution.errors import TargetProblem
from runs.execution.facts import version_text
from runs.execution.plan import RunPlan
from runs.wording import gettext_noop as _


def check(plan: RunPlan, settings: Mapping[str, Mapping[str, str]]) -> None:
    """Raise TargetProblem `installation_changed` where it is not, by `settings` as it tells them.

    Packages upgrade a release in place: the run would stand in the cell of the one before. All
    development versions of a major version have one number, so that their names are compared.
    """
    wanted, said = str(plan.levels.get("version", "")), settings["server_version"]["setting"]
    is_other = int(settings["server_version_num"]["setting"]) != plan.version_num
    if any(each.isalpha() for each in wanted):
        is_other |= version_text(f"postgres (PostgreSQL) {said}") != wanted
    if not is_other:
        return
    raise TargetProblem(
        f"{plan.bindir} does not start as PostgreSQL {wanted or plan.version_num} any more: "
        f"the server says that it is {said}.",
        code="installation_changed",
        remedy=_("Inspect the server again; what is gone is then no longer offered."),
    )
