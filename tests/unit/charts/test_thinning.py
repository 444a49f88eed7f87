"""Thinning of long series."""

from hypothesis import given
from hypothesis import strategies as st

from runs.charts.timeline import thin


def test_a_short_series_is_left_alone():
    assert thin([1.0, None, 3.0]) == [0, 1, 2]


def test_a_single_spike_in_48_hours_is_kept():
    values = [1000.0] * 172_800
    values[123_456] = 3.0

    kept = thin(values)

    assert 123_456 in kept
    assert len(kept) <= 2000


def test_a_stretch_without_values_stays_visible_as_a_gap():
    values = [1.0] * 100 + [None] * 100 + [1.0] * 100

    assert None in [values[index] for index in thin(values, 30)]


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=300),
    st.integers(min_value=2, max_value=50),
)
def test_the_highest_and_the_lowest_value_survive_in_order(values, maximum):
    kept = thin(values, maximum)

    assert len(kept) <= maximum
    assert kept == sorted(set(kept))
    known = [value for value in values if value is not None]
    if known:
        drawn = [values[index] for index in kept if values[index] is not None]
        assert (min(drawn), max(drawn)) == (min(known), max(known))
