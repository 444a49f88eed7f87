"""On which address a cluster may listen for its load generators."""

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.listening import checked


@pytest.mark.parametrize(
    "address", ["192.0.2.1", "fe80::1%eth0", "db1.example.org", "0db", "10.0.0.0"]
)
def test_one_address_is_accepted(address):
    assert checked(address) == address


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "0", "0x0", "0:0:0:0:0:0:0:0", "::", "*", "", "a,b", "a b", '"$(id)"']
)
def test_every_address_and_what_a_shell_reads_is_refused(address):
    with pytest.raises(TargetProblem) as problem:
        checked(address)
    assert problem.value.code == "address_unknown"
