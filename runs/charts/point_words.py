"""What a point says, from the template that Plotly shows when a pointer is over it."""

import html
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

_FIELD = re.compile(
    r"%\{(?P<name>[\w.]{1,40})(?:\[(?P<index>\d{1,4})\])?(?::(?P<format>[^}]{0,40}))?\}"
)
_BREAK = re.compile(r"<br>|<extra>")
_TAG = re.compile(r"</?(?:b|extra)>")
_SIGNIFICANT = re.compile(r"\.(\d+)~?g")
_FIXED = re.compile(r"\.(\d+)f")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def words(trace: Mapping[str, Any], index: int) -> str:
    """The lines of the point at `index`, without markup; empty if the trace has no template."""
    filled = _filled(trace.get("hovertemplate", ""), trace, index)
    lines = map(str.strip, _TAG.sub("", _BREAK.sub("\n", filled)).split("\n"))
    return html.unescape("\n".join(filter(None, lines)))


def label(trace: Mapping[str, Any], index: int) -> str:
    """The text that stands at the point or bar itself."""
    if template := trace.get("texttemplate"):
        return _filled(template, trace, index)
    texts = trace.get("text")
    has_text = isinstance(texts, Sequence) and "text" in trace.get("mode", "")
    return str(texts[index]) if has_text and texts else ""


def number(value: Any, form: str) -> str:
    """A value as d3's format says it; those that the figures use: `,` g, f and s."""
    if isinstance(value, str) or value is None:
        return "" if value is None else value
    if form.endswith("s"):
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{value / size:.3g}{prefix}"
        return f"{value:.3g}"
    grouped, fixed, digits = _format(form)
    if fixed:
        return f"{value:{grouped}.{fixed}f}"
    if value and 1e-4 <= abs(value) < 1e15:
        whole_digits = len(str(int(abs(value))))
        text = (
            f"{value:{grouped}.{max(digits - whole_digits, 0)}f}"
            if abs(value) >= 1
            else ""
        )
        text = text or f"{value:.{digits}g}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits}g}"


@lru_cache(maxsize=256)
def _format(form: str) -> tuple[str, str, int]:
    """Of a format: its sign between thousands, decimals (empty: as needed), significant digits."""
    fixed, digits = _FIXED.search(form), _SIGNIFICANT.search(form)
    grouped = "," if form.startswith(",") else ""
    return grouped, fixed[1] if fixed else "", int(digits[1]) if digits else 6


def _filled(template: str, trace: Mapping[str, Any], index: int) -> str:
    begin, fields = _parsed(template)
    pieces = [begin]
    for field in fields:
        values = trace.get(field.name)
        value = (
            values[index]
            if isinstance(values, list | tuple) and len(values) > index
            else None
        )
        if field.position is not None and isinstance(value, list | tuple):
            value = value[field.position]
        if field.name == "fullData.name":
            value = html.escape(str(trace.get("name", "")))
        pieces += [number(value, field.form), field.text]
    return "".join(pieces)


class _Field(NamedTuple):
    """A field of a template, with the text behind it."""

    name: str
    position: int | None
    form: str
    text: str


@lru_cache(maxsize=256)
def _parsed(template: str) -> tuple[str, tuple[_Field, ...]]:
    """How a template begins; then its fields.

    Each point of a trace fills it: it is read once.
    """
    begin, *pieces = _FIELD.split(template)
    fields = zip(*(pieces[offset::4] for offset in range(4)), strict=True)
    return begin, tuple(_field(*words) for words in fields)


def _field(name: str, position: str | None, form: str | None, text: str) -> _Field:
    return _Field(name, int(position) if position else None, form or "", text)
