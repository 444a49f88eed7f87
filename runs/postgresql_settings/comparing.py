"""Settings side by side: the same amount is the same, however it is written."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from runs.postgresql_settings import units, values
from runs.postgresql_settings.catalogue import canonical, catalogue, setting
from runs.postgresql_settings.names import known

# The place of a cluster, and what differs between starts or sessions.
_OF_THE_CLUSTER = frozenset(
    {
        "application_name",
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "hosts_file",
        "log_file_mode",
        "num_os_semaphores",
        "port",
        "shared_memory_size",
        "shared_memory_size_in_huge_pages",
        "unix_socket_directories",
        "unix_socket_directory",
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
        "client_encoding",
    }
)
# What initdb writes into postgresql.conf by the machine's locale and time zone.
_BY_THE_LOCALE = frozenset(
    {
        "lc_messages",
        "lc_monetary",
        "lc_numeric",
        "lc_time",
        "DateStyle",
        "TimeZone",
        "log_timezone",
        "default_text_search_config",
    }
)
# And by itself, where the machine has the room.
_BY_INITDB = {"shared_buffers": "128MB"}
# pg_settings' sources of values that nobody chose.
_UNCHOSEN = frozenset(
    {"", "default", "override", "client", "session", "environment variable"}
)


@dataclass(frozen=True)
class Shown:
    """A value as people write it, whether it is the version's default, and what it amounts to.

    `amount` is the same for the same value: a number of bytes or microseconds, or the text.
    `majors` are the versions that have this value where another version has another one.
    """

    text: str
    is_default: bool
    amount: str
    majors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One setting on both sides; no value if a side does not have it."""

    name: str
    a: tuple[Shown, ...]
    b: tuple[Shown, ...]

    @property
    def differs(self) -> bool:
        """Whether the sides have other values."""
        return {value_shown.amount for value_shown in self.a} != {
            value_shown.amount for value_shown in self.b
        }


def read_server(
    printed: Mapping[str, Mapping[str, str]], major: str | None
) -> dict[str, Shown]:
    """What a server printed in pg_settings (`setting`, `unit`, `source`), by name."""
    return {
        name: _printed(name, printed_row, major)
        for name, printed_row in printed.items()
        if name not in _OF_THE_CLUSTER
    }


def complete_settings(settings: Mapping[str, str], major: str) -> dict[str, Shown]:
    """All settings of a version: those given, and the built-in defaults of the others."""
    canonical_settings = {canonical(name): value for name, value in settings.items()}
    shown_by_name = {
        default_setting.name: replace(
            _written(values.default(default_setting), default_setting.name, major),
            is_default=True,
        )
        for default_setting in catalogue(major).values()
        if not default_setting.is_preset and default_setting.name not in _OF_THE_CLUSTER
    }
    for name, value in canonical_settings.items():
        facts = known(name, major)
        known_name = facts.name if facts else name
        shown_value = _written(value, known_name, major)
        default = shown_by_name.get(known_name)
        same = default is not None and default.amount == shown_value.amount
        shown_by_name[known_name] = replace(shown_value, is_default=same)
    return shown_by_name


def rows(
    a: Mapping[str, Sequence[Shown]], b: Mapping[str, Sequence[Shown]]
) -> Iterator[Row]:
    """All settings of both sides by name."""
    for name in sorted(a.keys() | b.keys(), key=str.lower):
        yield Row(name, tuple(a.get(name, ())), tuple(b.get(name, ())))


def chosen(
    printed: Mapping[str, Sequence[Shown]], set_names: Collection[str]
) -> dict[str, Sequence[Shown]]:
    """What servers printed, as far as a configuration that sets `set_names` could say it.

    Without values that nobody chose, and those that initdb writes. What the configuration sets
    stays.
    """
    return {
        name: shown_value
        for name, shown_value in printed.items()
        if name in set_names
        or not (
            name in _BY_THE_LOCALE
            or all(
                version_value.is_default or version_value.text == _BY_INITDB.get(name)
                for version_value in shown_value
            )
        )
    }


def _printed(name: str, printed_row: Mapping[str, str], major: str | None) -> Shown:
    text, unit = (
        str(printed_row.get("setting") or ""),
        str(printed_row.get("unit") or ""),
    )
    source = str(printed_row.get("source") or "")
    if major is None:
        text_with_unit = f"{text} {unit}".strip()
        return Shown(text_with_unit, source in _UNCHOSEN, text_with_unit)
    facts = setting(name, major)
    if unit and facts is not None and facts.is_number:
        number = _number(text)
        if number is not None:
            spelled = units.spelled(number, unit, major)
            return _marked(
                Shown(spelled, False, _amount(number, unit)), name, major, source
            )
    return _marked(_written(text, name, major), name, major, source)


def _marked(shown_value: Shown, name: str, major: str, source: str) -> Shown:
    """With the mark of a default: nobody chose it, or it is what the version has anyway."""
    facts = setting(name, major)
    same = (
        facts is not None
        and _written(values.default(facts), name, major).amount == shown_value.amount
    )
    return replace(shown_value, is_default=same or source in _UNCHOSEN - {""})


def _written(text: str, name: str, major: str) -> Shown:
    facts = setting(name, major)
    if facts is None:
        return Shown(text, False, text)
    try:
        value = values.parse(text, facts)
    except values.BadValue:
        return Shown(text, False, text)
    if isinstance(value, bool | str):
        # Servers show these words in their own case.
        amount = str(value).lower() if name in _BY_THE_LOCALE else str(value)
        return Shown(values.spelled(value, facts), False, amount)
    return Shown(values.spelled(value, facts), False, _amount(value, facts.unit))


def _amount(number: float, unit: str) -> str:
    """In bytes or microseconds; zero and negative values have special meanings."""
    return f"{number * units.size(unit) if unit and number > 0 else number:.12g}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
