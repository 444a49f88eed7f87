"""Every reader of foreign texts that a page or the API has: its name, and what it answers.

A reader has a function of one argument, a plain request (JSON, with bytes as {"base64": ...}), and
is in a module of `runs.reading.kinds`. Each module is imported when it is first asked, so that a
process that reads a plan is not one that has loaded an XML parser.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from runs.reading.limits import OF_A_REQUEST, Limits

Request = dict[str, Any]
Read = Callable[[Request], Any]


@dataclass(frozen=True)
class KindReader:
    """`begin` gives a function that reads one request after the other, of the same sender.

    It raises one of `refusals` for what it does not understand; `answer` is the annotation of what
    it gives back. Most remember nothing from one request to the next: `stateless` makes them.
    """

    begin: Callable[[], Read]
    answer: Any
    refusals: tuple[type[Exception], ...] = ()
    limits: Limits = OF_A_REQUEST


def stateless(
    read: Read, answer: Any, refusals: tuple[type[Exception], ...] = ()
) -> KindReader:
    """A reader each of whose requests is read by itself."""
    return KindReader(lambda: read, answer, refusals)


KINDS = {
    "export": "runs.reading.kinds.exports",
    "import": "runs.reading.kinds.peers",
    "load": "runs.reading.kinds.loads",
    "load data": "runs.reading.kinds.load_data",
    "load dump": "runs.reading.kinds.load_dumps",
    "plan": "runs.reading.kinds.plans",
    "scripts": "runs.reading.kinds.scripts",
    "settings": "runs.reading.kinds.settings",
    "tool": "runs.reading.kinds.tools",
}


def find(kind: str) -> KindReader:
    """The reader of a kind. Raises KeyError."""
    reader: KindReader = import_module(KINDS[kind]).READER
    return reader
