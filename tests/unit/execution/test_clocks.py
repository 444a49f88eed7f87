"""Clocks: a certain deviation is reported, one that only a slow line suggests is not."""

import pytest

from runs.execution.clock_skew import Skew
from runs.execution.clocks import is_off


@pytest.mark.parametrize(
    ("skews", "off"),
    [
        ([], False),
        ([Skew(0.4, 0.01)], False),
        ([Skew(-1.5, 0.01)], True),
        ([Skew(1.5, 1.0)], False),
        ([Skew(0.8, 0.01), Skew(-0.8, 0.01)], True),
    ],
)
def test_only_what_is_certain_is_off(skews, off):
    assert is_off(skews) is off
