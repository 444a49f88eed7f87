"""Several statements in one message, and how their values are sent."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from runs.models import Campaign
from runs.services import slugs
from runs.services.statements import FIRST_PLANS, Statement, perform
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
        ("timestamptz", [datetime(2026, 1, 31, 2, tzinfo=UTC), None]),
        ("text", []),
    ],
)
def test_a_list_arrives_as_it_was(kind, values):
    asked = Statement(f"SELECT value::text FROM unnest(%s::{kind}[]) AS given (value)", (values,))
    with transaction.atomic(), connection.cursor() as cursor:
        (sent,) = perform([asked])
        cursor.execute(f"SELECT unnest(%s::{kind}[])::text", [values])
        assert sent == cursor.fetchall()


def executions(text: str) -> list[int]:
    """How often each statement that is prepared with this text was executed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement = %s",
            [text],
        )
        return [number for (number,) in cursor.fetchall()]


def test_a_statement_is_prepared_once_for_small_and_large_numbers():
    asked = "SELECT count(*) FROM unnest(%s::bigint[])"
    with transaction.atomic():
        perform([Statement(asked, ([1, 2],)), Statement(asked, ([2**40],))] * 6)
        assert executions("SELECT count(*) FROM unnest($1::bigint[])") == [12]


def test_a_plan_is_made_anew_where_the_kept_one_may_be_of_empty_tables():
    asked = Statement("SELECT count(*) FROM runs_run WHERE id = ANY(%s::bigint[])", ([1],))
    with transaction.atomic():
        kept, anew = perform([asked]), perform([asked], keeps_plans=False)
        assert executions("SELECT count(*) FROM runs_run WHERE id = ANY($1::bigint[])") == [1]
    assert kept == anew == [[(0,)]]


def test_plans_are_made_anew_when_twice_as_many_messages_were_sent():
    """PostgreSQL keeps the plan that reads all of a small table while the table grows."""
    asked = Statement("SELECT number FROM grown WHERE number = %s", (1,))
    connection.connection.benchlab_messages = 4 * FIRST_PLANS

    def rows_read():
        before = _scanned()
        assert perform([asked]) == [[(1,)]]
        return _scanned() - before

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE grown (number bigint PRIMARY KEY)")
        cursor.execute("INSERT INTO grown SELECT generate_series(1, 5)")
        cursor.execute("ANALYZE grown")
        assert rows_read() == 5
        cursor.execute("INSERT INTO grown SELECT generate_series(6, 5000)")
    read = [rows_read() for _message in range(4 * FIRST_PLANS)]
    assert (read[0], read[-1]) == (5000, 0)


def _scanned() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_get_xact_tuples_returned('grown'::regclass)")
        return cursor.fetchone()[0]


def test_what_comes_after_an_error_is_not_taken_for_prepared():
    good = Statement("SELECT %s::text || ' comes later'", ("this",))
    with transaction.atomic():
        with pytest.raises(DataError), transaction.atomic():
            perform([Statement("SELECT 1 / %s::integer", (0,)), good])
        assert perform([good, Statement("SELECT '%%'")]) == [[("this comes later",)], [("%",)]]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_ends_in_a_message_is_not_used_again():
    ending = Statement("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError), transaction.atomic():
        perform([Statement("SELECT 1"), ending, Statement("SELECT 2")])

    assert perform([Statement("SELECT 3")]) == [[(3,)]]


def test_more_than_fits_into_buffers_is_sent_while_answers_are_read():
    long = "x" * 10**6
    asked = [Statement("SELECT %s::text || repeat('y', %s::integer)", (long, 10**6))] * 10
    with transaction.atomic():
        assert perform(asked) == [[(long + "y" * 10**6,)]] * 10


def test_a_value_without_a_literal_is_refused_before_anything_is_sent():
    with pytest.raises(TypeError), transaction.atomic():
        perform([Statement("SELECT %s", ({"a": 1},))])
    assert perform([Statement("SELECT 1")]) == [[(1,)]]
