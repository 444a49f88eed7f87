"""Every reader of foreign texts that a page or the API has: its name, and what it answers.

A reader is a function of one argument, a plain request (JSON, with bytes as {"base64": ...}), in a
module of `runs.reading.kinds`. Each module is imported when it is first asked, so that a process
that reads a plan is not one that has loaded an XML parser.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Reader:
    """`read` takes a request; it raises one of `refusals` for what it does not understand.

    `answer` is the annotation of what it gives back.
    """

    read: Callable[[Request], Any]
    answer: Any
    refusals: tuple[type[Exception], ...] = ()


KINDS = {
    "import": "runs.reading.kinds.peers",
    "plan": "runs.reading.kinds.plans",
    "scripts": "runs.reading.kinds.scripts",
    "settings": "runs.reading.kinds.settings",
    "tool": "runs.reading.kinds.tools",
}


def find(kind: str) -> Reader:
    """The reader of a kind. Raises KeyError."""
    found: Reader = import_module(KINDS[kind]).READER
    return found
