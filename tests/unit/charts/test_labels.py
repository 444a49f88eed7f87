"""Labels at line ends keep clear of each other."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runs.charts.scaling import LINE_HEIGHT, PLOT_HEIGHT, shifts


def test_labels_that_are_far_apart_stay_at_their_lines():
    assert shifts([100, 500, 900], 1000) == [0, 0, 0]


def test_two_labels_at_one_place_move_apart_by_the_height_of_a_line():
    assert shifts([500, 500], 1000) == [-LINE_HEIGHT / 2, LINE_HEIGHT / 2]


def test_a_figure_of_zeros_has_labels_too():
    assert shifts([0, 0], 0) == [-LINE_HEIGHT / 2, LINE_HEIGHT / 2]


@given(st.lists(st.floats(min_value=0, max_value=1000), max_size=15))
def test_no_label_covers_another_and_none_overtakes_another(ends):
    moved = shifts(ends, 1000)

    places = [end * PLOT_HEIGHT / 1000 + shift for end, shift in zip(ends, moved, strict=True)]
    in_order = [places[index] for index in sorted(range(len(ends)), key=ends.__getitem__)]
    for lower, upper in itertools.pairwise(in_order):
        assert upper - lower >= LINE_HEIGHT - 0.2
