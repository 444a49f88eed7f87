"""Reads facts as they are stored: one spelling for the same thing, None for unknown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from runs.patterns import re
from runs.postgresql_settings import catalogue, units, values
from runs.postgresql_settings.catalogue import Setting

Raw = Mapping[str, Any]

# Levels that set a setting under another name.
LEVELS_OF_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "data_checksums": ("checksums",),
    "block_size": ("bindir", "build"),
    "wal_block_size": ("bindir", "build"),
    "debug_assertions": ("bindir", "build"),
    "synchronous_standby_names": ("standbys", "arrangement", "synchronous"),
    "synchronous_commit": ("arrangement", "synchronous"),
}
_SAME_WORDS = {"wal_level": {"archive": "replica", "hot_standby": "replica"}}
_POINT_RELEASE = re.compile(r"(?<!\d)(\d+)(?:\.\d+)+")
_UBUNTU_RELEASE = re.compile(r"(?<!\d)(\d+\.\d+)(?:\.\d+)+")
_SERIES = re.compile(r"\d+(?:\.\d+)?")
# Figures of such a build say nothing of its PostgreSQL.
UNOPTIMISED = frozenset({"-O0", "-Og"})
_RELEASE = re.compile(r"\d{1,5}(?:\.\d{1,5})?")
_REMARKS = re.compile(r"\([^()]*\)")
_LEVEL_OF_OPTIMISATION = re.compile(r"(?<!\S)-O([0-9sgz]|fast)?(?!\S)")


def text(raw: Any) -> str | None:
    """A text, whatever its case and spaces."""
    return None if raw is None else " ".join(str(raw).casefold().split()) or None


def number(raw: Any) -> float | None:
    """A number, given as one or as its text."""
    try:
        return None if raw is None or isinstance(raw, bool) else float(str(raw))
    except ValueError:
        return None


def flag(raw: Any) -> bool | None:
    """Yes or no."""
    return raw if isinstance(raw, bool) else None


def is_limited(rate: Any) -> bool | None:
    """Whether there was a rate: its number, 0 for none, or a word if only that is known."""
    return None if rate in (None, "") else bool(rate)


def tries(raw: Any) -> float | None:
    """How often a transaction is tried: 0 means not stated, which is once."""
    stated = number(raw)
    return None if stated is None else max(stated, 1.0)


def words(raw: Any) -> str | None:
    """Words in any order."""
    return (
        ",".join(sorted(map(str, raw))) or None
        if isinstance(raw, (list, tuple))
        else None
    )


def devices(raw: Any) -> str | None:
    """Devices in any order, without the names that the kernel gives them."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        return None
    devices_without_names = [
        {
            key: value
            for key, value in device.items()
            if key != "name" and value not in (None, "")
        }
        if isinstance(device, Mapping)
        else device
        for device in raw
    ]
    return "; ".join(
        sorted(json.dumps(device, sort_keys=True) for device in devices_without_names)
    )


def nothing(_found: Any) -> None:
    """For facts that are never compared."""


def operating_system(name: Any) -> str | None:
    """The system and its release, without the point release: `debian gnu/linux 13 (trixie)`."""
    system_name = text(name)
    if system_name is None:
        return None
    release = _UBUNTU_RELEASE if system_name.startswith("ubuntu") else _POINT_RELEASE
    return release.sub(r"\1", system_name).removesuffix(" lts")


def kernel_series(kernel: Any) -> str | None:
    """6.12 of `Linux 6.12.41-amd64`."""
    kernel_name = text(kernel)
    series_match = _SERIES.search(kernel_name) if kernel_name else None
    return series_match[0] if series_match else kernel_name


def optimisation(cflags: Any) -> str | None:
    """The level of optimisation: the last one given counts; a compiler's default is -O0."""
    flags = str(cflags or "")
    if not flags.strip():
        return None
    levels = _LEVEL_OF_OPTIMISATION.findall(flags)
    return f"-O{levels[-1] or 1}" if levels else "-O0"


def are_optimised(base: str, head: str) -> bool:
    """Whether both levels of optimisation are made for speed, though not the same."""
    return UNOPTIMISED.isdisjoint({base, head})


def compiler(said: Any) -> str | None:
    """Its name and release: gcc 7.5 of "gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0"."""
    name = _REMARKS.sub("", str(said or "")).strip()
    release_match = _RELEASE.search(name)
    if release_match is None:
        return name[:60] or None
    return f"{name[: release_match.start()].replace('version', '').strip(' -')} {release_match[0]}"


def _option(*names: str) -> Callable[[Any], bool | None]:
    """Whether one of these is among the options of configure or meson."""

    def read(raw: Any) -> bool | None:
        options = str(raw or "")
        if not options.strip():
            return None
        return any(
            re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", options)
            for name in names
        )

    return read


# Whether the server checks its own assertions, and so on.
assertions = _option("--enable-cassert", "-Dcassert=true")
profiling = _option("--enable-profiling", "--enable-coverage")
llvm = _option("--with-llvm", "-Dllvm=enabled")


def setting(name: str, entry: Any) -> str | None:
    """A setting in one spelling (1048576 of 8kB is 8GB), from `pg_settings` or an upload."""
    if not isinstance(entry, Mapping) or entry.get("setting") is None:
        return None
    spelled = _spelled(name, str(entry["setting"]), str(entry.get("unit") or ""))
    return _SAME_WORDS.get(name, {}).get(spelled, spelled)


def is_default(name: str, raw: Raw, version: str) -> bool:
    """Whether the setting was left at the default of its version."""
    entry = raw.get(name)
    if not isinstance(entry, Mapping):
        return False
    if entry.get("source") != "uploaded":
        return entry.get("source") == "default"
    catalogued = _catalogued(name, version)
    return catalogued is not None and setting(name, entry) == _spelled(
        name, values.default(catalogued), ""
    )


@lru_cache(maxsize=4096)
def _spelled(name: str, value: str, unit: str) -> str:
    try:
        if unit:
            return units.spelled(float(value), unit, "18")
        catalogued = _catalogued(name, "")
        return (
            values.spelled(values.parse(value, catalogued), catalogued)
            if catalogued
            else value.strip()
        )
    except (ValueError, KeyError):
        return f"{value} {unit}".strip()


@lru_cache(maxsize=4096)
def _catalogued(name: str, version: str) -> Setting | None:
    """The setting in that version, else in the newest that has it."""
    major = catalogue.known_major(version) if version else None
    if major is not None:
        return catalogue.setting(name, major)
    settings_of_majors = [catalogue.setting(name, major) for major in catalogue.MAJORS]
    return next(
        (setting for setting in reversed(settings_of_majors) if setting is not None),
        None,
    )
