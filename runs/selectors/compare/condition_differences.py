"""How the conditions of compared series differ: hardware, environment, software, settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.models import Environment, HardwareProfile
from runs.postgresql_settings import units
from runs.selectors.compare.series import Loaded, Series

HARDWARE = (
    *("name", "cpu_model", "sockets", "cores", "threads"),
    *("memory_bytes", "virtualization"),
)
ENVIRONMENT = ("os_name", "kernel", "architecture")
# Where a cluster is and what it is called does not affect its speed.
PLACES = frozenset(
    {
        *("cluster_name", "config_file", "data_directory", "data_directory_mode"),
        *("event_source", "external_pid_file", "hba_file", "ident_file", "log_directory"),
        *("log_filename", "log_file_mode", "port", "server_version", "server_version_num"),
        *("unix_socket_directories", "unix_socket_directory", "unix_socket_permissions"),
    }
)


@dataclass(frozen=True)
class Difference:
    """A fact in which series differ, with its value for each of them; None is unknown.

    `kind` is hardware, environment, software, settings, parameters, treatment or design.
    """

    kind: str
    name: str
    values: tuple[Any, ...]


def differences(loaded: Loaded) -> tuple[Difference, ...]:
    """Everything in which the series differ besides their levels."""
    series = loaded.series
    return (
        *_of_rows("hardware", HARDWARE, series, lambda each: _hardware(loaded, each)),
        *_of_rows("environment", ENVIRONMENT, series, lambda each: _environments(loaded, each)),
        *_told("software", "server", (_listed(each.runs.servers) for each in series)),
        *_told("software", "tool", (_listed(each.runs.tools) for each in series)),
        *_settings(loaded),
        *_parameters(series),
        *_treatments(series),
        *_told("design", "topology", (_named(each.campaign.topology) for each in series)),
        *_told("design", "repeats", (each.campaign.known_repeats for each in series)),
    )


def _of_rows(
    kind: str,
    names: Iterable[str],
    series: Sequence[Series],
    rows_of: Callable[[Series], Sequence[HardwareProfile | Environment]],
) -> list[Difference]:
    found = []
    for name in names:
        values = (
            _listed(dict.fromkeys(_known(getattr(row, name)) for row in rows_of(each)))
            for each in series
        )
        found += _told(kind, name, values)
    return found


def _hardware(loaded: Loaded, each: Series) -> list[HardwareProfile]:
    return [loaded.hardware[key] for key in _all(each, "hardware")]


def _environments(loaded: Loaded, each: Series) -> list[Environment]:
    return [loaded.environments[key] for key in _all(each, "environment")]


def _all(each: Series, kind: str) -> list[int]:
    return sorted({key for cell in each.cells for key in getattr(cell.runs, kind)})


def _settings(loaded: Loaded) -> list[Difference]:
    """Settings that all known servers have; nobody chose to omit one that a version lacks."""
    known = [[loaded.settings[key] for key in _all(each, "settings")] for each in loaded.series]
    snapshots = [snapshot for of_series in known for snapshot in of_series]
    if not snapshots:
        return []
    common = set.intersection(*(set(snapshot) for snapshot in snapshots)) - PLACES
    found = []
    for name in sorted(common):
        # Most of some 350 settings are equal: compare the stored values before formatting them.
        if any(each[name] != snapshots[0][name] for each in snapshots):
            values = (
                _listed(dict.fromkeys(_spelled(snapshot[name]) for snapshot in of_series))
                for of_series in known
            )
            found += _told("settings", name, values)
    return found


def _parameters(series: Sequence[Series]) -> list[Difference]:
    names = dict.fromkeys(name for each in series for name in each.campaign.parameters)
    found = []
    for name in names:
        values = (each.campaign.parameters.get(name) for each in series)
        found += _told("parameters", name, values)
    return found


def _treatments(series: Sequence[Series]) -> list[Difference]:
    """What was done to the machines of some series only: for the others "no" is known."""
    names = dict.fromkeys(name for each in series for name in each.campaign.treatment)
    found = []
    for name in names:
        values = (_said(each.campaign.treatment.get(name)) for each in series)
        found += _told("treatment", name, values)
    return found


def _said(value: Any) -> str:
    return "no" if value is None else "yes" if value is True else str(value)


def _told(kind: str, name: str, values: Iterable[Any]) -> list[Difference]:
    """The difference, if the known values differ."""
    listed = tuple(values)
    known = {str(value) for value in listed if value is not None}
    return [Difference(kind, name, listed)] if len(known) > 1 else []


def _spelled(entry: Mapping[str, Any]) -> str:
    """A setting with its unit as people write it: 16384 of 8kB is 128MB."""
    text, unit = str(entry.get("setting", "")), entry.get("unit")
    if not unit:
        return text
    try:
        return units.spelled(float(text), unit, "18")
    except (ValueError, KeyError):
        return f"{text} {unit}"


def _known(value: Any) -> Any:
    return None if value == "" else value


def _listed(values: Iterable[Any]) -> Any:
    """One value as it is, several in one text; None if unknown."""
    known = [value for value in values if value is not None]
    if len(known) == 1:
        return known[0]
    return ", ".join(str(value) for value in known) or None


def _named(row: Any) -> str | None:
    return str(row) if row else None
