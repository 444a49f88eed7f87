"""Published figures over the API."""

import csv
import json
from pathlib import Path

import pytest

from runs.models import PrintedFigure
from runs.services.archive import load
from tests import factories

pytestmark = pytest.mark.django_db

CONDITIONS = {
    "scale": 1000,
    "hardware": "Crane",
    "environment": "Quay Linux 7.1",
    "software": "PostgreSQL 9.2.4",
    "configuration": "Calm",
    "topology": "Two machines",
}
SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


@pytest.fixture(autouse=True)
def archive():
    load(files=[SAMPLE])


def test_each_printed_figure_comes_exactly_once(get):
    rows = get("measurements/", source="harbour-2020", table="1.1", page_size=1000)["results"]

    printed = PrintedFigure.objects.filter(table__number="1.1").values_list("text", flat=True)
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


def test_what_is_derived_or_not_measured_says_so(get):
    rows = get("measurements/", table="1.1")["results"]

    remarks = {row["printed"]: (row["value"], row["remark"]) for row in rows}
    assert remarks["105.00 %"] == (105.0, "derived")
    assert remarks["0"] == (0.0, "not_measured")
    assert remarks["4000.00"] == (4000.0, None)


def test_a_repeat_is_a_level_of_printed_repeats_only(get):
    rows = get("measurements/", source="harbour-2020", table="1.2")["results"]

    levels = [row["levels"] for row in reversed(rows) if row["levels"]["placement"] == "all on HDD"]
    assert sorted(levels, key=lambda each: each.get("repeat", 0)) == [
        {"version": "9.3", "placement": "all on HDD"},
        {"version": "9.3", "placement": "all on HDD", "repeat": 1},
        {"version": "9.3", "placement": "all on HDD", "repeat": 2},
        {"version": "9.3", "placement": "all on HDD", "repeat": 3},
    ]


def test_published_figures_are_found_by_version_and_source(get):
    factories.finish(factories.run(), tps=1)

    def count(**query):
        return len(get("measurements/", **query)["results"])

    assert count(version="9.3", metric="tps", source="harbour-2020") == 11
    assert count(source="harbour-2020") == count(origin="published") == 18
    assert count(source="harbour-1999") == 0
    assert count(table="9.9") == 0


def test_the_queries_of_a_filter_by_source_and_table_are_constant(get, django_assert_num_queries):
    with django_assert_num_queries(6):
        get("measurements/", source="harbour-2020", table="1.1")


def test_csv_has_every_row_that_the_filters_leave(client, get):
    answer = client.get("/api/v1/measurements/?source=harbour-2020&format=csv&page_size=2")

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    lines = b"".join(answer.streaming_content).decode().splitlines()
    rows = list(csv.DictReader(lines))
    told = get("measurements/", source="harbour-2020")["results"]
    assert [json.loads(row["levels"]) for row in rows] == [row["levels"] for row in told]
    assert [row["printed"] for row in rows] == [row["printed"] for row in told]
    assert list(rows[0]) == list(told[0])


def test_a_fault_in_a_request_for_csv_is_a_problem(get):
    (fault,) = get("measurements/", expect=400, format="csv", origin="heaven")["errors"]

    assert fault["pointer"] == "?origin"


def test_a_single_measurement_is_no_csv(client, get):
    first = get("measurements/")["results"][0]["id"]

    assert client.get(f"/api/v1/measurements/{first}/?format=csv").status_code == 400


def test_sources_are_listed_with_what_they_have(get):
    (source,) = get("sources/")["results"]

    assert source["url"].endswith("/api/v1/sources/harbour-2020/")
    assert (source["slug"], source["year"], source["licence"]) == ("harbour-2020", 2020, "CC0")
    assert (source["tables"], source["figures"], source["discrepancies"]) == (3, 18, 4)


def test_a_source_tells_its_tables_and_contradictions(get):
    source = get("sources/harbour-2020/")

    assert [(each["number"], each["figures"]) for each in source["tables"]] == [
        ("1.1", 10),
        ("1.2", 8),
        ("picture", 0),
    ]
    ratio = source["discrepancies"][0]
    assert (ratio["table"], ratio["kind"], ratio["row"], ratio["column"]) == ("1.1", "ratio", 2, 5)
    assert (ratio["printed"], ratio["recomputed"]) == ("120.00 %", "125")
    assert ratio["explanation"]["en"] == "2500.00 ÷ 2,000.00"


def test_a_run_that_holds_a_summary_has_no_repeat(get):
    runs = get("runs/", campaign="harbour-repeats")["results"]

    assert sum("repeat" not in run["levels"] for run in runs) == 2
