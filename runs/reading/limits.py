"""What a process that reads somebody else's file may use, and how it is kept to itself.

`resource` limits hold for everything in the process. The audit hook (PEP 578, it cannot be taken
away again) holds for what Python does: it is a second fence, and not one against a fault in the
interpreter itself.
"""

import os
import resource
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What one process may use, whatever it reads.

    `memory_bytes` is an address space; `is_long` says that each request has its own time to wait.
    """

    cpu_seconds: int
    memory_bytes: int
    is_long: bool = False


# 10 MB of JSON, the largest that a door takes, need about 400 MB.
OF_A_REQUEST = Limits(cpu_seconds=10, memory_bytes=2**30)
# Some hundred MB, unpacked and counted.
OF_A_DUMP = Limits(cpu_seconds=90, memory_bytes=2**30, is_long=True)
# A project of a million runs.
OF_A_PROJECT = Limits(cpu_seconds=3600, memory_bytes=2**32, is_long=True)
# What a ZIP may have unpacked, and a little more.
FILE_BYTES = 24_000_000
OPEN_FILES = 64
# What is handed back. Larger than what 10 MB of any tool's output become.
ANSWER_BYTES = 64 * 2**20
# Pages are answered first.
NICENESS = 10
# In front of each request and each answer.
LENGTH = struct.Struct(">Q")

_FORBIDDEN = (
    "socket.",
    "subprocess.",
    "ctypes.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
)
_ALSO = frozenset(
    {
        "os.system",
        "os.kill",
        "os.killpg",
        "os.putenv",
        "os.link",
        "os.symlink",
        "os.startfile",
    }
)
_ENGINES = str(Path(__file__).parents[1])
_LIBRARY = str(Path(os.__file__).parent)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


def keep_within(folder: str, packages: Iterable[str], limits: Limits) -> None:
    """Limit this process, for good: to the folder it may write in, and to what it may use.

    It still reads the modules of BenchLab, of the standard library and of `packages`.
    """
    os.nice(NICENESS)
    # The first ends it by SIGXCPU, which says why; the second whatever it does.
    resource.setrlimit(
        resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1)
    )
    for limit, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    real_folder = os.path.realpath(folder) + os.sep
    readable = tuple(
        os.path.realpath(place) + os.sep for place in (_ENGINES, _LIBRARY, *packages)
    )

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            _check_file(arguments, real_folder, readable)
        elif event.startswith(_FORBIDDEN) or event in _ALSO:
            raise PermissionError(
                f"{event} is not allowed where foreign files are read."
            )

    sys.addaudithook(refuse)


def _check_file(
    arguments: tuple[Any, ...], own: str, readable: tuple[str, ...]
) -> None:
    path, mode, flags = arguments
    if isinstance(path, int):
        return
    place = os.path.realpath(os.fsdecode(path))
    if place.startswith(own):
        return
    writes = bool((flags or 0) & _WRITING) or any(
        letter in "wax+" for letter in mode or ""
    )
    if writes or not place.startswith(readable):
        raise PermissionError(
            f"{place} is not open to a process that reads foreign files."
        )
