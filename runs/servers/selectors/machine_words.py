"""Machines and their systems in one line: for reports, labels and what people search for."""

import re
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Environment, HardwareProfile
from runs.shared.formats import memory, named, spoken, term

# Operating systems as people search for them: the family and its major version.
OS_NAME = re.compile(r"\A(.*?\b\d++)(?=[.(\s]|\Z)")


def hardware(profile: HardwareProfile | None) -> str:
    """A machine in one line; unknown facts are left out."""
    if profile is None:
        return "–"
    cores, threads = profile.cores, profile.threads
    descriptions = [
        named(profile),
        profile.cpu_model if profile.cpu_model != profile.name else "",
        _("%(count)d cores") % {"count": cores} if cores else "",
        _("%(count)d threads") % {"count": threads} if threads else "",
        memory(profile) if profile.memory_bytes else "",
        profile.virtualization,
        *(
            f"{term(name)}: {text}"
            for name, value in profile.facts.items()
            if (text := _text_of(value))
        ),
    ]
    return " · ".join(description for description in descriptions if description)


def environment(environment: Environment | None) -> str:
    """An operating system in one line."""
    if environment is None:
        return "–"
    descriptions = (
        environment.os_name,
        f"{environment.kernel} {environment.architecture}".strip(),
    )
    return " · ".join(description for description in descriptions if description) or "–"


def _text_of(value: Any) -> str:
    """A fact that is text, in both languages or one; structures are only for programs."""
    if isinstance(value, str | int | float):
        return str(value)
    is_text = isinstance(value, dict) and "en" in value and isinstance(value["en"], str)
    return spoken(value) if is_text else ""


def operating_system(name: str) -> str:
    """Name and major version: "CentOS 7" of CentOS 7.4(1708)."""
    match = OS_NAME.match(name)
    return match.group(1) if match else name
