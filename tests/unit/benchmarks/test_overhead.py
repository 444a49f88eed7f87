"""What of a run's time counts as BenchLab's own."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.overhead import Timed, covered

BEGUN = datetime(2026, 11, 22, tzinfo=UTC)


def at(*spans):
    return [(BEGUN + timedelta(seconds=a), BEGUN + timedelta(seconds=b)) for a, b in spans]


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ((), 0),
        (((0, 2), (3, 4)), 3),
        # Beside each other, one within the other, and in any order.
        (((1, 4), (0, 2)), 4),
        (((0, 10), (2, 3), (4, 5)), 10),
        (((0, 1), (1, 2)), 2),
    ],
)
def test_steps_beside_each_other_count_once(spans, seconds):
    assert covered(at(*spans)) == seconds


def test_the_rest_of_a_run_is_what_is_added():
    [(claimed, finished)] = at((0, 5))
    names = ("start", "pgbench", "read-settings", "monitor")
    steps = dict(zip(names, at((1, 3), (2, 4.5), (0.5, 1), (0, 5)), strict=True))
    run = Timed(claimed, finished, steps)
    assert run.added == 1.5
    assert run.between == 1
    assert run.waits == {"before read-settings": 0.5, "after the last step": 0.5}
