"""The archive says what the documents print, table by table."""

import pytest

from tests.published import checker

REGIONS = checker.regions()
TABLES = checker.tables()


def text_of(slug):
    return (checker.sources() / REGIONS[slug].document).read_text()


@pytest.mark.parametrize(
    ("slug", "campaign"), TABLES, ids=[f"{slug}-{campaign.table}" for slug, campaign in TABLES]
)
def test_a_table_has_the_numbers_of_the_document(slug, campaign):
    regions = REGIONS[slug]

    found = checker.printed(text_of(slug), regions.tables[campaign.table], ignore=regions.ignore)

    assert checker.transcribed(campaign) == found


@pytest.mark.parametrize("slug", REGIONS)
def test_every_table_of_the_document_is_transcribed_or_known_to_have_no_figures(slug):
    regions = REGIONS[slug]
    captions = checker.captions(text_of(slug), regions.captions)

    assert set(captions) - set(regions.without_figures) <= set(regions.tables)
    assert set(regions.tables) == {each.table for source, each in TABLES if source == slug}
