"""What an upload says of where and of what it was measured: machine, PostgreSQL, revision."""

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.utils.translation import gettext as _

from runs.api.uploads.fields import (
    Faults,
    Object,
    is_object,
    is_storable,
    items,
    mapping,
    refuse_unknown,
    slug,
    strings,
    text,
    time,
    whole,
)
from runs.postgresql_settings import secrets
from runs.selectors.archive import versions
from runs.services.uploads import GivenProfile, GivenRevision

HARDWARE_TEXTS = {"name": 200, "cpu_model": 200, "virtualization": 60}
HARDWARE_NUMBERS = ("sockets", "cores", "threads")
HARDWARE = frozenset({*HARDWARE_TEXTS, *HARDWARE_NUMBERS, "memory_bytes", "facts"})
ENVIRONMENT_TEXTS = {"os_name": 200, "kernel": 200, "architecture": 40}
ENVIRONMENT = frozenset({*ENVIRONMENT_TEXTS, "facts"})
POSTGRESQL = frozenset({"version", "settings"})
REVISION = frozenset({"sha", "ref", "url", "committed_at", "parents"})
TOOL = frozenset({"name", "version"})
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
MOST_PARENTS = 100
IS_URL = URLValidator(schemes=["http", "https"])


def hardware(of: Object, at: str, faults: Faults) -> GivenProfile | None:
    """A slug, or an object of what is known of the machine."""
    given = of.get("hardware")
    if given is None or isinstance(given, str):
        return _by_slug(of, "hardware", at, faults)
    at = f"{at}/hardware"
    if not is_object(given, at, faults):
        return None
    refuse_unknown(given, HARDWARE, at, faults)
    found: Object = _texts(given, HARDWARE_TEXTS, at, faults)
    for name in HARDWARE_NUMBERS:
        if (value := whole(given, name, at, faults, least=1, most=2**31 - 1)) is not None:
            found[name] = value
    memory = whole(given, "memory_bytes", at, faults, least=1, most=2**62)
    if memory is not None:
        found["memory_bytes"] = memory
    found |= _facts(given, at, faults)
    if not found:
        faults.add(at, "empty", _("Says nothing: leave it out."))
        return None
    found.setdefault("name", found.get("cpu_model") or "?")
    return GivenProfile(fields=found)


def environment(of: Object, at: str, faults: Faults) -> GivenProfile | None:
    """A slug, or an object of what is known of the system."""
    given = of.get("environment")
    if given is None or isinstance(given, str):
        return _by_slug(of, "environment", at, faults)
    at = f"{at}/environment"
    if not is_object(given, at, faults):
        return None
    refuse_unknown(given, ENVIRONMENT, at, faults)
    found = _texts(given, ENVIRONMENT_TEXTS, at, faults) | _facts(given, at, faults)
    if not found:
        faults.add(at, "empty", _("Says nothing: leave it out."))
        return None
    return GivenProfile(fields=found)


def postgresql(of: Object, at: str, faults: Faults) -> tuple[str, dict[str, str]]:
    """The version and the settings of the server that was measured."""
    given = mapping(of, "postgresql", at, faults)
    if given is None:
        return "", {}
    at = f"{at}/postgresql"
    refuse_unknown(given, POSTGRESQL, at, faults)
    version = versions.of_package(text(given, "version", at, faults, most=200))
    if version and not versions.TEXT.fullmatch(version):
        message = _("Not a version, such as 16, 16.14 or 18.3 (Ubuntu 18.3-1.pgdg22.04+1).")
        faults.add(f"{at}/version", "not_a_version", message)
        version = ""
    settings = strings(given, "settings", at, faults, most=1000, most_characters=10_000)
    return version, secrets.masked_all(settings)


def tool(of: Object, at: str, faults: Faults) -> tuple[str, str]:
    """Name and version of what put the load on; the name alone is enough."""
    given = of.get("tool")
    if given is None or isinstance(given, str):
        return text(of, "tool", at, faults, most=40), ""
    at = f"{at}/tool"
    if not is_object(given, at, faults):
        return "", ""
    refuse_unknown(given, TOOL, at, faults)
    name = text(given, "name", at, faults, most=40, required=True)
    return name, text(given, "version", at, faults, most=40)


def revision(of: Object, at: str, faults: Faults) -> GivenRevision | None:
    """The commit that was measured."""
    given = mapping(of, "revision", at, faults)
    if given is None:
        return None
    at = f"{at}/revision"
    refuse_unknown(given, REVISION, at, faults)
    sha = text(given, "sha", at, faults, most=64, required=True)
    if sha and not SHA.fullmatch(sha):
        faults.add(f"{at}/sha", "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
    url = text(given, "url", at, faults, most=500)
    if url and not _is_url(url):
        faults.add(f"{at}/url", "not_a_url", _("Not an address that begins with https://."))
    return GivenRevision(
        sha=sha.lower(),
        ref=text(given, "ref", at, faults, most=200),
        url=url,
        committed_at=time(given, "committed_at", at, faults),
        parents=_parents(given, at, faults),
    )


def _parents(given: Object, at: str, faults: Faults) -> tuple[str, ...]:
    listed = items(given, "parents", at, faults, most=MOST_PARENTS)
    for index, each in enumerate(listed):
        if type(each) is not str or not SHA.fullmatch(each):
            message = _("Not 7 to 64 hexadecimal digits.")
            faults.add(f"{at}/parents/{index}", "not_a_sha", message)
    return tuple(each.lower() for each in listed if isinstance(each, str))


def _by_slug(of: Object, name: str, at: str, faults: Faults) -> GivenProfile | None:
    found = slug(of, name, at, faults, most=120)
    return GivenProfile(slug=found) if found else None


def _texts(given: Object, names: dict[str, int], at: str, faults: Faults) -> Object:
    found = {name: text(given, name, at, faults, most=most) for name, most in names.items()}
    return {name: value for name, value in found.items() if value}


def _facts(given: Object, at: str, faults: Faults) -> Object:
    """Whatever else is known: any JSON of a sensible size."""
    facts = mapping(given, "facts", at, faults)
    if not facts:
        return {}
    flat: list[Any] = [facts]
    for value in flat:  # it grows while it is walked
        if isinstance(value, dict):
            flat += [*value, *value.values()]
        elif isinstance(value, list):
            flat += value
        elif isinstance(value, str):
            is_storable(value, f"{at}/facts", faults, most=10_000)
        elif isinstance(value, float) and value - value != 0:
            faults.add(f"{at}/facts", "not_finite", _("Not a finite number."))
        if len(flat) > 10_000:
            faults.add(f"{at}/facts", "too_many", _("Too many facts."))
            break
    return {"facts": facts}


def _is_url(value: str) -> bool:
    try:
        IS_URL(value)
    except ValidationError:
        return False
    return True
