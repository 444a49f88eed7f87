"""The release that is measured is the one that was asked for, or nothing is measured."""

import pytest

from runs.execution import release
from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan


def plan(version: str, number: int) -> RunPlan:
    # fmt: off
    return RunPlan(
        run_id=7, campaign="c", scenario="s", host="h", port=22, username="u", base_dir="/b",
        bindir="/p/bin", version_num=number, client_bindir="/p/bin", client_version_num=number,
        settings={}, initdb_options=(), levels={"version": version}, parameters={}, cluster_key="",
    )
    # fmt: on


def served(version: str, number: int) -> dict[str, dict[str, str]]:
    return {
        "server_version": {"setting": version},
        "server_version_num": {"setting": str(number)},
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("16.14", 160014), ("16.14 (Debian 16.14-1.pgdg120+1)", 160014)),
        (("9.6.24", 90624), ("9.6.24", 90624)),
        (("19beta1", 190000), ("19beta1 (Debian 19~beta1-1.pgdg120+1)", 190000)),
        (("19devel", 190000), ("19devel", 190000)),
        (("11.2", 110002), ("11.2-YB-2.17", 110002)),
    ],
)
def test_the_release_that_was_asked_for_is_measured(wanted, said):
    release.check(plan(*wanted), served(*said))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("16.14", 160014), ("16.15 (Debian 16.15-1.pgdg120+1)", 160015)),
        (("9.6.24", 90624), ("9.5.24", 90524)),
        (("19beta1", 190000), ("19beta2", 190000)),
        (("19beta1", 190000), ("19.0", 190000)),
        (("17.2", 170002), ("18.4", 180004)),
    ],
)
def test_another_release_in_the_same_place_is_not_measured(wanted, said):
    with pytest.raises(
        TargetProblem, match=f"/p/bin .* {wanted[0]} .* {said[0].split()[0]}"
    ) as told:
        release.check(plan(*wanted), served(*said))
    assert told.value.code == "installation_changed"
    assert "Inspect the server again" in told.value.remedy
