"""The words beside a value that is compared: it lies within its runs, or says what it is."""

import itertools

import pytest

from runs.analysis.inference.cells import CellValue
from runs.analysis.summary import summarise
from runs.cells.selectors.value_words import runs_of


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "1 – 3 · n = 3"),
        (CellValue(2.0), "1 – 3 · n = 3"),
        (CellValue(0.9), "by the model, which allows for the rounds; runs 1 – 3"),
        (
            CellValue(0.9, is_of_slices=True),
            "mean of the slices that count; whole runs 1 – 3 · n = 3",
        ),
    ],
)
def test_a_value_beside_its_runs_says_what_it_is(value, words):
    assert runs_of(summarise([1.0, 2.0, 3.0]), value).startswith(words)


def test_no_value_lies_beside_its_runs_without_a_word():
    for value, is_of_slices in itertools.product(
        (0.5, 1.0, 2.5, 3.0, 9.0), (False, True)
    ):
        text = runs_of(
            summarise([1.0, 3.0]), CellValue(value, is_of_slices=is_of_slices)
        )
        is_named = not text.startswith("1 ")
        assert is_named == (is_of_slices or not 1.0 <= value <= 3.0)


def test_what_is_kept_of_a_value_says_what_it_is():
    value = CellValue(2.0, 1.0, 3.0, (2.0,), is_of_slices=True)
    assert CellValue.from_json(value.to_json()) == value
