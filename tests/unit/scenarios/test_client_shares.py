"""Clients shared out among load generators."""

import pytest

from runs.scenarios.pgbench_procedure import client_shares


@pytest.mark.parametrize(
    ("clients", "generators", "shares"),
    [(8, 1, [8]), (8, 2, [4, 4]), (7, 3, [3, 2, 2]), (1, 3, [1])],
)
def test_every_client_is_somewhere_and_no_machine_has_none(clients, generators, shares):
    assert client_shares(clients, generators) == shares
