"""How compared series are told apart: by short labels, and by the conditions that differ."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.cells.selectors import factor_names, versions
from runs.cells.selectors.level_names import Factors, factors
from runs.cells.selectors.series_cells import CONFIGURATION, level_text
from runs.compare.selectors.load.series import Loaded, Series
from runs.compare.selectors.load.stored_cells import keys_of
from runs.models import Environment, HardwareProfile, PublishedTable
from runs.models.campaigns import Origin
from runs.postgresql_settings import units
from runs.servers.selectors import machine_words
from runs.servers.selectors.hardware import ENVIRONMENT_FIELDS, HARDWARE_FIELDS
from runs.shared.formats import bytesize, named

# Where a cluster is and what it is called does not affect its speed.
PLACES = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "data_directory_mode",
        "event_source",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "log_directory",
        "log_filename",
        "log_file_mode",
        "port",
        "server_version",
        "server_version_num",
        "unix_socket_directories",
        "unix_socket_directory",
        "unix_socket_permissions",
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
        *_row_differences(
            "hardware", ("name", *HARDWARE_FIELDS), series, loaded.hardware
        ),
        *_row_differences(
            "environment", ENVIRONMENT_FIELDS, series, loaded.environments
        ),
        *_if_differing(
            "software",
            "server",
            (_listed(one_series.runs.servers) for one_series in series),
        ),
        *_if_differing(
            "software",
            "tool",
            (_listed(one_series.runs.tools) for one_series in series),
        ),
        *_setting_differences(loaded),
        *_campaign_differences(
            "parameters", [one_series.campaign.parameters for one_series in series]
        ),
        # What was done to the machines of some series only: for the others "no" is known.
        *_campaign_differences(
            "treatment",
            [one_series.campaign.treatment for one_series in series],
            describe=_treatment_text,
        ),
        *_if_differing(
            "design",
            "topology",
            (one_series.campaign.topology for one_series in series),
        ),
        *_if_differing(
            "design",
            "repeats",
            (one_series.campaign.known_repeats for one_series in series),
        ),
    )


def _row_differences(
    kind: str,
    names: Iterable[str],
    series: Sequence[Series],
    stored: Mapping[int, HardwareProfile] | Mapping[int, Environment],
) -> list[Difference]:
    differing = []
    for name in names:
        values = (
            _listed(
                dict.fromkeys(
                    getattr(stored[key], name) or None for key in _all(one_series, kind)
                )
            )
            for one_series in series
        )
        differing += _if_differing(kind, name, values)
    return differing


def _all(one_series: Series, kind: str) -> list[int]:
    return keys_of((cell.runs for cell in one_series.cells), kind)


def _setting_differences(loaded: Loaded) -> list[Difference]:
    """Settings that all known servers have; nobody chose to omit one that a version lacks."""
    snapshots_of_series = [
        [loaded.settings[key] for key in _all(one_series, "settings")]
        for one_series in loaded.series
    ]
    snapshots = [
        snapshot for of_series in snapshots_of_series for snapshot in of_series
    ]
    if not snapshots:
        return []
    common = set.intersection(*(set(snapshot) for snapshot in snapshots)) - PLACES
    differing = []
    for name in sorted(common):
        # Most of some 350 settings are equal: compare the stored values before formatting them.
        if any(snapshot[name] != snapshots[0][name] for snapshot in snapshots):
            values = (
                _listed(
                    dict.fromkeys(_spelled(snapshot[name]) for snapshot in of_series)
                )
                for of_series in snapshots_of_series
            )
            differing += _if_differing("settings", name, values)
    return differing


def _campaign_differences(
    kind: str,
    stored: Sequence[Mapping[str, Any]],
    *,
    describe: Callable[[Any], Any] = lambda value: value,
) -> list[Difference]:
    names = dict.fromkeys(
        name for names_of_campaign in stored for name in names_of_campaign
    )
    return [
        difference
        for name in names
        for difference in _if_differing(
            kind,
            name,
            (describe(names_of_campaign.get(name)) for names_of_campaign in stored),
        )
    ]


def _treatment_text(value: Any) -> str:
    if value is None:
        return "no"
    return "yes" if value is True else str(value)


def _if_differing(kind: str, name: str, values: Iterable[Any]) -> list[Difference]:
    value_list = tuple(values)
    known_values = {str(value) for value in value_list if value is not None}
    return [Difference(kind, name, value_list)] if len(known_values) > 1 else []


def _spelled(entry: Mapping[str, Any]) -> str:
    """A setting with its unit as people write it: 16384 of 8kB is 128MB."""
    text, unit = str(entry.get("setting", "")), entry.get("unit")
    if not unit:
        return text
    try:
        return units.spelled(float(text), unit, "18")
    except (ValueError, KeyError):
        return f"{text} {unit}"


def _listed(values: Iterable[Any]) -> Any:
    """One value as it is, several in one text; None if unknown."""
    known_values = [value for value in values if value is not None]
    if len(known_values) == 1:
        return known_values[0]
    return ", ".join(str(value) for value in known_values) or None


def wording(slugs: Collection[str]) -> Factors:
    """The names that publications and scenarios give to the factors. Three queries.

    Levels that are slugs get the names of their servers and configurations.
    """
    tables = PublishedTable.objects.filter(campaign__slug__in=slugs).order_by("pk")
    columns = [
        column
        for table_columns in tables.values_list("columns", flat=True)
        for column in table_columns
    ]
    factor_words = factors(columns)
    ours = {name: _(title) for name, title in factor_names.scenario_titles().items()}
    return replace(
        factor_words,
        titles={**factor_names.own_titles(), **ours, **factor_words.titles},
        levels={
            **factor_names.choice_titles(),
            **factor_names.names_of_levels(slugs),
            **factor_words.levels,
        },
    )


LONGEST_TITLE = 40
ARRANGEMENT = "arrangement"
UNKNOWN = "–"


class Wording(Protocol):
    """The names of factors and levels in the reader's language."""

    def title(self, name: str) -> str:
        """A factor."""

    def level(self, name: str, value: Any) -> str:
        """A level of it."""


class PlainWording:
    """The stored names, for files and programs."""

    def title(self, name: str) -> str:
        """The factor's own name."""
        return name

    def level(self, name: str, value: Any) -> str:
        """The level as text; a version with the name of its product."""
        return f"PostgreSQL {value}" if name == "version" else level_text(value)


def labels(loaded: Loaded, wording: Wording | None = None) -> tuple[str, ...]:
    """A label for each series, all different.

    Levels that distinguish them come first; if these are not enough, the operating system, the
    hardware, the topology, and last the campaign are added.
    """
    words = wording or PlainWording()
    texts = [
        " · ".join(level_texts) for level_texts in _level_labels(loaded.series, words)
    ]
    for describe in (_operating_system, _hardware, _topology, _title):
        texts = _told_apart(
            texts, [describe(loaded, one_series) for one_series in loaded.series]
        )
    return tuple(
        (label or one_series.campaign.title) + _mark(one_series)
        for label, one_series in zip(texts, loaded.series, strict=True)
    )


def _mark(series: Series) -> str:
    """What was executed elsewhere says so wherever it is drawn."""
    if series.campaign.origin != Origin.IMPORTED:
        return ""
    return f" ({series.campaign.get_origin_display()})"


def facet(loaded: Loaded, one_series: Series, facet_name: str, words: Wording) -> str:
    """The value of a series for small multiples: its configuration, system, hardware and so on."""
    if facet_name in {CONFIGURATION, ARRANGEMENT} and facet_name in one_series.levels:
        return words.level(facet_name, one_series.levels[facet_name])
    values: dict[str, Callable[[Loaded, Series], str]] = {
        "configuration": _configuration,
        "os": _operating_system,
        "hardware": _hardware,
        ARRANGEMENT: _topology,
        "topology": _topology,
        "version": lambda _loaded, series: versions.major(series.version),
    }
    return values[facet_name](loaded, one_series) or UNKNOWN


def _level_labels(series: Sequence[Series], words: Wording) -> list[list[str]]:
    names = list(
        dict.fromkeys(name for one_series in series for name in one_series.levels)
    )
    parting = [
        name
        for name in names
        if len({level_text(one_series.levels.get(name, "")) for one_series in series})
        > 1
    ]
    shown_names = parting or [name for name in names if name == "version"]
    return [
        [
            spoken_level(words, name, one_series.levels[name])
            for name in shown_names
            if name in one_series.levels
        ]
        for one_series in series
    ]


def spoken_level(words: Wording, name: str, value: Any) -> str:
    """A level that needs no context: "PostgreSQL 16", "All on SSD", "Clients 8"."""
    text = words.level(name, value)
    if name == "version" or (isinstance(value, str) and text != value):
        return text
    return f"{words.title(name)} {text}"


def _told_apart(texts: Sequence[str], further_texts: Sequence[str]) -> list[str]:
    """The labels; those that occur more than once are extended by what else differs."""
    counts = Counter(texts)
    differs = {label: set() for label in counts}  # type: dict[str, set[str]]
    for label, text in zip(texts, further_texts, strict=True):
        differs[label].add(text)
    return [
        " · ".join(text for text in (label, text) if text)
        if counts[label] > 1 and len(differs[label]) > 1
        else label
        for label, text in zip(texts, further_texts, strict=True)
    ]


def _operating_system(loaded: Loaded, one_series: Series) -> str:
    environments = [loaded.environments[key] for key in one_series.runs.environment]
    return ", ".join(
        dict.fromkeys(
            machine_words.operating_system(env.os_name) for env in environments
        )
    )


def _hardware(loaded: Loaded, one_series: Series) -> str:
    return ", ".join(
        dict.fromkeys(named(loaded.hardware[key]) for key in one_series.runs.hardware)
    )


def _topology(_loaded: Loaded, one_series: Series) -> str:
    topology = one_series.campaign.topology
    return str(topology.get_kind_display()) if topology else ""


def _configuration(_loaded: Loaded, one_series: Series) -> str:
    configuration = one_series.campaign.configuration
    return named(configuration) if configuration else ""


def _title(_loaded: Loaded, one_series: Series) -> str:
    title = one_series.campaign.title
    return (
        title
        if len(title) <= LONGEST_TITLE
        else f"{title[: LONGEST_TITLE - 1].rstrip()}…"
    )


FACTS = {
    "name": gettext_lazy("machine"),
    "cpu_model": gettext_lazy("CPU model"),
    "sockets": gettext_lazy("sockets"),
    "cores": gettext_lazy("cores"),
    "threads": gettext_lazy("hardware threads"),
    "memory_bytes": gettext_lazy("memory"),
    "virtualization": gettext_lazy("virtualisation"),
    "os_name": gettext_lazy("operating system"),
    "kernel": gettext_lazy("kernel"),
    "architecture": gettext_lazy("architecture"),
    "server": gettext_lazy("server version"),
    "tool": gettext_lazy("load generator"),
    "topology": gettext_lazy("topology"),
    "repeats": gettext_lazy("repeats"),
    "cold_cache": gettext_lazy("caches emptied"),
    "governor": gettext_lazy("CPU governor"),
    "server_cpus": gettext_lazy("CPUs of the server"),
    "pgbench_cpus": gettext_lazy("CPUs of pgbench"),
    "profile": gettext_lazy("profile by perf"),
    "syscalls": gettext_lazy("system calls traced"),
    "stacks": gettext_lazy("stacks traced"),
    "waits": gettext_lazy("wait events asked"),
    "statements": "pg_stat_statements",
    "io": "pg_stat_io",
    "instructions": gettext_lazy("instructions"),
    "disks": gettext_lazy("disks"),
    "os": gettext_lazy("operating system"),
    "kernel_series": gettext_lazy("kernel series"),
    "filesystem": gettext_lazy("file system"),
    "huge_pages": gettext_lazy("huge pages"),
    "cpu_limit": gettext_lazy("CPU limit"),
    "optimisation": gettext_lazy("optimisation"),
    "compiler": gettext_lazy("compiler"),
    "llvm": "LLVM",
}


def fact(kind: str, name: str) -> str:
    """The name of something in which series differ; settings and parameters have their own."""
    return name if kind in ("settings", "parameters") else str(FACTS.get(name, name))


def fact_value(name: str, value: Any) -> str:
    """Its value; what is not known is a dash."""
    if value is None or value == "":
        return "–"
    if name == "memory_bytes" and isinstance(value, int):
        return bytesize(value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(value)
