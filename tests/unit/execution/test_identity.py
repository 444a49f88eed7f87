"""Whether two registrations lead to one machine, by what it says of itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from runs.execution.machine.identity import (
    Identity,
    Seen,
    is_in_doubt,
    is_one_machine,
    read,
)
from runs.execution.machine.sections import sections_of

BEGINNING = datetime(2026, 11, 28, tzinfo=UTC)
RACK = Identity(machine_id="a" * 32, boot_id="boot-1", product_uuid="uuid-1")


def seen(first=0, last=0, **fields):
    """An identity that was read between two minutes."""
    times = [BEGINNING + timedelta(minutes=minutes) for minutes in (first, last)]
    return Seen(replace(RACK, **fields), *times)


CASES = {
    "the same ids": (seen(), seen(), True, False),
    "a container with a machine-id of its own": (
        seen(),
        seen(machine_id="b" * 32),
        True,
        False,
    ),
    "a container without any": (
        seen(),
        seen(machine_id="", product_uuid=""),
        True,
        False,
    ),
    "another machine": (
        seen(),
        seen(machine_id="b" * 32, boot_id="boot-2", product_uuid="uuid-2"),
        False,
        False,
    ),
    "nothing is known of one": (
        seen(),
        seen(machine_id="", boot_id="", product_uuid=""),
        False,
        False,
    ),
    "a copy with the firmware of another machine": (
        seen(),
        seen(product_uuid="uuid-2"),
        False,
        False,
    ),
    "started again since the other look": (
        seen(product_uuid="", last=5),
        seen(product_uuid="", first=6, last=9, boot_id="boot-2"),
        True,
        True,
    ),
    "a copy whose kernel ran at the same time": (
        seen(product_uuid="", last=8),
        seen(product_uuid="", first=6, last=9, boot_id="boot-2"),
        False,
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_machine_or_two(case):
    one, other, is_one, is_doubtful = CASES[case]
    for left, right in ((one, other), (other, one)):
        assert is_one_machine(left, right) is is_one
        assert is_in_doubt(left, right) is is_doubtful


def test_a_look_at_another_kernel_begins_its_time_anew():
    before, now = seen(last=5), BEGINNING + timedelta(minutes=9)
    assert before.again(RACK, now) == replace(before, last=now)
    restarted = replace(RACK, boot_id="boot-2")
    assert before.again(restarted, now) == Seen(restarted, now, now)
    assert Seen.from_json(before.to_json()) == before


def test_what_is_read_of_a_report():
    report = (
        "== machine_id\nabc\n== boot_id\nxyz\n== product_uuid\nAB-CD\n== fences\n3\nold\n12\n"
        "== end\n"
    )
    assert read(sections_of(report)) == Identity("abc", "xyz", "ab-cd", (3, 12))
    assert read(sections_of("== machine_id\n\n== fences\n")) == Identity()
