"""Reports as Markdown: tables as wide as their heads, and nothing that people wrote is markup."""

import re

import pytest

from runs.reports import markdown
from runs.reports.archive import Listing, Report, Section, Table
from tests.unit.reports.samples import NASTY, report


def columns(line):
    """The cells of a row, by GitHub's rule: a pipe parts them unless it is escaped."""
    assert line.startswith("|")
    assert line.endswith("|")
    return re.split(r"(?<!\\)\|", line[1:-1])


def tables(text):
    return [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]


@pytest.mark.parametrize("words", NASTY)
def test_every_row_of_a_table_is_as_wide_as_its_heads(words):
    (rows,) = tables(markdown.text(report(words)))
    assert {len(columns(row)) for row in rows} == {2}
    assert re.fullmatch(r"\| -{3,} \| -{2,}: \|", rows[1])


@pytest.mark.parametrize("words", NASTY)
def test_there_are_no_other_headings_than_the_reports(words):
    outside_fences = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", markdown.text(report(words)))
    headings = [line for line in outside_fences.splitlines() if re.match(r"#{1,6}\s", line)]
    assert len(headings) == 3


@pytest.mark.parametrize("words", ["<script>x</script>", "[a](javascript:b)", "![x](y)"])
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
