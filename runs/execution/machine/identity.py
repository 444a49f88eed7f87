"""Which machine it is that answers, whatever it was registered as.

Two registrations may lead to one machine, which then measures for one of them at a time.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from runs.execution.machine.sections import Sections, first, number_in

MOST_CHARACTERS = 64


@dataclass(frozen=True)
class Identity:
    """What a machine says of itself; empty where it does not say it.

    `machine_id` is /etc/machine-id, which copies of a machine and containers may share. `boot_id`
    is new at each start of a kernel, so it is that of one running kernel and of its containers.
    `product_uuid` is the firmware's, which root alone may read on most machines. `fences` are the
    servers whose claims have left their number in the base directory.
    """

    machine_id: str = ""
    boot_id: str = ""
    product_uuid: str = ""
    fences: tuple[int, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether it says of itself which machine it is."""
        return bool(self.boot_id or self.machine_id)


@dataclass(frozen=True)
class Seen:
    """An identity, and between which two times its kernel was seen."""

    identity: Identity
    first: datetime
    last: datetime

    def again(self, identity: Identity, at: datetime) -> "Seen":
        """The same after another look."""
        is_same_kernel = identity.boot_id == self.identity.boot_id
        return replace(
            self, identity=identity, last=at, first=self.first if is_same_kernel else at
        )

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        times = {"first": self.first.isoformat(), "last": self.last.isoformat()}
        return {**asdict(self.identity), "fences": list(self.identity.fences), **times}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "Seen":
        """What `to_json` has stored."""
        identity = Identity(
            machine_id=stored["machine_id"],
            boot_id=stored["boot_id"],
            product_uuid=stored["product_uuid"],
            fences=tuple(stored["fences"]),
        )
        first_time = datetime.fromisoformat(stored["first"])
        last_time = datetime.fromisoformat(stored["last"])
        return Seen(identity, first_time, last_time)


def read(sections: Sections) -> Identity:
    """Read the sections of `probe.sh` about identity."""
    names = (number_in(name) for name in sections.get("fences", []))
    return Identity(
        machine_id=first(sections, "machine_id")[:MOST_CHARACTERS],
        boot_id=first(sections, "boot_id")[:MOST_CHARACTERS],
        product_uuid=first(sections, "product_uuid")[:MOST_CHARACTERS].lower(),
        fences=tuple(number for number in names if number is not None),
    )


def is_one_machine(one: Seen, other: Seen) -> bool:
    """Whether both are taken for one machine. In doubt they are.

    Of one kernel they are, also as containers of it, which share its processors. With one
    machine-id and two kernels they are one machine that has been started again, unless both
    kernels were seen at the same time: then one is a copy of the other.
    """
    if differ(one.identity.product_uuid, other.identity.product_uuid):
        return False
    if one.identity.boot_id and one.identity.boot_id == other.identity.boot_id:
        return True
    if not has_one_id(one, other):
        return False
    are_two_kernels = differ(one.identity.boot_id, other.identity.boot_id)
    return not (are_two_kernels and _overlap(one, other))


def is_in_doubt(one: Seen, other: Seen) -> bool:
    """Whether a look at both again would tell a copy of a machine from one that was restarted."""
    are_two_kernels = differ(one.identity.boot_id, other.identity.boot_id)
    return are_two_kernels and has_one_id(one, other) and is_one_machine(one, other)


def has_one_id(one: Seen, other: Seen) -> bool:
    """Whether they have one machine-id, as copies and restarted machines do."""
    return (
        bool(one.identity.machine_id)
        and one.identity.machine_id == other.identity.machine_id
    )


def differ(one: str, other: str) -> bool:
    """Whether both are known, and not the same."""
    return bool(one and other) and one != other


def _overlap(one: Seen, other: Seen) -> bool:
    """Whether each kernel was seen before the other was seen for the last time."""
    return one.first < other.last and other.first < one.last
