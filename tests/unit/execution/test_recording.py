"""How often a monitor looks, and what it takes of the disk."""

import pytest

from runs.execution import recording

HOUR = 3600


@pytest.mark.parametrize(
    ("seconds", "interval", "samples"),
    [
        (0, 1, 3600),
        (60, 1, 3660),
        (2 * HOUR, 1, 10_800),
        (2 * HOUR + 1, 2, 5401),
        (48 * HOUR, 24, 7350),
    ],
)
def test_a_long_run_is_looked_at_more_seldom(seconds, interval, samples):
    parameters = {"duration": seconds}
    assert recording.interval(parameters) == interval
    assert recording.samples(parameters) == samples


def test_a_recording_of_days_takes_no_more_of_the_disk_than_one_of_hours():
    assert recording.needed_bytes({}) == 0
    assert recording.needed_bytes({"duration": 60}) == 60 * recording.BYTES_PER_SAMPLE
    most = recording.MOST_SAMPLES * recording.BYTES_PER_SAMPLE
    assert recording.needed_bytes({"duration": 48 * HOUR}) == most < 200e6
