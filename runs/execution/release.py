"""Whether the server that was started is of the release to be measured."""

from collections.abc import Mapping

from runs.execution.errors import TargetProblem
from runs.execution.facts import version_text
from runs.execution.plan import RunPlan
from runs.wording import gettext_noop as _


def check(plan: RunPlan, settings: Mapping[str, Mapping[str, str]]) -> None:
    """Raise TargetProblem `installation_changed` if the reported `settings` say it is not.

    Packages upgrade a release in place: the run would be stored in the cell of the old one. All
    development versions of a major version share one number, so their names are compared.
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
