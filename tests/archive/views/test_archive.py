"""The archive's pages, with the publications as they are shipped."""

import csv
import io
import re

import pytest

from runs.archive import services
from runs.archive.selectors import version_line
from runs.archive.selectors.reproduction import reproduction
from runs.models import Campaign, Project, PublishedTable
from runs.published import reading
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


def load(*slugs):
    scenarios.sync()
    services.load(files=[path for path in reading.files() if path.stem in slugs])


def text_of(response):
    assert response.status_code == 200
    return response.content.decode()


def test_an_empty_archive_says_how_to_fill_it(client):
    assert "manage.py load_published" in text_of(client.get("/archive/"))


def test_it_lists_a_publication_with_its_tables(client, whole_archive):
    page = text_of(client.get("/archive/"))

    assert "2013 WG1 activity report" in page
    assert "/campaigns/wg1-2013-2-2/" in page
    assert "/campaigns/wg1-2013-4-9/" in page


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("theme=storage-placement", "2013-4-5", "2013-2-2"),
        ("theme=fixed-point-read", "2013-2-2", "2013-4-5"),
        ("version=9.2", "2013-2-2", "2013-2-3"),
        ("topology=sharded", "2013-5-5", "2013-2-2"),
        ("q=checksum", "2013-2-3", "2013-5-5"),
        ("q=PCIe+placement", "2013-4-5", "2013-2-2"),
        ("q=パーティション", "2013-3-5", "2013-2-2"),
        ("year=2013", "2013-2-2", "2013-nothing"),
    ],
)
def test_filters_and_search_narrow_it(client, whole_archive, query, shown, hidden):
    page = text_of(client.get(f"/archive/?{query}"))

    assert f"/campaigns/wg1-{shown}/" in page
    assert f"/campaigns/wg1-{hidden}/" not in page


def test_words_must_all_occur(client, whole_archive):
    page = text_of(client.get("/archive/?q=checksum+flute"))

    assert "Nothing matches" in page


def test_a_search_by_htmx_gets_the_shelves_only(client, whole_archive):
    page = text_of(client.get("/archive/?q=fio", headers={"HX-Request": "true"}))

    assert "<html" not in page
    assert 'id="shelves"' in page


def test_the_queries_of_the_archive_do_not_grow_with_it(
    client, whole_archive, django_assert_max_num_queries
):
    with django_assert_max_num_queries(5):
        client.get("/archive/")


def test_a_source_shows_its_tables_and_its_discrepancies(client, whole_archive):
    page = text_of(client.get("/archive/wg1-2013/"))

    assert "Table 2.2" in page
    assert "99.93 %" in page
    assert "source=wg1-2013&amp;format=csv" in page


def test_discrepancies_have_both_numbers_and_lead_to_their_table(client, whole_archive):
    page = text_of(client.get("/archive/discrepancies/"))

    assert "99.93 %" in page
    assert "95.8" in page
    assert "/campaigns/wg1-2013-2-3/#printed" in page


def test_a_published_campaign_shows_the_table_as_printed(client, whole_archive):
    page = text_of(client.get("/campaigns/wg1-2013-2-2/"))

    for printed in ("403.38", "98.25 %", "13893.93", "86.07 %"):
        assert printed in page
    assert 'colspan="2"' in page


def test_a_figure_that_differs_is_marked_with_what_is_computed(client, whole_archive):
    page = text_of(client.get("/campaigns/wg1-2013-2-3/"))

    assert "printed__differs" in page
    assert "95.81 %" in page


def test_a_zero_that_was_not_measured_is_told_as_such(client, whole_archive):
    assert "not measured" in text_of(client.get("/campaigns/wg1-2013-3-5/"))


def test_ratios_are_computed_where_none_are_printed(client, whole_archive):
    page = text_of(client.get("/campaigns/wg1-2013-4-5/"))

    # All on SSD against all on HDD, updating and reading: 5996.6 / 198.5 and 49934.1 / 449.
    assert "computed from the printed figures" in page
    assert 'id="ratios"' in page
    assert 'id="published-ratios"' not in page
    # Of lines they are drawn too: 2 % are a pixel on an axis from 0.
    page = text_of(client.get("/campaigns/wg1-2021-read/"))
    drawn = page[page.index('id="ratios"') :]
    assert re.search(r"Clients: 1\nratio: 0\.944\d*\n", drawn)
    assert "Ratio to the baseline" in drawn


def test_repeats_that_are_not_printed_are_unknown_wherever_the_figure_goes(
    client, whole_archive
):
    shown = text_of(client.get("/campaigns/wg1-2013-3-5/"))
    compared = text_of(client.get("/compare/?s=wg1-2013-3-5"))
    export = client.get("/campaigns/wg1-2013-3-5/export.csv")
    rows = csv.DictReader(io.StringIO(client.get(export.url).getvalue().decode()))

    known = '"customdata":[[8150.0,8150.0,"unknown","as printed: 8,150; unit: s'
    assert known in shown.replace("&quot;", '"')
    assert "n unknown" in compared
    assert "n = 1" not in compared
    assert {(row["n"], row["statistic"], bool(row["printed"])) for row in rows} == {
        ("", "", True)
    }


def test_a_picture_without_numbers_is_told_as_such(client, whole_archive):
    page = text_of(client.get("/campaigns/wg1-2013-3-search/"))

    assert "in a picture only" in page
    assert "format=csv" not in page


def test_what_cannot_run_yet_is_told(client, whole_archive):
    table = PublishedTable.objects.get(campaign__slug="wg1-2013-2-2")
    table.reproduce = {"scenario": "of-another-release"}
    table.save()

    page = text_of(client.get("/campaigns/wg1-2013-2-2/"))

    assert "cannot run here yet" in page
    assert "?from=" not in page


def test_a_reader_of_japanese_reads_it_in_japanese(client, whole_archive):
    page = text_of(
        client.get("/campaigns/wg1-2013-3-5/", headers={"Accept-Language": "ja"})
    )

    assert "パーティション" in page


def test_its_queries_do_not_grow_with_the_table(
    client, whole_archive, django_assert_max_num_queries
):
    with django_assert_max_num_queries(17):
        client.get("/campaigns/wg1-2013-2-4/")
    with django_assert_max_num_queries(17):
        client.get("/campaigns/wg1-2013-2-5/")


def test_published_campaigns_do_not_flood_the_list_of_ones_own(client, whole_archive):
    factories.campaign("own", title="My own")

    own, theirs = (
        text_of(client.get("/campaigns/")),
        text_of(client.get("/campaigns/?origin=published")),
    )

    assert "My own" in own
    assert "wg1-20" not in own
    assert "wg1-20" in theirs


def test_published_campaigns_are_not_listed_as_if_they_were_queued_here(
    client, whole_archive, django_assert_num_queries
):
    published = Campaign.objects.get(slug="wg1-2021-read")
    with django_assert_num_queries(5):
        page = text_of(client.get("/campaigns/?origin=published"))

    row = next(row for row in page.split("<tr>") if "/campaigns/wg1-2021-read/" in row)
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row))
    assert "published" in shown
    assert "finished" not in shown
    assert " 2021 " in shown
    assert f"{published.created_at:%Y-%m-%d}" not in shown
    assert " / " not in shown


def test_reproducing_opens_the_form_scaled_to_the_server(
    member, ready_server, whole_archive
):
    page = text_of(member.get("/campaigns/new/?from=wg1-2013-2-2"))

    assert "Reproduces a published result" in page
    # 80 cores there and 2 here: as many clients a core. A quarter of 8 GiB holds scale 134.
    assert "1, 2, 4, 8, 16, 32, 48, 64, 80, 100, 128 → 1, 2, 3" in page
    assert "1,000 → 134" in page
    assert 'value="134"' in page
    assert "16.14, 18.4" in page


def test_a_reproduced_campaign_can_be_queued_as_proposed(
    member, ready_server, whole_archive
):
    form = member.get("/campaigns/new/?from=wg1-2013-2-2").context["form"].untouched()

    response = member.post("/campaigns/new/", {**form.data, "from": "wg1-2013-2-2"})

    campaign = Campaign.objects.get(origin="executed")
    assert response["Location"] == f"/campaigns/{campaign.slug}/"
    assert campaign.parameters == {"scale": 134, "duration": 300}

    # What differs most is kept with the campaign, and is what its page shows.
    kept = str(campaign.changes)
    assert all(word in kept for word in ("configuration", "scale", "clients")), kept
    page = text_of(member.get(f"/campaigns/{campaign.slug}/"))
    for difference in (
        "1,000 → 134",
        "→ Fixed-point observation, small machine",
        "80 cores, 2 TB →",
    ):
        assert difference in page


@pytest.fixture
def newer_server(known):
    """A server with none of the versions that were compared in 2021."""
    server = factories.server("db1", name="db1")
    for version in ("10.23", "15.15", "16.11", "18.1"):
        factories.installation(server, version, has_psql=True)
    return server


def test_neighbours_stand_in_for_versions_that_are_not_installed(
    member, newer_server, whole_archive
):
    answer = member.get("/campaigns/new/?from=wg1-2021-read&quick=true")
    page, form = text_of(answer), answer.context["form"]

    assert (
        "None of 13.4 and 14.0 is installed on this server: other versions answer another question."
    ) in page
    assert "13.4, 14.0 → 15.15, 16.11" in page
    assert "13" not in form.initial["title"]
    assert "PostgreSQL 15.15, 16.11" in form.initial["title"]


@pytest.mark.parametrize(
    ("installed", "warning"),
    [
        (("13.20", "14.17"), ""),
        (
            ("13.20", "16.11"),
            "14.0 is not installed on this server: the comparison is incomplete.",
        ),
    ],
)
def test_the_title_and_warning_follow_the_printed_versions_that_are_installed(
    member, known, whole_archive, installed, warning
):
    server = factories.server("db1", name="db1")
    for version in installed:
        factories.installation(server, version, has_psql=True)

    answer = member.get("/campaigns/new/?from=wg1-2021-read")

    assert answer.context["reproduced"].warning == warning
    keeps_title = "PostgreSQL 13 and 14" in answer.context["form"].initial["title"]
    assert keeps_title == (not warning)
    assert ("is not installed" in text_of(answer)) == bool(warning)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (("11.22", "12.20", "15.15", "18.1"), ["12.20", "15.15"]),
        (("10.23", "11.22"), ["10.23", "11.22"]),
        (("16.11", "17.9", "18.1"), ["16.11", "17.9"]),
        (("18.1",), ["18.1"]),
    ],
)
def test_the_neighbours_are_those_released_nearest_to_the_printed_versions(
    known, whole_archive, installed, chosen
):
    server = factories.server("db1", name="db1")
    for version in installed:
        factories.installation(server, version, has_psql=True)

    found = reproduction(Campaign.objects.get(slug="wg1-2021-read"), [server])

    assert [each.version for each in found.installations] == chosen


def test_a_published_design_is_dropped_when_another_scenario_is_chosen(
    member, ready_server, whole_archive
):
    page = text_of(
        member.get(
            "/campaigns/new/?from=wg1-2013-2-2&scenario=fixed-point-update&server=db1"
        )
    )

    assert "Reproduces a published result" not in page


def test_the_line_through_versions_has_published_steps_and_their_gaps(client):
    load("wg1-2013", "wg1-2017", "wg1-2021")
    page = text_of(client.get("/versions/"))

    assert "9.2 → 9.3" in page
    assert (
        "As printed, PostgreSQL 9.3 is 1.7 % slower than PostgreSQL 9.2; no spread is printed, so "
        "it is not tested." in page
    )
    assert "0.983" in page
    assert "no figures" in page


def test_the_line_can_be_read_at_a_chosen_number_of_clients(client, whole_archive):
    page = text_of(client.get("/versions/?clients=128"))

    assert "0.861" in page


def test_executed_versions_stand_beside_the_published(client, finished_campaign):
    load("wg1-2013", "wg1-2017", "wg1-2021")
    page = text_of(client.get("/versions/"))

    answer = page[page.index('id="answer"') :]
    # What is proven goes before what is only printed.
    assert answer.index("PostgreSQL 18 is") < answer.index(
        "PostgreSQL 14 is 2.2 % slower"
    )
    assert "16 → 18" in page
    assert "1.100" in page


def test_a_picture_of_two_versions_is_named_where_their_numbers_lack(client):
    load("wg1-2017")

    assert "published as a picture, without numbers" in text_of(
        client.get("/versions/")
    )


@pytest.mark.parametrize(
    "query", ["theme=nonsense", "clients=x", "base=1.0", "base=16"]
)
def test_a_strange_address_of_the_line_is_no_error(client, whole_archive, query):
    assert client.get(f"/versions/?{query}").status_code == 200


def test_the_queries_of_the_line_do_not_grow_with_the_campaigns(
    client, whole_archive, finished_campaign, django_assert_max_num_queries
):
    # The answers under both loads; the second time the other load's is kept.
    with django_assert_max_num_queries(25):
        client.get("/versions/")
    with django_assert_max_num_queries(29):
        client.get("/")


def test_the_other_load_and_any_number_of_clients_stand_beside_the_title(
    client, whole_archive
):
    ways = "from=13&to=17"
    reading, updating = (
        client.get(f"/versions/?{ways}&theme={theme}").content.decode()
        for theme in (version_line.READ, version_line.UPDATE)
    )

    def title(page):
        return re.search("<h1>(.*?)</h1>", page, re.DOTALL)[1]

    assert title(updating) in reading
    assert title(reading) in updating
    assert (
        title(reading) in client.get(f"/versions/?{ways}&clients=64").content.decode()
    )


def test_a_private_projects_versions_are_not_in_a_strangers_line(
    client, finished_campaign
):
    finished_campaign.project = Project.objects.create(
        slug="secret", name="s", is_public=False
    )
    finished_campaign.save()

    assert "16 → 18" not in text_of(client.get("/versions/"))


def test_the_line_takes_the_newest_campaigns_and_says_how_many_it_leaves_out(
    client, ready_server, monkeypatch
):
    monkeypatch.setattr(version_line, "MOST_EXECUTED", 2)
    for number, gain in enumerate((1.5, 1.1, 1.2)):
        campaign = factories.campaign(f"lab-{number}", on=ready_server)
        factories.finish_all(campaign, gain={"18.4": gain})
    factories.campaign("unfinished", on=ready_server)

    page = text_of(client.get("/versions/"))

    assert "lab-1" in page
    assert "lab-2" in page
    assert "lab-0" not in page
    assert "older ones</a> are not in the line" in page
