"""Whose fault an error is by which no connection came about."""

import errno

import asyncssh
import pytest

from runs.execution.errors import HostUnreachable, WorkerFault
from runs.execution.ssh import ssh
from runs.execution.ssh.hosts import Address

RACK = Address("192.0.2.1", 22, "lab", "Rack")
FAULTS = {
    "a file of this host": (
        PermissionError(errno.EACCES, "no", "/root/.ssh/crt"),
        True,
    ),
    "a file that is not there": (FileNotFoundError(errno.ENOENT, "no", "/etc/x"), True),
    "open files": (OSError(errno.EMFILE, "Too many open files"), True),
    "memory": (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
    "a firewall of this host": (PermissionError(errno.EPERM, "not permitted"), True),
    "nobody listens": (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), False),
    "no route": (OSError(errno.EHOSTUNREACH, "No route to host"), False),
    "silence": (TimeoutError(), False),
    "no SSH": (asyncssh.ProtocolError("no banner"), False),
}


@pytest.mark.parametrize("case", FAULTS)
def test_an_error_is_of_this_host_or_of_the_other(case):
    error, is_local = FAULTS[case]
    problem = ssh._unreachable(RACK, error)
    assert isinstance(problem, HostUnreachable)
    assert isinstance(problem, WorkerFault) is is_local
    assert ("Rack" in problem.message) is not is_local
    filename = getattr(error, "filename", None)
    assert filename is None or filename in problem.message
