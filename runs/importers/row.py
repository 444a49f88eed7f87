"""The one form in which every importer gives the runs of a peer."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runs import foreign_json
from runs.execution.reporter import Note
from runs.tools.adapter import Direction, Level, MetricValue, Reading, SeriesData
from runs.tools.metrics import Metric
from runs.tools.output import number, part, slug
from runs.wording import Marked, Wording, put, wording_of
from runs.wording import gettext_noop as _

# As far as a commit's are kept.
LONGEST_SUBJECT, LONGEST_AUTHOR = 200, 100
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_HIGHER = re.compile(
    r"(?i)(?:^|\b)(?:tps|iops|i/s|b/s|fps|\w{0,10}/(?:s|sec|second|min))$"
)
_TIMES = re.compile(r"(?i)^(?:ns|us|µs|ms|s|secs?|seconds?|minutes?|ns/\w{1,10})$")


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """One run of a peer. `external_id` is the peer's own name of it, the same at each import.

    `levels` are what was asked for. `failure`, with its `wording` where it is a tool's, says why a
    run has no figures to rely on. `text` is what it was read from, and is kept where it is there.
    """

    campaign: str
    scenario: str
    external_id: str
    started_at: datetime
    finished_at: datetime | None = None
    levels: Mapping[str, Level] = field(default_factory=dict)
    measurements: tuple[MetricValue, ...] = ()
    series: tuple[SeriesData, ...] = ()
    sha: str = ""
    branch: str = ""
    url: str = ""
    committed_at: datetime | None = None
    parents: tuple[str, ...] = ()
    subject: str = ""
    author: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    hardware: Mapping[str, Any] = field(default_factory=dict)
    server_version: str = ""
    tool_name: str = ""
    tool_version: str = ""
    failure: str = ""
    wording: Wording = field(default_factory=dict)
    failure_code: str = "imported_without_figures"
    notes: tuple[Mapping[str, Any], ...] = ()
    text: str = ""


@dataclass
class Imported:
    """The runs of a peer's files, and what of them could not be taken, a sentence each."""

    runs: list[ImportedRun] = field(default_factory=list)
    left_out: list[Wording] = field(default_factory=list)

    def take(self, **fields: Any) -> None:
        """Take a run of these fields (`ImportedRun`)."""
        self.runs.append(ImportedRun(**fields))

    def leave_out(self, text: Marked, **values: object) -> None:
        """Say what is not taken (`runs.wording`)."""
        self.left_out.append(wording_of(text, values))


class NotTheirs(ValueError):
    """The file is none of the peer's; `wording` says what was looked for (`runs.wording`)."""

    def __init__(self, text: Marked, **values: object) -> None:
        self.wording = wording_of(text, values)
        super().__init__(put(self.wording))


def documents(path: Path) -> Iterator[Any]:
    """The JSON of a file, or of each in a folder. Raises NotTheirs for what is none."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        try:
            yield foreign_json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise NotTheirs(
                _("%(file)s is not JSON: %(error)s"), file=file.name, error=error
            ) from error


def object_in(file: Path) -> dict[str, Any]:
    """The JSON object of a file; an empty one where there is none."""
    try:
        return part({"whole": foreign_json.loads(file.read_text("utf-8"))}, "whole")
    except (OSError, ValueError):
        return {}


def processor(model: str) -> dict[str, str]:
    """The hardware of a machine of which a peer keeps the processor alone."""
    return {"name": model, "cpu_model": model} if model else {}


def named(
    name: str, unit: str, direction: Direction | None = None, *, is_marked: bool = False
) -> Metric:
    """The metric of a benchmark that has a name of its own; an unknown direction is neutral."""
    unit_metric = Metric("x", "", unit[:40], direction or direction_of(unit))
    own_metric = unit_metric.part(name, is_marked=is_marked)
    return replace(
        own_metric, name=own_metric.name.removesuffix("_x"), title=name[:150]
    )


def direction_of(unit: str) -> Direction:
    """Times are better lower, rates higher; of other units nobody knows."""
    if _TIMES.match(unit.strip()):
        return "lower"
    return "higher" if _HIGHER.search(unit.strip()) else "neutral"


def value_of(metric: Metric, value: Any) -> tuple[MetricValue, ...]:
    """The measurement, or nothing for what is no finite number."""
    return metric.make_values(number(value))


def moment(value: Any, *, per_second: int = 1) -> datetime | None:
    """A time as ISO 8601 (UTC where it names no zone) or as a count since 1970; None for others."""
    count = number(value)
    try:
        if count is not None:
            return datetime.fromtimestamp(count / per_second, UTC)
        parsed = datetime.fromisoformat(str(value).strip().replace("/", "-"))
    except (ValueError, OverflowError, OSError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def sha_of(value: Any) -> str:
    """A commit as 7 to 64 hexadecimal digits; empty for anything else."""
    text = str(value or "").strip()
    return text.lower() if _SHA.fullmatch(text) else ""


def subject_of(message: Any) -> str:
    """The first line of a commit's message, shortened; empty for anything else than a text."""
    first_line = message.strip().partition("\n")[0] if isinstance(message, str) else ""
    return _shortened(first_line, LONGEST_SUBJECT)


def author_of(name: Any) -> str:
    """A person's name, shortened; an address of mail is none."""
    text = name if isinstance(name, str) and "@" not in name else ""
    return _shortened(text, LONGEST_AUTHOR)


def _shortened(text: str, most: int) -> str:
    line = " ".join(text.replace("\0", "").split())
    return line if len(line) <= most else f"{line[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def campaign_of(*words: str) -> str:
    """A slug of at most 100 characters."""
    return slug(" ".join(words)).replace("_", "-")[:100].strip("-") or "imported"


def texts(row: Mapping[str, Any], names: Iterable[str] = ()) -> dict[str, str]:
    """The short texts and numbers of a row, as labels."""
    columns = list(names) or list(row)
    text_of = {
        name: str(row[name]).strip()
        for name in columns
        if row.get(name) not in (None, "")
    }
    return {name: text for name, text in text_of.items() if len(text) <= 500}


def build_fields(reading: Reading) -> dict[str, Any]:
    """What an adapter has read, as fields of a run."""
    wording = {} if reading.status == "finished" else reading.failure
    failure = put(wording) if wording else ""
    return {
        "levels": reading.levels,
        "measurements": () if failure else reading.measurements,
        "series": () if failure else reading.series,
        "labels": reading.labels,
        "tool_name": reading.tool_name,
        "tool_version": reading.tool_version or "",
        "server_version": reading.server_version or "",
        "failure": failure,
        "wording": wording,
        "failure_code": reading.reasons[0].code
        if failure and reading.reasons
        else "failed",
        "notes": tuple(
            Note(reason.code, reason.message, "info", reason.wording).stored
            for reason in reading.notes
        ),
    }
