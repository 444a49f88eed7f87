"""Completions in the editor while a person types a setting's name."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.postgresql_settings import values
from runs.postgresql_settings.catalogue import (
    MAJORS,
    Kind,
    all_names,
    existence,
    position,
    setting,
)

MOST = 20


@dataclass(frozen=True)
class Completion:
    """A setting's name with short facts, as the newest of the asked versions has it.

    `versions` are the spans that have it (`9.5-`, `9.2-9.4`); `missing` are those of the asked
    versions that have it not. `default` and `allowed` are spelled with units.
    """

    name: str
    kind: Kind
    default: str
    allowed: str
    words: tuple[str, ...]
    unit: str
    context: str
    versions: str
    missing: tuple[str, ...]
    category: str
    description: str


def complete(
    prefix: str, majors: Sequence[str], *, most: int = MOST
) -> tuple[Completion, ...]:
    """Settable names of those versions that start with the prefix, then those that contain it.

    Raises UnknownVersion.
    """
    typed = prefix.lower()
    newest_first = sorted(majors, key=position, reverse=True)
    matching_names = [name for name in all_names() if typed in name.lower()]
    matching_names.sort(
        key=lambda name: (not name.lower().startswith(typed), name.lower())
    )
    offered = (_offer(name, newest_first) for name in matching_names)
    return tuple(completion for completion in offered if completion is not None)[:most]


def versions(name: str) -> str:
    """The versions that have the setting, for people: `9.5-`, `9.2-9.4`; empty for none."""
    has = existence(name)
    if not has:
        return ""
    last_version = "" if has[-1] == MAJORS[-1] else has[-1]
    return has[0] if has[0] == last_version else f"{has[0]}-{last_version}"


def _offer(name: str, newest_first: Sequence[str]) -> Completion | None:
    having = [
        catalogued
        for major in newest_first
        if (catalogued := setting(name, major)) is not None
    ]
    if not having or having[0].is_preset:
        return None
    facts = having[0]
    known_majors = {setting.major for setting in having}
    return Completion(
        name=facts.name,
        kind=facts.kind,
        default=values.default(facts),
        allowed=values.allowed(facts),
        words=("on", "off") if facts.kind == "bool" else facts.values,
        unit=facts.unit,
        context=facts.context,
        versions=versions(name),
        missing=tuple(
            major for major in reversed(newest_first) if major not in known_majors
        ),
        category=facts.category,
        description=facts.description,
    )
