"""The forest plot: ratios with their intervals."""

import math

import pytest

from runs.charts.forest import Branch, Words, forest

WORDS = Words("ratio", "interval", {"faster": "faster!"})


def test_rows_stand_in_their_order_from_the_top_with_their_intervals():
    figure = forest(
        [
            Branch("a", "faster", 1.5, 1.4, 1.7, "/a/"),
            Branch("b", "undecided", 1.01, 0.9, 1.1),
            Branch("c", "faster", 1.2, 1.1, 1.3),
        ],
        minimum_effect=0.03,
        words=WORDS,
    )

    faster, unsure = figure["data"]
    assert (faster["name"], faster["text"], faster["y"]) == ("faster!", ["a", "c"], [3, 1])
    assert faster["error_x"]["array"] == pytest.approx([0.2, 0.1])
    assert faster["error_x"]["arrayminus"] == pytest.approx([0.1, 0.1])
    assert faster["meta"]["urls"] == ["/a/", ""]
    assert unsure["y"] == [2]
    assert figure["layout"]["yaxis"]["ticktext"] == ["a", "b", "c"]


def test_a_ratio_without_an_interval_has_no_whiskers():
    figure = forest(
        [Branch("a", "too_few_runs", 0.9, None, None)], minimum_effect=0.03, words=WORDS
    )

    assert figure["data"][0]["error_x"]["array"] == [None]
    assert figure["data"][0]["marker"]["symbol"] == "circle-open"


@pytest.mark.parametrize("ratio", [0.009, 0.97, 1.0, 1.2, 107.0])
def test_the_axis_holds_one_and_the_ratio_and_names_both_ends(ratio):
    figure = forest(
        [Branch("a", "undecided", ratio, ratio * 0.9, ratio * 1.1)],
        minimum_effect=0.03,
        words=WORDS,
    )

    low, high = figure["layout"]["xaxis"]["range"]
    assert low < min(0, math.log10(ratio * 0.9))
    assert high > max(0, math.log10(ratio * 1.1))
    assert 1.0 in figure["layout"]["xaxis"]["tickvals"]
    assert len(figure["layout"]["xaxis"]["tickvals"]) > 2


def test_the_band_shows_effects_below_the_minimum_alike_in_both_directions():
    figure = forest([Branch("a", "slower", 0.5, 0.4, 0.6)], minimum_effect=0.25, words=WORDS)

    band = figure["layout"]["shapes"][0]
    assert (band["x0"], band["x1"]) == (0.8, 1.25)
