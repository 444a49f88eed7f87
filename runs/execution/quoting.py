"""The only place where an argument list becomes a shell command line."""

import shlex
from collections.abc import Sequence


def shell_line(argv: Sequence[str]) -> str:
    """Quote each argument for a POSIX shell. User text is only ever an argument, never shell.

    Raises ValueError for a null byte, which no argument can carry.
    """
    if any("\0" in argument for argument in argv):
        raise ValueError("an argument holds a null byte")
    return shlex.join(argv)
