"""The options of an instance, from environment variables."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchlab.embedded.errors import StartError
from benchlab.embedded.places import var_from_environment

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - recognised, not bound


@dataclass(frozen=True)
class Options:
    """BENCHLAB_VAR, _BIND, _PORT, _URL, _RESTORE and _WORKERS, and ALLOWED_HOSTS.

    `restores` is a backup to bring into a new instance before it starts; `trusts_plain`
    (BENCHLAB_RESTORE_PLAIN=1): also one of 0.2 or before, which was not authenticated.
    """

    var: Path
    bind: str
    port: int
    allowed_hosts: str
    public_url: str
    restores: Path | None = None
    trusts_plain: bool = False
    workers: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read them. Raises StartError for a port, or a number of workers, that is none."""
        bind = environ.get("BENCHLAB_BIND") or "127.0.0.1"
        port = _port(environ.get("BENCHLAB_PORT") or "8000")
        # the local names stay allowed: the instance itself asks by them whether it is ready
        hosts = ["127.0.0.1", "localhost", "[::1]", socket.gethostname(), _host(bind)]
        hosts += filter(None, environ.get("ALLOWED_HOSTS", "").split(","))
        return cls(
            var=var_from_environment(environ),
            bind=bind,
            port=port,
            allowed_hosts=",".join(dict.fromkeys(hosts)),
            public_url=environ.get("BENCHLAB_URL") or f"http://{_host(bind)}:{port}",
            restores=_file(environ.get("BENCHLAB_RESTORE", "")),
            trusts_plain=environ.get("BENCHLAB_RESTORE_PLAIN", "") == "1",
            workers=_workers(environ.get("BENCHLAB_WORKERS", "")),
        )

    @property
    def url(self) -> str:
        """Where a browser on this machine finds the pages, without a slash at the end."""
        return f"http://{_host(self.bind)}:{self.port}"


# Of the machine, for a second worker: where one hangs, the other takes its runs.
MEMORY_FOR_TWO = 3 * 2**30
MOST_WORKERS = 16


def _workers(text: str) -> int:
    if not text:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return 2 if memory >= MEMORY_FOR_TWO else 1
    if not (text.isdecimal() and 1 <= int(text) <= MOST_WORKERS):
        raise StartError(
            f"BENCHLAB_WORKERS is {text!r}: give a number from 1 to {MOST_WORKERS}"
        )
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise StartError(
            f"BENCHLAB_PORT={text} is not a port: choose a number from 1 to 65535"
        )
    return int(text)


def _file(text: str) -> Path | None:
    if text and not Path(text).is_file():
        raise StartError(
            f"BENCHLAB_RESTORE={text} is no file: name a backup that can be read"
        )
    return Path(text).absolute() if text else None


def _host(bind: str) -> str:
    if bind in ANY_ADDRESS:
        return ANY_ADDRESS[bind]
    return f"[{bind}]" if ":" in bind else bind
