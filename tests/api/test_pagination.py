"""Keyset pages."""

import pytest

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


@pytest.mark.parametrize("size", ["0", "-1", "1001", "many", "1.5", "²", "9" * 5000])
def test_a_page_size_out_of_range_is_refused(get, size):
    (fault,) = get("campaigns/", expect=400, page_size=size)["errors"]

    assert fault["pointer"] == "?page_size"
    assert "1000" in fault["message"]


@pytest.mark.parametrize("cursor", ["0", "-5", "x", "9223372036854775808", "1;drop"])
def test_a_bad_cursor_is_refused(get, cursor):
    (fault,) = get("runs/", expect=400, cursor=cursor)["errors"]

    assert fault["pointer"] == "?cursor"
