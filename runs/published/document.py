"""A publication as in its data file: frozen dataclasses, with nothing computed yet."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, NewType, Self

Levels = Mapping[str, Any]
Statistic = Literal["single", "median", "mean"]
# Between the words that a discrepancy prints: an omission, or the next of several.
_GAPS = re.compile(r" … |, ")
# An address of the web.
Address = NewType("Address", str)


@dataclass(frozen=True)
class Text:
    """A text for readers in both languages."""

    en: str = ""
    ja: str = ""

    def pair(self) -> dict[str, str]:
        """As stored: {"en": ..., "ja": ...}, empty if there is no text."""
        return {"en": self.en, "ja": self.ja} if self.en or self.ja else {}


@dataclass(frozen=True)
class Finding:
    """A conclusion, and who draws it.

    `by`: the publication; BenchLab from the printed figures; or both, if BenchLab comes to another
    conclusion than the publication. `section` is where the publication says it, and `quote` its own
    words there; both are empty for conclusions from BenchLab's computations. `disputed_by` are
    discrepancies of its table, by what they print, that concern it besides those that print words
    of its quote.
    """

    text: Text
    by: Literal["publication", "benchlab", "disagree"] = "publication"
    section: str = ""
    quote: str = ""
    disputed_by: tuple[str, ...] = ()

    def stored(self) -> dict[str, str]:
        """As stored: both texts, who says it, where, and in which words."""
        location = {"section": self.section, "quote": self.quote}
        return {**self.text.pair(), "by": self.by, **location}


@dataclass(frozen=True)
class Trace:
    """A known address that leads towards the original, and how we know it."""

    url: Address
    note: Text

    def stored(self) -> dict[str, Any]:
        """As stored."""
        return {"url": self.url, "note": self.note.pair()}


@dataclass(frozen=True)
class Correction:
    """A correction of the transcription after its publication: what was wrong, and the new text.

    `table` is "all" if it concerns every table. `figures` are the printed texts that it concerns;
    empty if it concerns the whole table.
    """

    date: date
    was: Text
    now: Text
    reason: Text
    table: str = "all"
    figures: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """As stored."""
        return {
            "date": self.date.isoformat(),
            "table": self.table,
            "figures": list(self.figures),
            "was": self.was.pair(),
            "now": self.now.pair(),
            "reason": self.reason.pair(),
        }


@dataclass(frozen=True)
class SourceEntry:
    """The publication itself. `year` is the year observed.

    `url` is the address of the original; empty if it is not known. `traces` lead towards it.
    `transcribed` is the day of our transcription and `data_version` counts its editions. `quotes`
    says whether conclusions print the publication's own words, or its section alone.
    """

    slug: str
    title: Text
    year: int
    publisher: Text = Text()
    published: str = ""
    url: Address = Address("")
    traces: tuple[Trace, ...] = ()
    language: str = "ja"
    quotes: bool = True
    licence: str = ""
    licence_url: str = ""
    summary: Text = Text()
    transcribed: date | None = None
    data_version: str = "1"
    corrections: tuple[Correction, ...] = ()


@dataclass(frozen=True)
class MetricEntry:
    """A metric that no scenario has."""

    name: str
    title: Text
    unit: str = ""
    direction: Literal["higher", "lower", "neutral"] = "neutral"


@dataclass(frozen=True)
class HardwareEntry:
    """A machine as printed; what is not printed is None or empty.

    `name_ja` is empty if the name is the same in both languages. `memory_printed` is the text
    that `memory_bytes` was read from.
    """

    key: str
    name: str
    name_ja: str
    memory_bytes: int | None
    memory_printed: str
    cpu_model: str = ""
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    virtualization: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentEntry:
    """An operating system as printed."""

    key: str
    os_name: str = ""
    kernel: str = ""
    architecture: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConfigurationEntry:
    """postgresql.conf as printed, for the version that it was used with."""

    key: str
    name: Text
    version: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    initdb_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeEntry:
    """A machine of a campaign; keys name the file's hardware, environments, configurations."""

    role: str
    name: Text = Text()
    hardware: str = ""
    environment: str = ""
    configuration: str = ""
    software: str = ""
    levels: Levels = field(default_factory=dict)


@dataclass(frozen=True)
class SameAs:
    """The figure of another table: no metric means the same one; a null level is removed."""

    table: str
    metric: str = ""
    levels: Levels = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """How a derived metric follows from `operand`; `kind` decides what the other fields mean."""

    kind: Literal["ratio", "median", "sum", "same_as"]
    operand: str = ""
    to: Levels = field(default_factory=dict)
    form: Literal["factor", "percent", "inverse", "loss", "less"] = "factor"
    over: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    same_as: SameAs | None = None

    def stored(self) -> dict[str, Any]:
        """The rule as JSON, from which `of` makes it again; nothing if it names another table."""
        if self.same_as:
            return {}
        over = {name: list(levels) for name, levels in self.over.items()}
        return {
            "kind": self.kind,
            "operand": self.operand,
            "to": dict(self.to),
            "form": self.form,
            "over": over,
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The rule that was stored."""
        over = {name: tuple(levels) for name, levels in stored["over"].items()}
        return cls(**{**stored, "over": over})


@dataclass(frozen=True)
class Column:
    """A column of a printed table: a level, a figure, or words. `described` is for the page."""

    is_text: bool
    values: Mapping[str, Any]
    units: Mapping[str, float]
    described: Mapping[str, Any]
    factor: str = ""
    metric: str = ""
    levels: Levels = field(default_factory=dict)
    repeat: int | None = None
    statistic: Statistic | None = None
    n: int | None = None
    node: str = ""
    same_as: tuple[SameAs, ...] = ()


@dataclass(frozen=True)
class DiscrepancyEntry:
    """A contradiction that a reader found.

    `figures` are the printed texts of its table that are concerned: differences computed for them
    have this one cause and are not listed a second time. `weight` says how much it matters; if
    empty, the kind decides.
    """

    printed: str
    kind: Literal[
        "ratio", "median", "sum", "other_table", "repeated_row", "not_measured", "text"
    ] = "text"
    recomputed: str = ""
    explanation: Text = Text()
    weight: (
        Literal["wrong_figure", "wrong_conclusion", "rounding", "wording"] | None
    ) = None
    figures: tuple[str, ...] = ()

    def disputes(self, finding: Finding) -> bool:
        """Whether it contradicts a conclusion of the publication: it prints words of its quote."""
        if finding.by != "publication":
            return False
        words = [part.strip() for part in _GAPS.split(self.printed)]
        is_quoted = all(part and part in finding.quote for part in words)
        return is_quoted or self.printed in finding.disputed_by


@dataclass(frozen=True)
class ArtifactEntry:
    """A script, plan or output as printed."""

    name: str
    levels: Levels
    text: str


@dataclass(frozen=True)
class CampaignEntry:
    """A published campaign: its question, method and conditions, and the table as printed.

    `repeats` and `statistic` are None if they are not printed; `unprinted_repeats` are
    levels whose figures lack them although the table's others have them. `inexact` are texts
    that the publication itself calls inexact. `yes_if` says which ratios of the chart mean yes for
    `asked`: "less" or "more" than 1; empty where the question asks for a size.
    """

    slug: str
    title: Text
    scenario: str
    table: str
    topology_kind: str
    topology_name: Text
    tool_name: str
    tool_version: str
    columns: tuple[Column, ...]
    grid: tuple[tuple[str, ...], ...]
    derived: Mapping[str, Rule]
    chart: Any
    findings: tuple[Finding, ...]
    artifacts: tuple[ArtifactEntry, ...]
    statistic: Statistic | None = None
    question: Text = Text()
    asked: Text = Text()
    yes_if: Literal["less", "more"] | None = None
    section: str = ""
    page: str = ""
    figure: str = ""
    has_figures: bool = True
    repeats: int | None = None
    parameters: Levels = field(default_factory=dict)
    method: Text = Text()
    nodes: tuple[NodeEntry, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    factors: Levels = field(default_factory=dict)
    not_measured: frozenset[str] = frozenset()
    inexact: frozenset[str] = frozenset()
    unprinted_repeats: tuple[Levels, ...] = ()
    same_as: tuple[SameAs, ...] = ()
    notes: tuple[Text, ...] = ()
    discrepancies: tuple[DiscrepancyEntry, ...] = ()
    reproduce: Levels = field(default_factory=dict)

    def stored_findings(self) -> list[dict[str, str]]:
        """The conclusions as stored; a disputed one has what BenchLab computes, and why it differs
        (`computed`, `computed_ja`).
        """
        return [finding.stored() | self._computed(finding) for finding in self.findings]

    def _computed(self, finding: Finding) -> dict[str, str]:
        disputes = [
            discrepancy
            for discrepancy in self.discrepancies
            if discrepancy.disputes(finding)
        ]
        if not disputes:
            return {}
        return {
            "computed": " ".join(
                f"{dispute.recomputed}. {dispute.explanation.en}"
                for dispute in disputes
            ),
            "computed_ja": "".join(
                f"{dispute.recomputed}。{dispute.explanation.ja}"
                for dispute in disputes
            ),
        }


@dataclass(frozen=True)
class Document:
    """A data file. `hardware`, `environments` and `configurations` are by their keys."""

    path: Path
    source: SourceEntry
    metrics: tuple[MetricEntry, ...]
    hardware: Mapping[str, HardwareEntry]
    environments: Mapping[str, EnvironmentEntry]
    configurations: Mapping[str, ConfigurationEntry]
    campaigns: tuple[CampaignEntry, ...]
