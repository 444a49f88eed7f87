"""Keyset pages."""

import pytest

from runs.models import Cell, Measurement, Run
from runs.selectors.archive import versions
from tests import factories

pytestmark = pytest.mark.django_db


def test_pages_follow_each_other_to_the_end_without_a_gap(client):
    for number in range(5):
        factories.campaign(f"c{number}", repeats=0)

    address, slugs = "/api/v1/campaigns/?page_size=2&origin=executed", []
    while address:
        body = client.get(address).json()
        slugs.append([row["slug"] for row in body["results"]])
        address = body["next"]
        assert address is None or address.startswith("http://testserver/api/v1/campaigns/?")

    assert slugs == [["c4", "c3"], ["c2", "c1"], ["c0"]]


def test_a_full_last_page_has_no_next(get):
    for _ in range(2):
        factories.campaign(repeats=0)

    assert get("campaigns/", page_size=2)["next"] is None


def test_what_arrives_while_a_client_reads_does_not_shift_its_pages(client, get):
    for number in range(4):
        factories.campaign(f"c{number}", repeats=0)
    following = get("campaigns/", page_size=2)["next"]
    factories.campaign("late", repeats=0)

    assert [row["slug"] for row in client.get(following).json()["results"]] == ["c1", "c0"]


def test_a_page_has_a_hundred_rows_unless_asked_for_up_to_a_thousand(get):
    factories.finish_all(factories.campaign(repeats=20))

    assert len(get("measurements/")["results"]) == 100
    body = get("measurements/", page_size=1000)
    assert (len(body["results"]), body["next"]) == (120, None)


@pytest.mark.parametrize("size", ["0", "-1", "1001", "many", "1.5", "²", "9" * 5000, f"{1000:023}"])
def test_a_page_size_out_of_range_is_refused(get, size):
    (fault,) = get("campaigns/", expect=400, page_size=size)["errors"]

    assert fault["pointer"] == "?page_size"
    assert "1000" in fault["message"]


@pytest.mark.parametrize("cursor", ["0", "-5", "x", "9223372036854775808", "1;drop"])
def test_a_bad_cursor_is_refused(get, cursor):
    (fault,) = get("runs/", expect=400, cursor=cursor)["errors"]

    assert fault["pointer"] == "?cursor"


def test_measurements_of_a_filter_come_in_pages_of_their_runs(client):
    factories.finish_all(factories.campaign(repeats=2))
    address, rows = "/api/v1/measurements/?page_size=5&version=16", []
    while address:
        body = client.get(address).json()
        rows += body["results"]
        address = body["next"]

    expected = Measurement.objects.filter(run__cell__version__startswith="16.")
    assert len(rows) == expected.count() > 5
    assert [row["id"] for row in rows] == list(
        expected.order_by("-run_id", "-pk").values_list("pk", flat=True)
    )


def test_a_run_knows_its_cells_version_however_that_changes():
    run = factories.run()
    cells = Cell.objects.filter(pk=run.cell_id)
    told = Run.objects.filter(pk=run.pk).values_list("cell_version", "cell_major")
    assert told.get() == ("16.14", "16")
    for version in ("9.6.24", "9.10", "19beta1", "", "9", "devel"):
        cells.update(version=version)
        assert told.get() == (version, versions.major(version)), version
