"""Several statements in one message, and how their values are sent."""

import pytest
from django.db import connection, transaction

from runs.services.statements import Statement, perform

pytestmark = pytest.mark.django_db

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
