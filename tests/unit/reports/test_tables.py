"""Tables for other programs and for papers."""

import csv
import io
import json

import pytest

from runs.reports import tables
from runs.reports.tables import Table

TABLE = Table(
    heads=("Series", "Clients", "TPS", "Verdict"),
    rows=(("9.2 | on & off", 1, 12345.678, "–"), ("50 % _x_", 2, None, "no evidence")),
    caption="Ratios to 9.2",
)


def test_csv_keeps_every_digit_and_every_sign():
    rows = list(csv.reader(io.StringIO(tables.as_csv(TABLE))))

    assert rows == [
        ["Series", "Clients", "TPS", "Verdict"],
        ["9.2 | on & off", "1", "12345.678", "–"],
        ["50 % _x_", "2", "", "no evidence"],
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x"])
def test_a_text_is_no_formula_for_a_spreadsheet(text):
    written = tables.as_csv(Table(("a",), ((text,),)))

    assert written == f"a\r\n'{text}\r\n"


def test_a_head_is_no_formula_and_a_negative_number_stays_one():
    assert tables.as_csv(Table(("=x",), ((-1,), (-0.5,)))) == "'=x\r\n-1\r\n-0.5\r\n"


def test_markdown_aligns_numbers_and_keeps_its_columns():
    assert tables.as_markdown(TABLE) == (
        "**Ratios to 9.2**\n\n"
        "| Series | Clients | TPS | Verdict |\n"
        "| --- | ---: | ---: | --- |\n"
        "| 9.2 \\| on & off | 1 | 12346 | – |\n"
        "| 50 % _x_ | 2 | – | no evidence |\n"
    )


def test_latex_escapes_what_it_would_read_as_commands():
    written = tables.as_latex(TABLE)

    assert r"\begin{tabular}{lrrl}" in written
    assert r"9.2 | on \& off & 1 & 12346 & -- \\" in written
    assert r"50 \% \_x\_ & 2 & -- & no evidence \\" in written


def test_json_has_no_number_that_json_does_not_know():
    found = json.loads(tables.as_json({"a": [1.5, float("nan"), (float("inf"),)], "b": "é"}))

    assert found == {"a": [1.5, None, [None]], "b": "é"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.98765, "0.9877"), (1234.5, "1234"), (99.5, "99.5"), (7, "7"), (None, "–"), ("x", "x")],
)
def test_numbers_are_shown_with_the_digits_that_say_something(value, text):
    assert tables.shown(value) == text
