"""Reports as reStructuredText: docutils reads them without a warning, and finds what was meant."""

import csv
import io
import json
import re
import zipfile

import pytest
from docutils.core import publish_doctree
from docutils.nodes import (
    Text,
    bullet_list,
    figure,
    image,
    literal_block,
    section,
    title,
)
from docutils.nodes import table as table_node

from runs.reports import markdown, rst, tables
from runs.reports.report import Listing, Paragraph, Report, Section, Table
from tests.unit.reports.samples import NASTY, report


def read(text):
    """docutils' own reading; any warning is an error."""
    settings = {"halt_level": 2, "report_level": 2, "warning_stream": io.StringIO()}
    return publish_doctree(text, settings_overrides=settings)


def only(document, kind):
    (found,) = document.findall(kind)
    return found


@pytest.mark.parametrize("words", NASTY)
def test_words_stay_words(words):
    document = read(rst.text(report(words)))
    told = " ".join(words.split())
    assert [each.astext() for each in document.findall(title)].count(told) >= 1
    assert [each.astext() for each in document.findall(Text)].count(told) >= 6


@pytest.mark.parametrize("words", NASTY)
def test_every_block_is_what_it_is_meant_to_be(words):
    document = read(rst.text(report(words)))
    assert len(list(document.findall(table_node))) == 2
    assert only(document, image)["uri"] == "figures/tps.svg"
    assert len(list(document.findall(figure))) == 1
    assert len(only(document, bullet_list).children) == 2
    assert "indented" in only(document, literal_block).astext()


def test_sections_are_of_one_level():
    document = read(rst.text(report()))
    assert [each[0].astext() for each in document.findall(section)] == [
        "Title",
        "Second",
    ]


def test_text_of_several_lines_is_paragraphs():
    made = Report("n", "en", "T", "", (Section("S", (Paragraph("a\nb\n\n\nc"),)),))
    assert "\na b\n\nc\n" in rst.text(made)


def test_the_zip_has_the_text_and_the_figures_that_it_names():
    with zipfile.ZipFile(io.BytesIO(rst.zipped(report()))) as archive:
        assert sorted(archive.namelist()) == [
            "sample/figures/tps.svg",
            "sample/sample.rst",
        ]
        assert archive.read("sample/figures/tps.svg").startswith(b"<svg")


def test_the_same_report_gives_the_same_file():
    assert rst.zipped(report()) == rst.zipped(report())


def columns(line):
    """The cells of a row, by GitHub's rule: a pipe parts them unless it is escaped."""
    assert line.startswith("|")
    assert line.endswith("|")
    return re.split(r"(?<!\\)\|", line[1:-1])


def tables_in(text):
    return [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]


@pytest.mark.parametrize("words", NASTY)
def test_every_row_of_a_table_is_as_wide_as_its_heads(words):
    (rows,) = tables_in(markdown.text(report(words)))
    assert {len(columns(row)) for row in rows} == {2}
    assert re.fullmatch(r"\| -{3,} \| -{2,}: \|", rows[1])


@pytest.mark.parametrize("words", NASTY)
def test_there_are_no_other_headings_than_the_reports(words):
    outside_fences = re.sub(
        r"(?ms)^(`{3,})text$.*?^\1$", "", markdown.text(report(words))
    )
    headings = [
        line for line in outside_fences.splitlines() if re.match(r"#{1,6}\s", line)
    ]
    assert len(headings) == 3


@pytest.mark.parametrize(
    "words", ["<script>x</script>", "[a](javascript:b)", "![x](y)"]
)
def test_no_markup_comes_in_by_words(words):
    text = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", markdown.text(report(words)))
    assert not re.search(r"(?<!\\)<", text)
    links = re.findall(r"(?<!\\)\]\((.*?)\)", text)
    assert links == ["figures/tps.svg"]


def test_japanese_columns_are_padded_by_their_width():
    text = markdown.table(Table("", ("条件", "x"), (("a", "1"),)))
    assert text.splitlines()[0] == "| 条件 | x   |"
    assert text.splitlines()[2] == "| a    | 1   |"


def test_a_listing_with_fences_gets_a_longer_one():
    made = Report("n", "en", "T", "", (Section("S", (Listing("", "````\n"),)),))
    assert "`````text\n````\n`````" in markdown.text(made)


CELL = {"levels": {"clients": 1, "text": "a\nb"}, "version": "18.1"}


@pytest.mark.parametrize(
    "head", [{"campaign": "ü", "factors": {"clients": [1, 2]}}, {}]
)
@pytest.mark.parametrize(
    "rows", [[], [{"n": 1}], [{"n": 1, "of": [1.5, None]}, {"n": 2}]]
)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_it_is_written_as_in_one_go(head, rows, count):
    cells = (tables.element(CELL, summaries=iter(rows), none=[]) for _ in range(count))
    whole = head | {"cells": [CELL | {"summaries": rows, "none": []}] * count}

    written = "".join(tables.document(head, cells=cells))

    assert written == json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def test_lists_are_read_in_their_order_as_they_are_written():
    seen = []

    def rows(name):
        for number in range(2):
            seen.append((name, number))
            yield {"n": number}

    for _text in tables.element({}, first=rows("first"), second=rows("second")):
        pass

    assert seen == [("first", 0), ("first", 1), ("second", 0), ("second", 1)]


# Tables for other programs and for papers.


TABLE = tables.Table(
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
    written = tables.as_csv(tables.Table(("a",), ((text,),)))

    assert written == f"a\r\n'{text}\r\n"


def test_a_head_is_no_formula_and_a_negative_number_stays_one():
    assert (
        tables.as_csv(tables.Table(("=x",), ((-1,), (-0.5,))))
        == "'=x\r\n-1\r\n-0.5\r\n"
    )


def test_markdown_aligns_numbers_and_keeps_its_columns():
    assert tables.as_markdown(TABLE) == (
        "**Ratios to 9.2**\n\n"
        "| Series | Clients | TPS | Verdict |\n"
        "| --- | ---: | ---: | --- |\n"
        "| 9.2 \\| on & off | 1 | 12346 | – |\n"
        "| 50 % \\_x\\_ | 2 | – | no evidence |\n"
    )


def test_latex_escapes_what_it_would_read_as_commands():
    written = tables.as_latex(TABLE)

    assert r"\begin{tabular}{lrrl}" in written
    assert r"9.2 | on \& off & 1 & 12346 & -- \\" in written
    assert r"50 \% \_x\_ & 2 & -- & no evidence \\" in written


def test_json_has_no_number_that_json_does_not_know():
    found = json.loads(
        tables.as_json({"a": [1.5, float("nan"), (float("inf"),)], "b": "é"})
    )

    assert found == {"a": [1.5, None, [None]], "b": "é"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98765, "0.9877"),
        (1234.5, "1234"),
        (99.5, "99.5"),
        (7, "7"),
        (None, "–"),
        ("x", "x"),
    ],
)
def test_numbers_are_shown_with_the_digits_that_say_something(value, text):
    assert tables.shown(value) == text
