"""The contract between a benchmark tool's raw output and the archive.

An adapter reads the files of one run and gives a `Reading`. Whatever the text, it raises nothing
except `UnreadableOutput`; it prefers no number to a plausible wrong one: a run that failed has no
figures, and a run that covers less than was asked for is `partial` and says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, Union

from runs.wording import Marked, Wording, joined, put, wording_of
from runs.wording import gettext_noop as _

Direction = Literal["higher", "lower", "neutral"]
Status = Literal["finished", "partial", "failed"]
Files = Mapping[str, Union[bytes, str]]
Level = Union[int, float, str]
LONGEST_MESSAGE = 500  # characters of what a tool said
_LONGEST_FAILURE = 5000  # of all that is wrong with a run
_QUOTED = Marked("%(said)s")


class UnreadableOutput(ValueError):
    """The files are not this tool's, or not in a form that can be read.

    `code` is stable, `wording` says what was found, `remedy` what to do (`runs.wording`).
    `message` is the first in English.
    """

    def __init__(self, code: str, text: Marked, remedy: Marked, **names: str) -> None:
        self.code = code
        self.wording, self.remedy = (
            wording_of(marked, names) for marked in (text, remedy)
        )
        self.message = put(self.wording)
        super().__init__(self.message)


@dataclass(frozen=True, init=False)
class Reason:
    """One thing that is wrong with a run, or worth knowing. `code` is stable.

    `message` is the English sentence, `wording` what others are made of (`runs.wording`). Values
    quote the output, in at most 500 characters each, or are reasons or marked texts themselves.
    """

    code: str
    message: str
    wording: Wording = field(compare=False, repr=False)

    def __init__(self, code: str, text: Marked, /, **values: object) -> None:
        wording = wording_of(
            text, {name: _shortened(text) for name, text in values.items()}
        )
        vars(self).update(code=code, message=put(wording), wording=wording)


def _shortened(value: object) -> object:
    if isinstance(value, Marked) or not isinstance(value, str):
        return value
    return value[:LONGEST_MESSAGE]


def quoted(code: str, text: str) -> Reason:
    """What the tool itself said, which is never translated."""
    return Reason(code, _QUOTED, said=text)


SEVERAL_RESULTS = Reason(
    "several_results", _("The output holds more than one run: send each by itself.")
)


@dataclass(frozen=True)
class MetricValue:
    """One number of a metric, always finite. `metric` is a slug of at most 80 characters."""

    metric: str
    value: float
    unit: str
    direction: Direction
    title: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"{self.metric} is not a finite number: {self.value}")


@dataclass(frozen=True)
class SeriesData:
    """Values at a fixed interval, None where there is none.

    `start` and `interval` are in seconds, `start` counted from the beginning of measuring.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    start: float = 0.0
    interval: float = 1.0


@dataclass(frozen=True)
class Reading:
    """What the files of one run say.

    finished: the figures cover the complete run. partial: they cover less, `reasons` says what.
    failed: there is nothing to rely on, `measurements` is empty and `reasons` says why. `notes` are
    things worth knowing that leave the figures good. `levels` is what was asked for (clients,
    threads, scale, duration in seconds ...), never what a clock measured: runs of the same levels
    are repeats of each other. `workload` is how the load was put on (script, query
    mode, connection, rate, tries), as far as it is known. `unknown_lines` are lines that the
    adapter does not know, shortened, and at most `text.UNKNOWN_LINES` of them.
    """

    status: Status
    tool_name: str
    tool_version: str | None = None
    server_version: str | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    measurements: tuple[MetricValue, ...] = ()
    series: tuple[SeriesData, ...] = ()
    levels: Mapping[str, Level] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    workload: Mapping[str, Level] = field(default_factory=dict)
    unknown_lines: tuple[str, ...] = ()

    @property
    def failure(self) -> Wording:
        """The reasons in one, as many as a run keeps; empty where there is none."""
        lengths = accumulate(len(reason.message) for reason in self.reasons)
        reasons = [
            reason.wording
            for reason, length in zip(self.reasons, lengths)
            if length <= _LONGEST_FAILURE
        ]
        return joined(reasons, _("; %(sentence)s")) if reasons else {}


def judged(
    tool: str,
    reasons: Iterable[Reason],
    measurements: Iterable[MetricValue],
    *,
    fatal: Container[str] | None,
    mild: Container[str] = (),
    **fields: Any,
) -> Reading:
    """A reading with its status, and the figures, which are not looked at where it failed.

    Failed by a fatal code, of None by all but the mild ones; partial by any other.
    """
    reasons_found = tuple(reasons)
    codes = [reason.code for reason in reasons_found]
    if any(code not in mild if fatal is None else code in fatal for code in codes):
        return Reading(status="failed", tool_name=tool, reasons=reasons_found, **fields)
    status: Status = "partial" if codes else "finished"
    figures = tuple(measurements)
    return Reading(
        status=status,
        tool_name=tool,
        reasons=reasons_found,
        measurements=figures,
        **fields,
    )


@dataclass(frozen=True)
class TakenFile:
    """A file that an adapter reads. `name` is its key; `required` files cannot be left out."""

    name: str
    title: str
    required: bool = False


@dataclass(frozen=True)
class Adapter:
    """The reader of one tool's output.

    `name` is the tool's in an upload, which is the folder's ("go_tpc"), `title` the one for people.
    A run with a single text may give it as "stdout" or "raw". `read` takes the files of one run; it
    raises UnreadableOutput, and nothing else.
    """

    name: str
    title: str
    takes: tuple[TakenFile, ...]
    read: Callable[[Files], Reading]
