"""The axes of a still picture: from the layout of a figure to scales."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.charts.scale import Categories, Linear, Logarithmic, Scale, Time, widened
from runs.charts.svg_marks import reach


@dataclass(frozen=True)
class Axis:
    """An axis of the figure with its scale."""

    title: str
    scale: Scale
    letter: str


def axis(
    letter: str,
    traces: Sequence[Mapping[str, Any]],
    described: Mapping[str, Any],
    *,
    is_stacked: bool = False,
) -> Axis:
    """The x or a y axis over all traces on it, as the layout describes it."""
    heading = described.get("title", "")
    text = heading.get("text", "") if isinstance(heading, Mapping) else str(heading)
    return Axis(text, _scale(letter, described, traces, is_stacked=is_stacked), letter)


def _scale(
    letter: str,
    described: Mapping[str, Any],
    traces: Sequence[Mapping[str, Any]],
    *,
    is_stacked: bool,
) -> Scale:
    values = [value for trace in traces for value in trace.get(letter, ()) if value is not None]
    kind = described.get("type")
    if kind == "date":
        return Time.over(values)
    if kind == "category" or any(isinstance(value, str) for value in values):
        return _categories(described, values)
    marks = _marks(described)
    if "range" in described:
        return _given(described["range"], marks, is_log=kind == "log")
    reached = reach(letter, traces, is_stacked=is_stacked)
    if kind == "log":
        positive = [value for value in reached if value > 0] or [1.0]
        return Logarithmic(min(positive) / 1.15, max(positive) * 1.15, marks)
    from_zero = described.get("rangemode") == "tozero" or _has_bars(letter, traces)
    low, high = widened(reached, from_zero=from_zero)
    return Linear(low, high, marks)


def _given(ends: Sequence[float], marks: tuple[tuple[float, str], ...], *, is_log: bool) -> Scale:
    """The range that the figure sets; Plotly gives that of a logarithmic axis in powers of ten."""
    low, high = ends
    return Logarithmic(10.0**low, 10.0**high, marks) if is_log else Linear(low, high, marks)


def _categories(described: Mapping[str, Any], values: Iterable[Any]) -> Categories:
    names = tuple(str(name) for name in described.get("categoryarray", ()))
    names = names or tuple(dict.fromkeys(str(value) for value in values))
    if described.get("autorange") == "reversed":
        names = names[::-1]
    texts = {str(value): text for value, text in _marks(described)}
    return Categories(names, tuple(texts.get(name, name) for name in names))


def _marks(described: Mapping[str, Any]) -> tuple[tuple[Any, str], ...]:
    values = described.get("tickvals", ())
    texts = described.get("ticktext") or [f"{value:g}" for value in values]
    return tuple(zip(values, map(str, texts), strict=False))


def _has_bars(letter: str, traces: Sequence[Mapping[str, Any]]) -> bool:
    along = {"v": "y", "h": "x"}
    return any(
        trace["type"] == "bar" and along[trace.get("orientation", "v")] == letter
        for trace in traces
    )
