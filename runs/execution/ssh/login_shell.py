"""What the login shell of a target executes, and what it prints itself."""

import re
import shlex
from collections.abc import Sequence

from runs.execution.errors import ServerFault
from runs.wording import gettext_noop as _


def shell_line(argv: Sequence[str]) -> str:
    """Quote each argument for a POSIX shell. User text is only ever an argument, never shell.

    Raises ValueError for a null byte, which no argument can carry.
    """
    return shlex.join(map(shell_text, argv))


def shell_text(text: str) -> str:
    """The text, which must be without null bytes. Raises ValueError."""
    if "\0" in text:
        raise ValueError("an argument holds a null byte")
    return text


# A shell that had nothing left to do would become the program itself, which then starts another one
# for the session, and ends at once. Every shell's `exit` repeats the status.
IN_OWN_SESSION = "setsid {}; exit"
# What is quoted of a login shell, in bytes.
MOST_SAID = 300
# Separates a command's output from what a login shell prints before it.
BEGIN = b"benchlab-begin\n"
# Whether the login shell is a plain `sh`, to which sshd has given a session and a process group. It
# is asked by what that shell has started; `read` leaves out the null bytes between arguments.
_ASK = r"""(
    line= stat=
    { read -r line </proc/$PPID/cmdline; read -r stat </proc/$PPID/stat; } 2>/dev/null
    set -- ${stat##*) }
    case ${line%%; *}/${3:-}/${4:-} in
    sh-cecho*/$PPID/$PPID | /bin/sh-cecho*/$PPID/$PPID | dash-cecho*/$PPID/$PPID)
        echo benchlab-login yes
        ;;
    *) echo benchlab-login no ;;
    esac
)
"""
_TOLD = re.compile(rb"benchlab-login (yes|no)\n")


class LoginShell:
    """What executes the commands of a connection; the first script there finds out.

    Most are a plain `sh`, which needs no second one for a script, nor `setsid`: a step then starts
    two programs less. Another one may know another language, or what its user has configured.
    """

    def __init__(self) -> None:
        self._is_plain: bool | None = None

    def line(self, argv: Sequence[str], *, in_own_session: bool = False) -> str:
        """The line for a command; a script is one as `sh -c SCRIPT NAME WORDS...`."""
        is_script = tuple(argv[:2]) == ("sh", "-c") and len(argv) > 3
        if is_script and self._is_plain:
            # Its standard input, exit status and process are the script's.
            return f"{shell_line(['set', '--', *argv[4:]])}\n{shell_text(argv[2])}"
        if is_script and self._is_plain is None:
            argv = ["sh", "-c", _ASK + argv[2], *argv[3:]]
        line = shell_line(argv)
        return IN_OWN_SESSION.format(line) if in_own_session else line

    def heard(self, printed: bytes) -> bytes:
        """What a command printed itself, without the answer to what was asked before it."""
        match = _TOLD.match(printed)
        if match is None:
            return printed
        self._is_plain = match[1] == b"yes"
        return printed[match.end() :]


def own_output(
    stdout: bytes | bytearray, exit_status: int, stderr: bytes | bytearray
) -> bytes:
    """A command's output, without the greeting of a login shell before it.

    Raises TargetProblem `no_report` if the login shell started no command at all.
    """
    begin = stdout.find(BEGIN)
    if begin < 0:
        raise shell_fault(bytes(stdout[:MOST_SAID] + stderr[:MOST_SAID]))
    return bytes(memoryview(stdout)[begin + len(BEGIN) :])


def shell_fault(output: bytes) -> ServerFault:
    """The error for a login shell that ends, or does not understand, what sh would execute."""
    text = output[:MOST_SAID].replace(BEGIN, b"").decode(errors="replace")
    return ServerFault(
        _(
            "The account's login shell does not execute BenchLab's commands. It said: %(said)s"
        ),
        code="no_report",
        remedy=_(
            "Give the account a plain shell, as root: usermod -s /bin/sh and the account's name. "
            "If it has one, look for exit, exec and set in the files that it reads at login, and "
            "for ForceCommand in sshd_config."
        ),
        said=_TOLD.sub(b"", text.encode()).decode().strip() or "–",
    )
