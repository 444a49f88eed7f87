"""The circumstances of an upload: machine, PostgreSQL, revision."""

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.utils.translation import gettext as _

from runs.api.uploads.fields import (
    Faults,
    Object,
    below,
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
from runs.postgresql_settings import catalogue, secrets
from runs.selectors.archive import versions
from runs.services.uploads import GivenProfile, GivenRevision

HARDWARE_TEXTS = {"name": 200, "cpu_model": 200, "virtualization": 60}
# The least and the most of each that a machine could have.
HARDWARE_NUMBERS = {
    "sockets": (1, 1024),
    "cores": (1, 65_536),
    "threads": (1, 262_144),
    "memory_bytes": (2**20, 2**50),
}
ENVIRONMENT_TEXTS = {"os_name": 200, "kernel": 200, "architecture": 40}
DEEPEST_FACTS = 16
# From so many settings on it is all that a server has; every version has more.
WHOLE_LISTING = 150
SETTING = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)*")
POSTGRESQL = frozenset({"version", "settings"})
REVISION = frozenset({"sha", "ref", "url", "committed_at", "parents"})
TOOL = frozenset({"name", "version"})
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
MOST_PARENTS = 100
REF_PREFIX = re.compile(r"\A(?:refs/(?:heads|tags|remotes/[^/]{1,100})/|refs/|origin/)")
IS_URL = URLValidator(schemes=["http", "https"])


def hardware(body: Object, at: str, faults: Faults) -> GivenProfile | None:
    """A slug, or an object of what is known of the machine."""
    machine = _profile(body, "hardware", HARDWARE_TEXTS, HARDWARE_NUMBERS, at, faults)
    if machine is None or machine.slug:
        return machine
    return GivenProfile(fields={"name": machine.fields.get("cpu_model", "?"), **machine.fields})


def environment(body: Object, at: str, faults: Faults) -> GivenProfile | None:
    """A slug, or an object of what is known of the system."""
    return _profile(body, "environment", ENVIRONMENT_TEXTS, {}, at, faults)


def _profile(
    body: Object,
    name: str,
    texts: Mapping[str, int],
    numbers: Mapping[str, tuple[int, int]],
    at: str,
    faults: Faults,
) -> GivenProfile | None:
    """`texts` each with its greatest length, `numbers` with their least and greatest value."""
    given = body.get(name)
    if given is None or isinstance(given, str):
        found = slug(body, name, at, faults, most=120)
        return GivenProfile(slug=found) if found else None
    at = f"{at}/{name}"
    if not is_object(given, at, faults, or_text=True):
        return None
    refuse_unknown(given, {*texts, *numbers, "facts"}, at, faults)
    fields: Object = {key: text(given, key, at, faults, most=most) for key, most in texts.items()}
    for key, (least, most) in numbers.items():
        fields[key] = whole(given, key, at, faults, least=least, most=most)
    fields = {key: value for key, value in fields.items() if value} | _facts(given, at, faults)
    if not fields:
        faults.add(at, "empty", _("It is empty: leave it out."))
        return None
    return GivenProfile(fields=fields)


def postgresql(body: Object, at: str, faults: Faults) -> tuple[str, dict[str, str]]:
    """The version and the settings of the server that was measured."""
    given = mapping(body, "postgresql", at, faults)
    if given is None:
        return "", {}
    at = f"{at}/postgresql"
    refuse_unknown(given, POSTGRESQL, at, faults)
    version = versions.of_package(text(given, "version", at, faults, most=200))
    if version and not versions.TEXT.fullmatch(version):
        message = _("Not a version, such as 16, 16.14 or 18.3 (Ubuntu 18.3-1.pgdg22.04+1).")
        faults.add(f"{at}/version", "not_a_version", message)
        version = ""
    if version and not versions.is_released(version):
        message = _("There is no PostgreSQL %(version)s.") % {"version": version}
        faults.add(f"{at}/version", "not_a_version", message)
        version = ""
    settings = strings(given, "settings", at, faults, most=1000, most_characters=10_000)
    _check_settings(settings, version, f"{at}/settings", faults)
    return version, secrets.masked_all(settings)


def _check_settings(settings: Mapping[str, str], version: str, at: str, faults: Faults) -> None:
    """Names that no version has. Of versions that are newer than the catalogue nobody knows.

    A whole listing is the server's own word: packages have settings of their own (Debian's
    `extension_destdir`), and so has a commit that adds one.
    """
    if version and catalogue.known_major(version) is None:
        return
    if len(settings) >= WHOLE_LISTING and all(map(SETTING.fullmatch, settings)):
        return
    for name in settings:
        if SETTING.fullmatch(name) and ("." in name or name.lower() in _known_settings()):
            continue
        nearest = difflib.get_close_matches(name.lower()[:100], _known_settings(), n=1)
        message = _("PostgreSQL has no setting of this name.")
        if nearest:
            message += " " + _("The nearest is %(name)s.") % {"name": nearest[0]}
        faults.add(below(at, name[:100]), "unknown_setting", message)


@functools.cache
def _known_settings() -> frozenset[str]:
    return frozenset(name.lower() for name in catalogue.all_names())


def tool(body: Object, at: str, faults: Faults) -> tuple[str, str]:
    """Name and version of the load generator; the name alone is enough."""
    given = body.get("tool")
    if given is None or isinstance(given, str):
        return text(body, "tool", at, faults, most=40), ""
    at = f"{at}/tool"
    if not is_object(given, at, faults, or_text=True):
        return "", ""
    refuse_unknown(given, TOOL, at, faults)
    name = text(given, "name", at, faults, most=40, required=True)
    return name, text(given, "version", at, faults, most=40)


def revision(body: Object, at: str, faults: Faults) -> GivenRevision | None:
    """The commit that was measured."""
    given = mapping(body, "revision", at, faults)
    if given is None:
        return None
    at = f"{at}/revision"
    refuse_unknown(given, REVISION, at, faults)
    sha = text(given, "sha", at, faults, most=64, required=True)
    if sha and not SHA.fullmatch(sha):
        faults.add(f"{at}/sha", "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
    elif sha and not sha.strip("0"):
        faults.add(f"{at}/sha", "not_a_sha", _("Zeros alone are no commit."))
    url = text(given, "url", at, faults, most=500)
    if url and not _is_url(url):
        faults.add(f"{at}/url", "not_a_url", _("Not an address that begins with https://."))
    return GivenRevision(
        sha=sha.lower(),
        ref=_branch(text(given, "ref", at, faults, most=200)),
        url=url,
        committed_at=time(given, "committed_at", at, faults),
        parents=_parents(given, sha.lower(), at, faults),
    )


def _branch(ref: str) -> str:
    """A branch as git shows it, however a CI spells it; none where HEAD is on none."""
    ref = ref.strip()
    is_none = ref in ("HEAD", "detached") or ref.startswith("(")  # as Jenkins and git branch say it
    return "" if is_none else REF_PREFIX.sub("", ref, count=1)


def _parents(given: Object, sha: str, at: str, faults: Faults) -> tuple[str, ...]:
    listed = items(given, "parents", at, faults, most=MOST_PARENTS)
    for index, each in enumerate(listed):
        pointer = f"{at}/parents/{index}"
        if type(each) is not str or not SHA.fullmatch(each):
            faults.add(pointer, "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
        elif sha and (sha.startswith(each.lower()) or each.lower().startswith(sha)):
            faults.add(pointer, "own_parent", _("A commit is not its own parent."))
        elif each in listed[:index]:
            faults.add(pointer, "repeated", _("Given more than once."))
    return tuple(each.lower() for each in listed if isinstance(each, str) and each.strip("0"))


def _facts(given: Object, at: str, faults: Faults) -> Object:
    """Whatever else is known: any JSON of a sensible size."""
    facts = mapping(given, "facts", at, faults)
    if not facts:
        return {}
    if _is_deep(facts, DEEPEST_FACTS):
        message = _("Nested more than %(most)d deep.") % {"most": DEEPEST_FACTS}
        faults.add(f"{at}/facts", "too_deep", message)
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


def _is_deep(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_is_deep(each, most - 1) for each in inner)


def _is_url(value: str) -> bool:
    try:
        IS_URL(value)
    except ValidationError:
        return False
    return True
