"""The exceptions of services that a person can mend: one fault, or all of a document."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


class ServiceError(Exception):
    """What was asked cannot be done: a stable code, what was found, and what to do about it.

    `field` names the input that is at fault, where it is a single one.
    """

    def __init__(self, code: str, message: str, *, remedy: str = "", field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.field = field


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with what was sent. `pointer` is its place, as a JSON pointer."""

    pointer: str
    code: str
    message: str


class Refused(Exception):
    """What was sent cannot be stored, with every fault that was found. Nothing was stored.

    `invalid` by itself; `contradicts` what is stored already; `conflict` with something that must
    not be there twice.
    """

    def __init__(
        self, kind: Literal["invalid", "contradicts", "conflict"], faults: Sequence[Fault]
    ) -> None:
        super().__init__(", ".join(fault.message for fault in faults))
        self.kind = kind
        self.faults = faults
