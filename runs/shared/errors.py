"""Errors that a person can fix: one fault, all faults of a document, or why nothing is queued."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


class ServiceError(Exception):
    """The request cannot be done: a stable code, what was found, and what to do about it.

    `field` names the input at fault, if there is exactly one.
    """

    def __init__(
        self, code: str, message: str, *, remedy: str = "", field: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.field = field


@dataclass(frozen=True)
class Fault:
    """One fault in what was sent. `pointer` is its place, as a JSON pointer.

    `remedy` says what to send instead, if the code alone does not say it.
    """

    pointer: str
    code: str
    message: str
    remedy: str = ""


class Refused(Exception):
    """What was sent cannot be stored; carries every fault found. Nothing was stored.

    `invalid` in itself; `contradicts` something stored; or `conflict` with something that may exist
    only once.
    """

    def __init__(
        self,
        kind: Literal["invalid", "contradicts", "conflict"],
        faults: Sequence[Fault],
    ) -> None:
        super().__init__(", ".join(fault.message for fault in faults))
        self.kind = kind
        self.faults = faults


@dataclass(frozen=True)
class Problem:
    """Why a draft cannot be queued, and what to do. `field` names the input at fault."""

    code: str
    message: str
    remedy: str
    field: str
