"""Numbers as publications print them."""

import pytest

from runs.published import figures, recompute


@pytest.mark.parametrize(
    ("text", "value", "half_unit"),
    [
        ("403.38", 403.38, 0.005),
        ("98.25 %", 98.25, 0.005),
        ("8,150", 8150, 0.5),
        ("1,234,567.8", 1234567.8, 0.05),
        ("(1.44)", 1.44, 0.005),
        ("(2.04E-05)", 2.04e-05, 5e-08),
        ("▲92.3%", -92.3, 0.05),
        ("−3", -3, 0.5),
        ("614.2(*)", 614.2, 0.05),
        ("43.7% [1]", 43.7, 0.05),
        ("62.48[ms]", 62.48, 0.005),
        ("7/4 =1.75", 1.75, 0.005),
        ("13/9 ≃1.44", 1.44, 0.005),
        ("3台", 3, 0.5),
        ("0", 0, 0.5),
        ("5000", 5000, 0.5),
    ],
)
def test_a_printed_number_is_read_with_its_rounding(text, value, half_unit):
    found = figures.read(text)

    assert found.value == value
    assert found.half_unit == pytest.approx(half_unit, rel=1e-12)


@pytest.mark.parametrize(("text", "value"), [("15MB", 15), ("1.5GB", 1500), ("75 [GB]", 75000)])
def test_units_of_several_sizes_become_one(text, value):
    assert figures.read(text, {"MB": 1, "GB": 1000}).value == value


def test_the_rounding_grows_with_the_unit():
    assert figures.read("1.5GB", {"GB": 1000}).half_unit == 50


@pytest.mark.parametrize("text", ["", "fast", "276.6 ▲92.9%", "1 2"])
def test_what_is_not_one_number_is_refused(text):
    with pytest.raises(ValueError, match="is not one number"):
        figures.read(text)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="The unit “TB” is not among MB"):
        figures.read("3TB", {"MB": 1})


@pytest.mark.parametrize(
    ("text", "empty"), [("", True), (" -- ", True), ("n/a", True), ("-", True), ("0", False)]
)
def test_dashes_are_no_figure(text, empty):
    assert figures.is_empty(text) is empty


def ratio(value, base, form):
    return recompute.ratio(figures.read(value), figures.read(base), form, texts=(value, base))


@pytest.mark.parametrize(
    ("value", "base", "form", "printed", "computed", "differs"),
    [
        ("418.77", "403.38", "percent", "103.82 %", 103.815, False),
        ("418.77", "403.38", "percent", "103.83 %", 103.815, True),
        ("6236.96", "6509.86", "percent", "99.93 %", 95.808, True),
        ("0.07", "3657.71", "factor", "(2.04E-05)", 1.9138e-05, False),
        ("0.07", "3657.71", "factor", "(2.06E-05)", 1.9138e-05, True),
        ("0.00", "8119.80", "factor", "(0)", 0.0, False),
        ("2.7083", "10247", "inverse", "3783.6", 3783.554, False),
        ("7420.9", "6913.6", "inverse", "0.93164", 0.931639, False),
        ("296.4", "3869.2", "loss", "▲92.3%", -92.3395, False),
        ("3379.8", "15561.3", "loss", "▲78.23%", -78.2807, True),
        ("437.2413", "437.2413", "percent", "100%", 100.0, False),
        ("253.9", "198.5", "factor", "(1.42)", 1.27909, True),
    ],
)
def test_a_ratio_differs_where_no_rounding_explains_it(
    value, base, form, printed, computed, differs
):
    found = ratio(value, base, form)

    assert found.value == pytest.approx(computed, rel=1e-4)
    assert found.differs(figures.read(printed)) is differs


def test_nothing_is_compared_with_what_may_be_zero():
    assert ratio("3", "0.00", "factor") is None


@pytest.mark.parametrize(
    ("repeats", "printed", "differs"),
    [
        (("210.5", "129.3", "198.5"), "198.5", False),
        (("210.5", "129.3", "198.5"), "199", False),
        (("210.5", "129.3", "198.5"), "210.5", True),
        (("10", "20"), "15", False),
    ],
)
def test_a_median_is_that_of_the_printed_repeats(repeats, printed, differs):
    found = recompute.median([figures.read(each) for each in repeats], texts=repeats)

    assert found.differs(figures.read(printed)) is differs


@pytest.mark.parametrize(
    ("printed", "differs"), [("6873.62", False), ("6873.61", False), ("6873.59", True)]
)
def test_a_sum_may_be_off_by_the_rounding_of_all_its_parts(printed, differs):
    parts = ("3850.05", "3023.57")

    found = recompute.total([figures.read(each) for each in parts], texts=parts)

    assert found.differs(figures.read(printed)) is differs


@pytest.mark.parametrize(("text", "differs"), [("9254.0", False), ("9254", False), ("9253", True)])
def test_the_same_figure_elsewhere_may_have_fewer_digits(text, differs):
    found = recompute.same(figures.read(text), text=text)

    assert found.differs(figures.read("9254.0")) is differs
