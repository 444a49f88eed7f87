"""Reports as reStructuredText: docutils reads them without a warning, and finds what was meant."""

import io
import zipfile

import pytest
from docutils.core import publish_doctree
from docutils.nodes import Text, bullet_list, figure, image, literal_block, section, title
from docutils.nodes import table as table_node

from runs.reports import rst
from runs.reports.archive import Paragraph, Report, Section
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
    assert [each[0].astext() for each in document.findall(section)] == ["Title", "Second"]


def test_text_of_several_lines_is_paragraphs():
    made = Report("n", "en", "T", "", (Section("S", (Paragraph("a\nb\n\n\nc"),)),))
    assert "\na b\n\nc\n" in rst.text(made)


def test_the_zip_has_the_text_and_the_figures_that_it_names():
    with zipfile.ZipFile(io.BytesIO(rst.zipped(report()))) as archive:
        assert sorted(archive.namelist()) == ["sample/figures/tps.svg", "sample/sample.rst"]
        assert archive.read("sample/figures/tps.svg").startswith(b"<svg")


def test_the_same_report_gives_the_same_file():
    assert rst.zipped(report()) == rst.zipped(report())
