"""Several statements in one message, and how their values are sent."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from runs.models import Campaign
from runs.services import slugs
from runs.services.statements import Statement, perform
from tests import factories

pytestmark = pytest.mark.django_db


def named(title: str, scenario) -> str:
    row = Campaign(title=title, scenario=scenario)
    return slugs.store(row, called=title, otherwise="campaign", taken=("new",)).slug


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Nightly run", ["nightly-run", "nightly-run-2", "nightly-run-3"]),
        ("測定", ["campaign", "campaign-2", "campaign-3"]),
        ("New", ["new-2", "new-3", "new-4"]),
        ("x" * 200, ["x" * 120, "x" * 118 + "-2", "x" * 118 + "-3"]),
        ("x" * 117 + " " + "y" * 80, ["x" * 117 + "-yy", "x" * 117 + "-2", "x" * 117 + "-3"]),
    ],
)
def test_the_same_name_gets_numbers_and_a_long_one_is_cut(title, expected):
    scenario = factories.scenario()
    assert [named(title, scenario) for _time in expected] == expected


@pytest.mark.django_db
def test_what_else_is_wrong_with_a_row_is_not_taken_for_its_slug():
    with pytest.raises(IntegrityError):
        slugs.store(Campaign(title="x"), called="x", otherwise="campaign")


@pytest.mark.django_db(transaction=True)
def test_of_two_that_take_one_slug_at_once_the_later_takes_the_next():
    scenario = factories.scenario()

    def other() -> str:
        try:
            with transaction.atomic():
                return named("same", scenario)
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            first = named("same", scenario)
            second = threads.submit(other)
            _until_somebody_waits()
        assert (first, second.result(timeout=10)) == ("same", "same-2")


def _until_somebody_waits() -> None:
    until = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if cursor.fetchone():
                return
            time.sleep(0.01)
    raise AssertionError("the other one does not wait")


TEXTS = ["plain", 'a "quote"', "back\\slash", "{1,2}", "NULL", "", "a, b", "日本語", "line\nend"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [*TEXTS, None]),
        ("bigint", [1, -2, 2**40, None]),
        ("float8", [1.5, -1e300, 1e-9, 3.0]),
        ("jsonb", ['{"clients": 1, "note": "a \\"b\\" \\\\"}']),
        ("boolean", [True, False]),
        ("text", []),
    ],
)
def test_a_list_arrives_as_it_was(kind, values):
    asked = Statement(f"SELECT value::text FROM unnest(%s::{kind}[]) AS given (value)", (values,))
    with transaction.atomic(), connection.cursor() as cursor:
        (sent,) = perform([asked])
        cursor.execute(f"SELECT unnest(%s::{kind}[])::text", [values])
        assert sent == cursor.fetchall()


def test_a_statement_is_prepared_once_for_small_and_large_numbers():
    asked = "SELECT count(*) FROM unnest(%s::bigint[])"
    with transaction.atomic():
        perform([Statement(asked, ([1, 2],)), Statement(asked, ([2**40],))] * 6)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s",
                ["SELECT count(*) FROM unnest($1::bigint[])%"],
            )
            assert cursor.fetchone() == (1,)
