"""All forms of Reproduce, full and quick: each keeps its question, or says that it cannot."""

import re

import pytest

from runs.archive.selectors.reproduction import (
    Asked,
    lost_factors,
    printed,
    reproduction,
    scenario_of,
)
from runs.configurations.services import configurations
from runs.models import Campaign
from runs.scenarios.definition import Place
from tests import factories
from tests.archive.api.conftest import programs
from tests.archive.api.test_sources import places

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("whole_archive")]

BLOCKS = ("group", "join", "load", "scan")
TEXTS = ("7-7", "7-8", "7-9", "7-11", "7-12")
PLACED = ("4-5", "4-6", "4-7", "4-8", "4-9", "4-index-only-cpu")
# What a fresh install cannot ask, by factor: one machine, blocks of 8 kB, no further extension.
LOST = {
    **{f"block-size-2012-{name}": {"block_size"} for name in BLOCKS},
    **{f"wg1-2017-{name}": {"index"} for name in TEXTS},
    **{f"wg1-2013-{name}": {"placement"} for name in PLACED},
    "wg1-2013-4-fio": {"device"},
    "wg1-2017-windows-linux-read": {"os"},
    "wg1-2017-windows-linux-update": {"os"},
}


@pytest.fixture
def fresh(db):
    """A server as the first start has it: 16 and 18, without extensions from elsewhere."""
    configurations.sync()
    made = factories.server("fresh", free_bytes=10**12)
    for version in ("16.14", "18.4"):
        extensions = ["pg_prewarm", "postgres_fdw", "pg_trgm", "pg_buffercache"]
        of_programs = {**programs(version), "extensions": extensions}
        factories.installation(made, version, block_size=8192, **of_programs)
    return made


def forms(server, **further):
    for campaign in places():
        for is_quick in (False, True):
            found = reproduction(campaign, [server], is_quick=is_quick, **further)
            if found is not None:
                yield campaign, found


def test_each_of_all_forms_keeps_its_question_or_says_in_red_that_it_cannot(fresh):
    """By the questions themselves: the levels that are varied in print against those that run."""
    faults, number = [], 0
    for campaign, found in forms(fresh):
        number += 1
        lost = {factor.code for factor in found.lost_factors}
        key = "block-size-2012-buffers"
        expected = LOST.get(
            campaign.slug, {"block_size"} if campaign.slug == key else set()
        )
        form = (campaign.slug, "quick" if found.is_quick else "full")
        if campaign.slug != key and lost != expected:
            faults.append((*form, sorted(lost), sorted(expected)))
        # Whatever list there is: no factor of the scenario falls to one level in silence.
        place = found.choice.scenario.places.get(campaign.slug, Place())
        known = printed.levels(campaign)
        for factor in found.choice.scenario.factors:
            told = printed.list_levels(campaign, place, factor.name, known)
            wanted = place.levels.get(factor.name, told)
            falls = len(set(wanted)) > 1 and len(set(found.levels[factor.name])) < 2
            if falls and factor.name not in lost:
                faults.append((*form, factor.name, "in silence"))
        assert found.keeps_question == (not lost)
    assert not faults, "\n".join(map(str, faults))
    assert (
        number
        == 2 * sum(scenario_of(campaign) is not None for campaign in places())
        > 150
    )


def test_with_a_second_device_the_placements_are_all_asked_quick_as_well(fresh):
    ssd = factories.server("fresh-ssd", free_bytes=10**12)
    faults = []
    for campaign, found in forms(fresh, cluster_servers=[ssd]):
        if campaign.slug.removeprefix("wg1-2013-") not in PLACED:
            continue
        print_has = printed.levels(campaign)["placement"]
        if set(found.levels["placement"]) != set(print_has) or found.lost_factors:
            faults.append((campaign.slug, found.is_quick, found.levels["placement"]))
    assert not faults, faults


def test_what_is_installed_is_asked(server):
    """A server with all block sizes and extensions loses only what one machine cannot have."""
    lost = {
        (campaign.slug, factor.code)
        for campaign, found in forms(server)
        for factor in found.lost_factors
    }
    # Of two printed versions it has one.
    assert {code for _slug, code in lost} <= {"placement", "os", "device", "version"}


def test_one_version_alone_compares_nothing(fresh):
    fresh.installations.filter(version="16.14").delete()
    found = reproduction(Campaign.objects.get(slug="wg1-2013-2-2"), [fresh])
    (lost,) = found.lost_factors
    assert lost.code == "version"
    assert lost.printed == ("9.2.4", "9.3.0") or len(lost.printed) == 2
    assert lost.runs == ("18.4",)


def test_the_api_says_what_is_lost_and_what_would_be_needed(fresh, client):
    def asked(slug, quick):
        address = f"/api/v1/campaigns/{slug}/reproduction/?server=fresh&quick={quick}"
        return client.get(address).json()

    for quick in ("true", "false"):
        body = asked("block-size-2012-load", quick)
        assert body["keeps_question"] is False
        (lost,) = body["lost_factors"]
        assert lost["name"] == "Block size"
        assert lost["printed"] == ["8 kB", "16 kB", "32 kB"]
        assert lost["runs"] == ["8 kB"]
        assert "16 kB, 32 kB" in lost["needed"]
        body = asked("wg1-2017-7-7", quick)
        (lost,) = body["lost_factors"]
        assert "pg_bigm, pgroonga" in lost["needed"]
        body = asked("wg1-2013-2-2", quick)
        assert (body["keeps_question"], body["lost_factors"]) == (True, [])


def test_units_are_as_printed_and_a_year_is_no_quantity(fresh):
    faults, scales = [], 0
    for campaign, found in forms(fresh):
        for change in found.changes:
            texts = f"{change.printed_text} {change.chosen_text}"
            if (
                re.search(r"[1-9],?\d*00 %", texts.replace("100 %", ""))
                or "2,01" in texts
            ):
                faults.append((campaign.slug, change.name, texts))
            if change.name in {"Os", "Row", "Object"}:
                faults.append((campaign.slug, change.name))
            if change.code == "scale_percent":
                scales += 1
                assert change.name == "Scale factor"
    assert not faults, faults
    assert scales > 20


def test_what_is_not_printed_has_one_reason_a_level(fresh):
    """Full and quick may choose otherwise; then the quick form says that it did."""
    faults = []
    reasons = {}
    for campaign, found in forms(fresh):
        for change in found.changes:
            if change.printed is None and change.reason == "the scenario's default":
                key = (campaign.slug, change.code)
                if reasons.setdefault(key, change.chosen_text) != change.chosen_text:
                    faults.append((*key, reasons[key], change.chosen_text))
    assert not faults, faults


def test_the_page_says_it_first_in_red_and_has_no_green_box(fresh, member, client):
    address = "/campaigns/new/?from=block-size-2012-load&quick=true&server=fresh"
    page = member.get(address).content.decode()
    card = page[page.index('id="reproduced"') :]
    first = card.index("problem tone--")
    assert card[first:].startswith("problem tone--error")
    assert (
        "This server cannot ask this: Block size: of 8 kB, 16 kB, 32 kB there is only 8 kB."
        in card
    )
    assert "configure --with-blocksize" in card
    assert "Ready to queue" not in page


def test_what_somebody_adds_to_the_form_is_asked(fresh):
    campaign = Campaign.objects.get(slug="wg1-2013-4-5")
    found = reproduction(campaign, [fresh])
    asked = Asked(found.choice.scenario, found.levels, found.installations, [fresh])
    assert [factor.code for factor in lost_factors(campaign, asked)] == ["placement"]
    with_second = Asked(
        found.choice.scenario,
        found.levels,
        found.installations,
        [fresh],
        has_further=True,
    )
    assert not lost_factors(campaign, with_second)
