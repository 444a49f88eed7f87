"""The comparison of the archive with documents, on a small text of our own."""

from pathlib import Path

import pytest

from runs.published import reading
from tests.published import checker
from tests.published.checker import Region, Regions

SAMPLE = Path(__file__).parents[1] / "samples/published/harbour-2020.yaml"
REGION = Region(("Table 1.1:", "ratio"), "1.3 Discussion")
TEXT = """
See table 1.1. It has 26% more.

Table 1.1: Reading of 9.2 and 9.3
clients TPS idle TPS ratio

1 1,000.00 98.25 % 1050.00 105.00 %
2 2,000.00
90.00 % 2500.00 120.00 %
7/68 page
4 0 (*1) 4000.00

1.3 Discussion of 3 things
"""


def table(file=SAMPLE):
    return reading.read(file).campaigns[0]


def found(text):
    return checker.printed(text, REGION, ignore=r"^\d+/68 page")


def test_a_table_as_printed_is_found_equal():
    assert checker.transcribed(table()) == found(TEXT)


@pytest.mark.parametrize(
    ("printed", "otherwise"),
    [
        ("98.25 %", "98.52 %"),
        ("2500.00", "2500.0"),
        ("1,000.00", "1000.00"),
        ("105.00 %", ""),
        ("4000.00", "4000.00 3"),
        ("120.00 %", "▲120.00 %"),
        ("1050.00 105.00", "105.00 1050.00"),
    ],
)
def test_a_missing_extra_or_different_number_is_seen(printed, otherwise):
    assert printed in TEXT

    assert checker.transcribed(table()) != found(TEXT.replace(printed, otherwise))


def test_digits_of_names_are_no_numbers():
    assert checker.numbers("dbt3 V13.4 2.04E-05 8kB ▲1,234.5% 9 (*1) [2]") == [
        "2.04E-05",
        "8",
        "▲1,234.5",
        "9",
    ]


@pytest.mark.parametrize("marker", ["Table 1.1:", "1.3 Discussion"])
def test_a_marker_that_is_not_in_the_text_is_told(marker):
    with pytest.raises(LookupError, match=marker):
        found(TEXT.replace(marker, ""))


def test_captions_are_listed_once():
    assert checker.captions(TEXT + TEXT, r"^Table (\d\.\d):") == ["1.1"]


def test_the_documents_are_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHLAB_SOURCES", str(tmp_path))
    assert checker.sources() == tmp_path
    monkeypatch.setenv("BENCHLAB_SOURCES", str(tmp_path / "absent"))
    assert checker.sources() is None


def test_a_conclusion_in_another_section_and_an_unprinted_line_are_seen():
    document = (
        "1.2. Method\n(1) Setting\n$ run it\n(2) Outcome\nIt has\n26% more\n1.3. Rest\n"
    )
    regions = Regions("", "(?!)", "(?!)", r"^(\d\.\d)\. ", {}, ())
    campaign = table()

    assert checker.misplaced(campaign, document, regions) == []
    assert (
        checker.section(document, "1.2 (2)", headings=regions.headings)
        == "Ithas26%more"
    )
    assert checker.misplaced(campaign, document.replace("1.2.", "1.4."), regions) != []
    assert checker.misplaced(campaign, document.replace("26%", "27%"), regions) != []
    assert checker.unprinted(campaign, document) == [
        "harbour-reading: script.sql: SELECT 1;",
        "harbour-reading: plan.txt: Seq Scan",
    ]
