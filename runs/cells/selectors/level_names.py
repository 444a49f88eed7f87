"""The readers' names of factors and levels of a published campaign."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import PublishedTable
from runs.postgresql_settings.catalogue import existence
from runs.shared.formats import place, spoken, translate_field

Combination = frozenset[tuple[str, str]]

# Factors shown in the heads of several columns have no column of their own to name them.
USUAL = {
    "version": gettext_lazy("Version"),
    "server": gettext_lazy("Server"),
    "clients": gettext_lazy("Clients"),
    "workers": gettext_lazy("Workers"),
    "nodes": gettext_lazy("Nodes"),
    "cores": gettext_lazy("Cores"),
    "checksums": gettext_lazy("Page checksums"),
    "machine": gettext_lazy("Machine"),
    "placement": gettext_lazy("Placement"),
    "device": gettext_lazy("Device"),
    "query": gettext_lazy("Query"),
    "pattern": gettext_lazy("Pattern"),
    "index": gettext_lazy("Index"),
    "load": gettext_lazy("Load"),
    "vcpus": "vCPU",
    "block_size": gettext_lazy("Block size"),
}


@dataclass(frozen=True)
class Factors:
    """The names that a table's columns give to factors and levels, in the reader's language."""

    titles: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # The column heads' names for a combination of levels, by metric.
    heads: Mapping[tuple[str, Combination], str] = field(default_factory=dict)

    def title(self, name: str) -> str:
        """The factor's title; its own name if there is no other."""
        known_title = (
            self.titles.get(name)
            or USUAL.get(name)
            or (name if existence(name) else "")
        )
        return str(known_title) if known_title else name.replace("_", " ").capitalize()

    def level(self, name: str, value: Any) -> str:
        """The level for readers: "9.6" of a version is PostgreSQL 9.6."""
        if name == "version":
            return f"PostgreSQL {value}"
        if isinstance(value, bool):
            return _("yes") if value else _("no")
        return self.levels.get((name, str(value)), "–" if value is None else str(value))

    def series(self, metric: str, levels: Mapping[str, Any]) -> str:
        """What distinguishes a series from the others: the head of its column, else its levels."""
        head = self.heads.get((metric, combination(levels)))
        return head or " · ".join(
            self._named(name, value) for name, value in levels.items()
        )

    def described(self, levels: Mapping[str, Any]) -> str:
        """All levels in one line: "Clients 8, PostgreSQL 9.6"."""
        return ", ".join(self._named(name, value) for name, value in levels.items())

    def _named(self, name: str, value: Any) -> str:
        """A level that says itself what it is about; a bare number does not."""
        level = self.level(name, value)
        return f"{self.title(name)} {level}" if level == str(value) else level


def factors(columns: Sequence[Mapping[str, Any]]) -> Factors:
    """The names given by these columns."""
    titles: dict[str, str] = {}
    levels: dict[tuple[str, str], str] = {}
    for column in columns:
        name = column.get("factor")
        if name and name != "metric":
            titles[name] = spoken(column.get("label")) or name
            levels |= {
                (name, str(level)): spoken(label)
                for level, label in (column.get("label_of") or {}).items()
            }
        elif column.get("levels"):
            levels |= _told_by_heads(column)
    return Factors(titles, levels, _heads(columns))


def citation(table: PublishedTable, address: str, *, facts: str = "") -> str:
    """A line for citing: the publication, where it was read, and `facts` known of one figure."""
    source = table.source
    printed = ""
    if not facts:
        printed = place(table.number)
        if table.page:
            printed += f", p. {table.page}"
    elements = [
        translate_field(source, "publisher"),
        f"“{translate_field(source, 'title')}”",
        source.published or str(source.year),
        printed,
        facts,
        _("BenchLab data version %(version)s") % {"version": source.data_version}
        if source.data_version
        else "",
    ]
    return ", ".join(element for element in elements if element) + f". {address}"


def combination(levels: Mapping[str, Any]) -> Combination:
    """Levels as a key, independent of their order."""
    return frozenset((name, str(level)) for name, level in levels.items())


def _heads(columns: Sequence[Mapping[str, Any]]) -> dict[tuple[str, Combination], str]:
    """The group's head, with the column's own if a group has several columns of the metric."""
    measuring_columns = [
        column for column in columns if column.get("metric") and column.get("levels")
    ]
    groups = Counter(
        (column["metric"], spoken(column.get("group"))) for column in measuring_columns
    )
    heads = {}
    for column in measuring_columns:
        group, label = spoken(column.get("group")), spoken(column.get("label"))
        is_alone = groups[column["metric"], group] == 1
        name = (
            (group or label) if is_alone else " · ".join(filter(None, (group, label)))
        )
        heads[column["metric"], combination(column["levels"])] = name
    return heads


def _told_by_heads(column: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """A column for one level names that level by its own head or group."""
    column_levels = {
        name: level for name, level in column["levels"].items() if name != "version"
    }
    head = spoken(column.get("group")) or spoken(column.get("label"))
    if len(column_levels) != 1 or not head:
        return {}
    ((name, level),) = column_levels.items()
    return {(name, str(level)): head}
