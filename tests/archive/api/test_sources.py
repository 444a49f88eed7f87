"""The archive's sources, and reproducing what they published."""

import csv
import json
import os
from itertools import cycle
from pathlib import Path

import pytest

from runs.archive.selectors.reproduction import scenario_of
from runs.archive.selectors.side_by_side import side_by_side
from runs.archive.services import load
from runs.models import Campaign, PrintedFigure, Project
from runs.scenarios import registry
from tests import factories

pytestmark = pytest.mark.django_db


# Published figures over the API.


CONDITIONS = {
    "scale": 1000,
    "hardware": "Crane",
    "environment": "Quay Linux 7.1",
    "software": "PostgreSQL 9.2.4",
    "configuration": "Calm",
    "topology": "Two machines",
}
SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


@pytest.fixture
def archive():
    load(files=[SAMPLE])


@pytest.mark.usefixtures("archive")
def test_each_printed_figure_comes_exactly_once(get):
    rows = get("measurements/", source="harbour-2020", table="1.1", page_size=1000)[
        "results"
    ]

    printed = PrintedFigure.objects.filter(table__number="1.1").values_list(
        "text", flat=True
    )
    assert sorted(row["printed"] for row in rows) == sorted(printed)
    found = {row["printed"]: row for row in rows}["98.25 %"]
    assert found.pop("id")
    assert found.pop("run")
    place = found.pop("place")
    assert found == {
        "campaign": "harbour-reading",
        "levels": {"version": "9.2", "clients": 1},
        "metric": "cpu_idle",
        "value": 98.25,
        "unit": "%",
        "n": 3,
        "statistic": "median",
        "origin": "published",
        "source": "harbour-2020",
        "table": "1.1",
        "printed": "98.25 %",
        "remark": None,
        "said_by": "printed",
        "exact": True,
        "conditions": CONDITIONS,
        "recomputed": None,
        "disputed": [],
    }
    assert (place["source"], place["table"], place["row"]) == ("harbour-2020", "1.1", 1)
    assert "98.25 %" in place["words"]
    assert place["address"] == f"/archive/figures/harbour-reading/1-{place['column']}/"


@pytest.mark.usefixtures("archive")
def test_what_is_derived_or_not_measured_says_so(get):
    rows = get("measurements/", table="1.1")["results"]

    remarks = {row["printed"]: (row["value"], row["remark"]) for row in rows}
    assert remarks["105.00 %"] == (105.0, "derived")
    assert remarks["0"] == (0.0, "not_measured")
    assert remarks["4000.00"] == (4000.0, None)


@pytest.mark.usefixtures("archive")
def test_a_repeat_is_a_level_of_printed_repeats_only(get):
    rows = get("measurements/", source="harbour-2020", table="1.2")["results"]

    levels = [
        row["levels"]
        for row in reversed(rows)
        if row["levels"]["placement"] == "all on HDD"
    ]
    assert sorted(levels, key=lambda each: each.get("repeat", 0)) == [
        {"version": "9.3", "placement": "all on HDD"},
        {"version": "9.3", "placement": "all on HDD", "repeat": 1},
        {"version": "9.3", "placement": "all on HDD", "repeat": 2},
        {"version": "9.3", "placement": "all on HDD", "repeat": 3},
    ]


@pytest.mark.usefixtures("archive")
def test_published_figures_are_found_by_version_and_source(get):
    factories.finish(factories.run(), tps=1)

    def count(**query):
        return len(get("measurements/", **query)["results"])

    assert count(version="9.3", metric="tps", source="harbour-2020") == 11
    assert count(source="harbour-2020") == count(origin="published") == 18
    [wrong] = get("measurements/", source="harbour-1999", expect=400)["errors"]
    assert "did you mean harbour-2020?" in wrong["message"]
    assert count(table="9.9") == 0


@pytest.mark.usefixtures("archive")
def test_the_queries_of_a_filter_by_source_and_table_are_constant(
    get, django_assert_num_queries
):
    with django_assert_num_queries(10):
        get("measurements/", source="harbour-2020", table="1.1")


@pytest.mark.usefixtures("archive")
def test_figures_of_a_publication_in_a_private_project_are_hidden(get):
    def found():
        return {
            row["campaign"]
            for row in get("measurements/", source="harbour-2020")["results"]
        }

    assert "harbour-reading" in found()
    private = Project.objects.create(slug="private", name="p", is_public=False)
    Campaign.objects.filter(slug="harbour-reading").update(project=private)
    assert found()
    assert "harbour-reading" not in found()


@pytest.mark.usefixtures("archive")
def test_csv_has_every_row_that_the_filters_leave(client, get):
    answer = client.get(
        "/api/v1/measurements/?source=harbour-2020&format=csv&page_size=2"
    )

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    lines = b"".join(answer.streaming_content).decode().splitlines()
    rows = list(csv.DictReader(lines))
    told = get("measurements/", source="harbour-2020")["results"]
    assert [json.loads(row["levels"]) for row in rows] == [
        row["levels"] for row in told
    ]
    assert [row["printed"] for row in rows] == [row["printed"] for row in told]
    assert list(rows[0]) == list(told[0])


@pytest.mark.usefixtures("archive")
def test_a_fault_in_a_request_for_csv_is_a_problem(get):
    (fault,) = get("measurements/", expect=400, format="csv", origin="heaven")["errors"]

    assert fault["pointer"] == "?origin"


@pytest.mark.usefixtures("archive")
def test_a_single_measurement_is_no_csv(client, get):
    first = get("measurements/")["results"][0]["id"]

    assert client.get(f"/api/v1/measurements/{first}/?format=csv").status_code == 400


@pytest.mark.usefixtures("archive")
def test_sources_are_listed_with_what_they_have(get):
    (source,) = get("sources/")["results"]

    assert source["url"].endswith("/api/v1/sources/harbour-2020/")
    assert (source["slug"], source["year"], source["licence"]) == (
        "harbour-2020",
        2020,
        "CC0",
    )
    assert (source["tables"], source["figures"], source["discrepancies"]) == (3, 18, 4)


@pytest.mark.usefixtures("archive")
def test_a_source_tells_its_tables_and_contradictions(get):
    source = get("sources/harbour-2020/")

    assert [(each["number"], each["figures"]) for each in source["tables"]] == [
        ("1.1", 10),
        ("1.2", 8),
        ("picture", 0),
    ]
    ratio = source["discrepancies"][0]
    assert (ratio["table"], ratio["kind"], ratio["row"], ratio["column"]) == (
        "1.1",
        "ratio",
        2,
        5,
    )
    assert (ratio["printed"], ratio["recomputed"]) == ("120.00 %", "125")
    assert ratio["explanation"]["en"] == "2500.00 ÷ 2,000.00"


@pytest.mark.usefixtures("archive")
def test_a_run_that_holds_a_summary_has_no_repeat(get):
    runs = get("runs/", campaign="harbour-repeats")["results"]

    assert sum("repeat" not in run["levels"] for run in runs) == 2


# Every place of the archive on one's own server: a body that is taken, and what differs.


def places():
    return list(Campaign.objects.filter(published__isnull=False).order_by("slug"))


def shows_figures(place, campaign):
    """Whether a run has a figure beside a printed one, or the publication says what shows it.

    By the metrics that the scenario measures.
    """
    measured = {each.name for each in registry.get(campaign.scenario.slug).metrics}
    named = set(
        place.published.printed.values_list("measurement__metric__name", flat=True)
    )
    rules = (column.get("derived", {}) for column in place.published.columns)
    named.update(each["operand"] for each in rules if each)
    figures = dict.fromkeys(measured & named, 5.0)
    runs = campaign.runs.select_related("cell") if figures else ()
    # One by one, until there is a line.
    is_beside = any(
        factories.finish(run, **figures) and side_by_side(campaign).lines
        for run in runs
    )
    return is_beside or place.published.reproduce.get("shown_by")


# Each place in one of its forms, and in the other one.
@pytest.mark.usefixtures("whole_archive")
@pytest.mark.parametrize(
    "forms",
    [("true", "false"), pytest.param(("false", "true"), marks=pytest.mark.slow)],
)
def test_every_place_has_a_design_that_is_queued_as_it_is_and_shows_its_figures(
    server, asked, post, forms
):
    faults = []
    unrepeated = []
    for number, (campaign, quick) in enumerate(
        zip(places(), cycle(forms), strict=False)
    ):
        why_not = campaign.published.reproduce.get("why_not")
        if why_not:
            unrepeated.append(campaign.slug)
        answer = asked(campaign.slug, quick)
        if scenario_of(campaign) is None:
            told = answer.json()
            if answer.status_code != 409 or told["detail"] != (why_not or {}).get("en"):
                faults.append((campaign.slug, quick, told))
            continue
        if "BENCHLAB_TEST_ALL" not in os.environ and number % 3:
            faults += (
                []
                if answer.status_code == 200
                else [(campaign.slug, quick, answer.json())]
            )
            continue  # each third place is queued and finished
        made = post(answer.json()["campaign"])
        if made.status_code != 201:
            faults.append((campaign.slug, quick, answer.json(), made.json()))
        elif made.json()["reproduces"] != campaign.slug:
            faults.append((campaign.slug, "does not say what it reproduces"))
        elif campaign.published.printed.exists():
            queued = Campaign.objects.get(slug=made.json()["slug"])
            if not shows_figures(campaign, queued):
                faults.append((campaign.slug, queued.factors))
    assert not faults, "\n".join(map(str, faults))
    assert [slug for slug in unrepeated if slug.startswith("wg1")] == ["wg1-2013-5-7"]
    assert len(unrepeated) < len(places()) / 3
    assert Campaign.objects.filter(reproduces__startswith="wg1-2017-8-").exists()


@pytest.mark.usefixtures("whole_archive")
def test_the_changes_say_what_is_otherwise_than_printed_and_why(server, asked):
    found = {each["name"]: each for each in asked("wg1-2013-2-2").json()["changes"]}
    assert found["Versions"]["printed"] == "9.2, 9.3"
    assert "shared_buffers" in found["Configuration"]["reason"]
    assert found["Clients"]["printed"].startswith("1, 2, 4, 8, 16")
    assert all(each["reason"] for each in found.values())


@pytest.mark.usefixtures("whole_archive")
def test_searches_of_a_replica_are_repeated_with_a_replica(server, asked, post):
    levels = {
        slug: asked(slug, "true").json()["campaign"]["levels"]["replication"]
        for slug in ("wg1-2017-7-7", "wg1-2017-7-8", "wg1-2017-7-10", "wg1-2017-7-11")
    }
    assert list(levels.values()) == [["none"], ["none"], ["logical"], ["logical"]]
    for slug, kind in (("wg1-2017-7-8", "single"), ("wg1-2017-7-11", "logical")):
        made = post(asked(slug, "true").json()["campaign"])
        assert Campaign.objects.get(slug=made.json()["slug"]).topology.kind == kind


@pytest.mark.usefixtures("whole_archive")
def test_the_quick_form_is_short_and_says_so(server, asked):
    answer = asked("wg1-2013-2-2", "true").json()
    assert answer["campaign"]["parameters"] == {"scale": 10, "duration": 6}
    assert answer["campaign"]["levels"] == {"clients": [1, 32, 128]}
    reasons = {each["name"]: each["reason"] for each in answer["changes"]}
    assert reasons["Duration"] == "the quick form"


@pytest.mark.usefixtures("whole_archive")
def test_a_reproduction_has_a_generator_and_standbys_where_it_is_given_them(
    client, server, post
):
    for slug in ("load", "standby"):
        made = factories.server(slug, free_bytes=10**15)
        factories.installation(made, "16.14", has_psql=True, pgbench_version_num=160014)
    address = "/api/v1/campaigns/wg1-2017-7-11/reproduction/?server=lab&quick=true"
    answer = client.get(f"{address}&generators=load&cluster_servers=standby").json()
    assert (
        answer["campaign"]["generators"],
        answer["campaign"]["cluster_servers"],
    ) == (
        ["load"],
        ["standby"],
    )
    assert client.get(address).json()["changes"] != answer["changes"]
    assert client.get(f"{address}&generators=nobody").status_code == 400


@pytest.mark.usefixtures("whole_archive")
def test_what_is_not_of_a_publication_is_told(server, asked):
    factories.campaign("own")
    assert asked("own").json()["code"] == "not_published"
    assert asked("nothing").status_code == 404


@pytest.mark.usefixtures("whole_archive")
def test_a_server_that_is_not_there_is_told(server, client):
    answer = client.get("/api/v1/campaigns/wg1-2013-2-2/reproduction/?server=other")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "?server"


@pytest.mark.usefixtures("whole_archive")
def test_the_finished_campaign_stands_beside_the_print_in_its_form(
    server, asked, post, client
):
    body = asked("wg1-2013-2-3", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    for run in campaign.runs.select_related("cell"):
        factories.finish(run, tps=100.0 * run.cell.levels["clients"], cpu_idle=50)
    found = side_by_side(campaign)
    first = [
        line
        for line in found.lines
        if line.row == [str(campaign.factors["clients"][0])]
    ]
    # The last column is derived by the publication's rule: per cent of the tps without checksums.
    assert [line.own.value for line in first] == [100.0, 50, 100.0, 50, 100.0]
    assert first[-1].own.unit == "%"
    assert [line.ratio is None for line in first] == [False, True, False, True, True]
    assert first[0].ratio == pytest.approx(
        100 / float(first[0].printed.replace(",", ""))
    )
    assert found.missing == found.printed - len(found.lines) > 0
    assert "times the" in found.sentence
    told = [
        (each.name, each.printed_text, each.chosen_text) for each in found.differences
    ]
    assert ("Scale factor", "1,000", "10") in told
    assert ("Duration", "300 s", "6 s") in told
    assert [each.name for each in found.far_apart] == ["Scale factor", "Duration"]
    # With the decimals of the print.
    assert "50.00 %" in client.get(f"/campaigns/{campaign.slug}/").content.decode()


@pytest.mark.usefixtures("whole_archive")
def test_the_page_shows_both_in_one_table(server, asked, post, client):
    body = asked("wg1-2013-2-2", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    assert "Nothing in this table has been measured yet" in page
    for run in campaign.runs.all():
        factories.finish(run, tps=800.0 + run.repeat)
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    ours = page[page.index('id="side-by-side"') :]
    assert "418.77" in ours
    assert "PostgreSQL 9.3.25 stands for 9.3." in ours
    assert "printed figures were not measured here." in ours
    line = next(
        each for each in side_by_side(campaign).lines if each.printed == "418.77"
    )
    low, high = line.bounds
    assert low < 802 / 418.77 < high
    assert f"{low:.3f} – {high:.3f}" in ours


@pytest.mark.usefixtures("whole_archive")
def test_a_queued_campaign_keeps_the_changes_that_its_design_announced(
    server, asked, post
):
    faults = []
    for slug in ("wg1-2013-2-2", "wg1-2013-3-6", "wg1-2017-9-4-2"):
        answer = asked(slug, "true").json()
        made = Campaign.objects.get(slug=post(answer["campaign"]).json()["slug"])
        announced = {(each["code"], each["chosen"]) for each in answer["changes"]}
        kept = {
            (each.code, each.chosen_text) for each in side_by_side(made).differences
        }
        faults += [(slug, sorted(announced ^ kept))] if announced != kept else []
    assert not faults


@pytest.mark.usefixtures("whole_archive")
def test_a_figure_beside_the_print_carries_the_mark_of_its_runs(
    server, asked, post, client
):
    body = asked("wg1-2013-2-2", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    factories.finish_all(campaign)
    campaign.runs.update(validity="doubtful")
    marks = {line.own.mark for line in side_by_side(campaign).lines}
    assert len(marks) == 1
    (mark,) = marks
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    assert mark
    assert f'<span class="soft small">{mark}</span>' in page


@pytest.mark.usefixtures("whole_archive")
def test_a_reproduction_of_invalid_runs_says_that_the_machine_was_taken(
    server, asked, post, client
):
    body = asked("wg1-2013-2-2", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    campaign.runs.update(state="withdrawn", code="invalid", validity="invalid")
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    assert "Not measured: others used the machine, and most runs are invalid." in page
    assert "Nothing in this table has been measured yet" not in page
    campaign.runs.update(state="finished", code="", validity="valid")
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    assert "measured none of these figures" in page


@pytest.mark.usefixtures("whole_archive")
def test_of_versions_that_were_not_printed_one_is_taken_that_has_the_extensions(
    server, asked
):
    """The newest one lacks postgres_fdw: with it only PostgreSQL alone would be left to measure."""
    server.installations.exclude(version="16.14").update(extensions=[])
    answer = asked("wg1-2013-5-5", "true").json()["campaign"]
    assert answer["versions"] == ["16.14"]
    assert len(answer["levels"]["cluster"]) > 1


@pytest.mark.usefixtures("whole_archive")
def test_what_was_seen_with_strace_and_perf_is_asked_for_as_treatment(server, asked):
    for slug, part in (
        ("wg1-2017-strace-counts", "syscalls"),
        ("wg1-2017-semaphore-stacks", "stacks"),
        ("wg1-2013-4-stack", "waits"),
        ("wg1-2021-flame-graph", "profile"),
    ):
        assert asked(slug, "true").json()["campaign"]["treatment"] == {part: True}


@pytest.mark.usefixtures("whole_archive")
def test_a_printed_repeat_stands_beside_the_run_of_that_repeat(server, asked, post):
    body = asked("wg1-2013-4-5", "true").json()["campaign"] | {"repeats": 2}
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    for run in campaign.runs.select_related("cell"):
        factories.finish(run, tps=100.0 * run.repeat)
    found = side_by_side(campaign)
    rows = {tuple(line.row) for line in found.lines}
    for row in rows:
        # Of three printed repeats two were measured here; then the median.
        values = [line.own.value for line in found.lines if tuple(line.row) == row]
        assert values[:3] == [100.0, 200.0, 150.0]


@pytest.mark.usefixtures("whole_archive")
def test_a_derived_column_follows_from_our_medians_by_the_rule_of_the_print(
    server, asked, post
):
    """Per cent of the throughput without standbys, which is a cell of the same campaign."""
    body = asked("wg1-2017-8-8", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    for run in campaign.runs.select_related("cell"):
        factories.finish(
            run, tps={0: 400.0, 1: 200.0, 3: 100.0}[run.cell.levels["sync_standbys"]]
        )
    shown = [line.own.value for line in side_by_side(campaign).lines]
    assert shown == [400.0, 100.0, 200.0, 50.0, 100.0, 25.0]


@pytest.mark.usefixtures("whole_archive")
def test_the_mixed_design_has_the_four_patterns_of_the_report(server, asked, post):
    body = asked("wg1-2017-8-10", "true").json()["campaign"]
    campaign = Campaign.objects.get(slug=post(body).json()["slug"])
    pairs = campaign.cells.values_list(
        "levels__sync_standbys", "levels__async_standbys"
    )
    assert sorted(pairs) == [(0, 3), (1, 2), (2, 1), (3, 0)]
