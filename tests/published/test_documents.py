"""The archive says what the documents print: tables, conclusions, command lines."""

import pytest

from runs.published import reading
from tests.each import over
from tests.published import checker

pytestmark = pytest.mark.skipif(
    checker.sources() is None,
    reason="the documents are not here: BENCHLAB_SOURCES names them",
)

REGIONS = {
    slug: regions
    for slug, regions in checker.regions().items()
    if checker.is_here(regions)
}
TABLES = [(slug, campaign) for slug, campaign in checker.tables() if slug in REGIONS]
CAMPAIGNS = [
    (path.stem, campaign)
    for path in reading.files()
    if path.stem in REGIONS
    for campaign in reading.read(path).campaigns
]


def text_of(slug):
    return (checker.sources() / REGIONS[slug].document).read_text()


@over(TABLES)
def test_a_table_has_the_numbers_of_the_document(table):
    slug, campaign = table
    regions = REGIONS[slug]

    found = checker.printed(
        text_of(slug), regions.tables[campaign.table], ignore=regions.ignore
    )

    assert checker.transcribed(campaign) == found, campaign.slug


@over(REGIONS)
def test_every_table_of_the_document_is_transcribed_or_known_to_have_no_figures(slug):
    regions = REGIONS[slug]
    captions = checker.captions(text_of(slug), regions.captions)

    assert set(captions) - set(regions.without_figures) <= set(regions.tables)
    assert set(regions.tables) == {
        each.table for source, each in TABLES if source == slug
    }


def test_every_conclusion_stands_in_its_section_and_every_command_line_is_printed():
    faults, quoted, lines = [], 0, 0
    for slug, campaign in CAMPAIGNS:
        text = text_of(slug)
        faults += checker.misplaced(campaign, text, REGIONS[slug])
        faults += checker.unprinted(campaign, text)
        quoted += sum(1 for each in campaign.findings if each.quote)
        lines += sum(len(artifact.text.splitlines()) for artifact in campaign.artifacts)

    assert faults == []
    assert quoted > 120
    assert lines > 1000
