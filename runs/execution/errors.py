"""Errors on a target, each with a stable code, what was found and what to do."""

import errno
import os

from runs.wording import gettext_noop as _
from runs.wording import put, wording_of


class TargetProblem(Exception):
    """A run or an inspection cannot continue, because of the target.

    `text` is marked for translation, and has a place for each of the `values`, which quote the
    target or are problems themselves. `message` is the English sentence, `wording` what others are
    made of (`runs.wording`).
    """

    code = "target_problem"
    remedy = ""
    # Which server is at fault, or cannot be reached, if a run has several.
    server_id: int | None = None

    def __init__(
        self, text: str, *, code: str = "", remedy: str = "", **values: object
    ) -> None:
        self.wording = wording_of(text, values)
        self.message = put(self.wording)
        super().__init__(self.message)
        self.code = code or self.code
        self.remedy = remedy or self.remedy


class ServerFault(TargetProblem):
    """No run can be executed on the server until somebody has mended it.

    Then `needed_bytes` are free there, the base directory's file system is the one mounted at
    `mount` (empty: any), sudo allows the action `privilege` (empty: none), and the program at the
    path `program` starts (empty: none).
    """

    needed_bytes = 0
    mount = ""
    privilege = ""
    program = ""


class HostUnreachable(TargetProblem):
    """Nothing answers as SSH at the address."""

    code = "host_unreachable"
    remedy = _("Check address, port and firewall, and that sshd runs on the server.")


class WorkerFault(HostUnreachable):
    """This worker's own host keeps it from connecting: no server is at fault."""

    code = "worker_fault"
    remedy = _(
        "Look at the host of that worker: HOME, permissions, open files and memory. Other workers "
        "go on meanwhile."
    )


# What a process or its host lacks, whatever it wanted to do.
LACKING = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


def classify_worker_error(error: OSError) -> WorkerFault:
    """The fault of a worker that lacks descriptors or memory. Raises any other error again.

    Without descriptors not even the loop that would connect can be made.
    """
    if error.errno not in LACKING:
        raise error
    return WorkerFault(
        _("A worker cannot go on with any run: %(reason)s."),
        reason=os.strerror(error.errno),
    )


class LoginRefused(TargetProblem):
    """The server does not accept BenchLab's key for the user."""

    code = "login_refused"
    remedy = _(
        "Add BenchLab's public key (shown on the server's page) to ~/.ssh/authorized_keys of "
        "that user, and check that the account is not locked."
    )


class HostKeyChanged(TargetProblem):
    """The server shows another host key than the one that a person confirmed."""

    code = "host_key_changed"
    remedy = _(
        "Nothing was executed. If the server was reinstalled, compare the new fingerprint on the "
        "server itself and confirm it on the server's page; if not, somebody may be in between."
    )


# The server cannot be used: the run is left as it is, for whoever can reach it next.
OUT_OF_REACH = (HostUnreachable, HostKeyChanged, LoginRefused)


class ConnectionLost(TargetProblem):
    """The connection broke; what was started on the target continues there."""

    code = "connection_lost"
    remedy = _("BenchLab connects again and picks up the step where it is.")


class EndedBySignal(ConnectionLost):
    """What answers on the target was ended from outside, as it is when the machine shuts down."""


class TooFewSessions(ServerFault):
    """The connection is open, but the server opens no further session on it."""

    code = "too_few_sessions"
    remedy = _(
        "Raise MaxSessions to 10 (OpenSSH's default) in the server's sshd_config and reload sshd. "
        "If it is 10 already, the account cannot start another process: check ulimit -u."
    )


class CommandTimeout(TargetProblem):
    """A command does not end although its machine answers."""

    code = "command_timeout"
    remedy = _(
        "Look at the server: a disk or a network file system that does not answer, or a machine "
        "that is overloaded. Then queue the run again."
    )


class TargetRestarted(TargetProblem):
    """A step or a cluster vanished without an exit status: the target was restarted."""

    code = "target_restarted"
    remedy = _("The run is started again from its beginning.")


class LoadsApart(TargetRestarted):
    """The load generators did not start together: their figures cannot be added up."""

    code = "loads_apart"


class MachineTaken(TargetRestarted):
    """Another run has this machine, under another name of it: the run waits for its turn."""

    code = "machine_taken"
    remedy = _("The run is started again when its machine is free.")


class Cancelled(Exception):
    """A person asked for the run to stop."""


class Detached(Exception):
    """This worker lets go of the run without touching it: another one continues."""


class EndNotSeen(Detached):
    """A step has ended on the target, but this worker still waits: another one will see it."""
