"""The updating scenario as the reports define it, in the words of old tools and servers."""

import pytest

from runs.scenarios import registry
from runs.scenarios.fixed_point_update import SCRIPT
from runs.tools import pgbench

UPDATE = registry.get("fixed-point-update")


def test_a_tool_before_9_6_gets_the_script_in_its_dialect():
    assert pgbench.for_tool(SCRIPT, 90305).splitlines() == [
        "\\set naccounts 100000 * :scale",
        "\\setrandom aid_val 1 :naccounts",
        (
            "UPDATE pgbench_accounts SET filler=repeat(md5(current_timestamp::text),2)"
            " WHERE aid = :aid_val;"
        ),
    ]


@pytest.mark.parametrize(
    ("version", "setting"),
    [
        (90224, "checkpoint_segments"),
        (90426, "checkpoint_segments"),
        (90503, "max_wal_size"),
        (180000, "max_wal_size"),
    ],
)
def test_room_for_wal_is_asked_for_by_the_setting_that_the_version_knows(version, setting):
    assert list(UPDATE.cluster(version, {}).settings) == [setting]


def test_an_update_needs_more_disk_than_a_read_of_the_same_scale():
    read = registry.get("fixed-point-read").procedure
    parameters = {"scale": 100, "duration": 60}
    assert UPDATE.procedure.sizes(parameters).disk_bytes > read.sizes(parameters).disk_bytes
