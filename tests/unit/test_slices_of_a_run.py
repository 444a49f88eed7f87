"""The rates of a run's slices, also of those in which the machine stood still."""

from types import SimpleNamespace

import pytest

from runs.scenarios.slices import Slice, rates


def measured(*transactions):
    return [
        Slice(
            begun=float(number),
            result=SimpleNamespace(transactions_processed=count or None, tps=count),
            step=SimpleNamespace(seconds=1.0),
            foreign=None,
        )
        for number, count in enumerate(transactions)
    ]


@pytest.mark.parametrize(
    ("transactions", "expected"),
    [
        ((100, 0, 120), [100, None, 120]),
        # It stood still most of the time.
        ((0, 0, 0, 0, 1000, 1100), [None] * 4 + [1000, 1100]),
        # Where a slice has few transactions, it may have none by chance.
        ((1, 0, 2), [1, 0.5, 2]),
        ((0, 0), [0.5, 0.5]),
    ],
)
def test_a_slice_without_a_transaction_says_nothing_where_others_have_many(
    transactions, expected
):
    assert rates(measured(*transactions)) == expected
