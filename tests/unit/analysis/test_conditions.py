"""Which differences forbid a comparison, and how one made despite them is labelled."""

import pytest

from runs.analysis.comparison import compare
from runs.analysis.conditions import Conditions, judge
from runs.analysis.summary import Summary, summarise

HERE = Conditions(hardware="xeon", environment="linux 6")
BASE, HEAD = [100.0, 101.0, 99.0, 100.5], [120.0, 121.0, 119.0, 120.5]


def compared(base=BASE, head=HEAD, **options):
    return compare(summarise(base), summarise(head), direction="higher", **options)


@pytest.mark.parametrize(
    ("there", "reasons"),
    [
        (HERE, ()),
        (Conditions("epyc", "linux 6"), ("hardware_differs",)),
        (Conditions("xeon", "linux 5"), ("environment_differs",)),
        (Conditions("epyc", "linux 5"), ("hardware_differs", "environment_differs")),
    ],
)
def test_other_hardware_or_environment_is_not_comparable(there, reasons):
    comparison = compared(conditions=(HERE, there))

    assert comparison.verdict == ("not_comparable" if reasons else "faster")
    assert comparison.reasons == reasons
    assert (comparison.ratio is None) == bool(reasons)


def test_an_ignored_difference_is_compared_and_labelled():
    comparison = compared(
        conditions=(HERE, Conditions("epyc", "linux 6")), ignore={"hardware_differs"}
    )

    assert comparison.verdict == "faster"
    assert comparison.despite == ("hardware_differs",)


def test_ignoring_one_difference_does_not_ignore_the_other():
    judgement = judge(HERE, Conditions("epyc", "linux 5"), {"hardware_differs"})

    assert judgement.reasons == ("environment_differs",)
    assert judgement.despite == ("hardware_differs",)


@pytest.mark.parametrize("there", [Conditions("xeon", None), Conditions(None, "linux 6")])
def test_what_a_side_does_not_tell_is_no_difference_but_is_told(there):
    unknown = "hardware_unknown" if there.hardware is None else "environment_unknown"

    for pair in ((HERE, there), (there, HERE)):
        comparison = compared(conditions=pair)
        assert comparison.verdict == "faster"
        assert comparison.despite == (unknown,)


def test_a_cell_that_was_not_measured_is_not_comparable():
    comparison = compare(None, summarise(HEAD), direction="higher")

    assert comparison.verdict == "not_comparable"
    assert comparison.reasons == ("not_measured",)


def test_all_reasons_are_told_at_once():
    comparison = compared([0.0, 1.0], conditions=(HERE, Conditions("epyc", "linux 6")))

    assert comparison.reasons == ("hardware_differs", "not_positive")


def published(median, runs):
    return Summary(runs, median, median, median, median, log_mean=summarise([median]).log_mean)


@pytest.mark.parametrize(
    ("base", "head", "reasons"),
    [
        (published(100.0, 3), published(120.0, 3), ("spread_unknown",)),
        (published(100.0, 3), summarise([120.0, 121.0]), ("spread_unknown",)),
        (published(100.0, 1), summarise([120.0, 121.0]), ("single_run",)),
        (published(100.0, 1), published(120.0, 3), ("single_run", "spread_unknown")),
    ],
)
def test_a_published_median_gives_a_ratio_and_says_why_it_has_no_interval(base, head, reasons):
    comparison = compare(base, head, direction="higher")

    assert comparison.verdict == "too_few_runs"
    assert comparison.ratio == pytest.approx(1.2, rel=0.01)
    assert (comparison.low, comparison.log_error) == (None, None)
    assert comparison.reasons == reasons


def test_the_values_add_a_second_opinion_by_ranks():
    comparison = compared(values=(BASE, HEAD))

    assert comparison.mann_whitney_p == pytest.approx(2 / 70)
    assert comparison.hodges_lehmann.low < 1.2 < comparison.hodges_lehmann.high


def test_without_the_values_there_is_no_second_opinion():
    assert compared().mann_whitney_p is None
    assert compared().hodges_lehmann is None


def test_values_of_another_cell_are_refused():
    with pytest.raises(ValueError, match="not those that were summarised"):
        compared(values=(BASE, HEAD[:3]))
