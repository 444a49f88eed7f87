"""Changes of a machine in the reader's words."""

from collections.abc import Sequence
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.selectors.histories.host_changes import HostChange
from runs.selectors.servers.host_facts import shown

ARROW = "\N{RIGHTWARDS ARROW}"
LONGEST_LABEL = 40
LONGEST_LINE = 300
# What a reader of a chart looks for first, in this order.
_TITLES = {
    "cpu_model": gettext_noop("CPU"),
    "memory_bytes": gettext_noop("memory"),
    "kernel": gettext_noop("kernel"),
    "os_name": gettext_noop("operating system"),
    "governor": gettext_noop("governor"),
    "smt": "SMT",
    "turbo": "turbo",
    "disks": gettext_noop("disks"),
}


def told(change: HostChange) -> list[str]:
    """Each difference as a line, the most telling first."""
    names = list(_TITLES)
    ordered = sorted(
        change.differences,
        key=lambda each: names.index(each.name) if each.name in _TITLES else len(names),
    )
    return [
        f"{_title(each.name)} {_value(each.name, each.before)} {ARROW} "
        f"{_value(each.name, each.after)}"[:LONGEST_LINE]
        for each in ordered
    ]


def label(lines: Sequence[str]) -> str:
    """The first line, shortened, and the number of further lines."""
    text = lines[0]
    if len(text) > LONGEST_LABEL:
        text = f"{text[: LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"{text} +{len(lines) - 1}" if len(lines) > 1 else text


def _title(name: str) -> str:
    return _(_TITLES[name]) if name in _TITLES else name


def _value(name: str, value: Any) -> str:
    if name == "memory_bytes" and isinstance(value, int):
        return str(filesizeformat(value)).replace("\xa0", " ")
    return shown(value)
