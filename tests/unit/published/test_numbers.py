"""Numbers as publications print them."""

import pytest

from runs.published import figures


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
