"""What a point says, from the template that Plotly shows when a pointer is over it."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

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
    lines = (_TAG.sub("", line).strip() for line in _BREAK.split(filled))
    return html.unescape("\n".join(line for line in lines if line))


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
        return _with_prefix(value)
    grouped = "," if form.startswith(",") else ""
    if found := _FIXED.search(form):
        return f"{value:{grouped}.{found[1]}f}"
    digits = int(found[1]) if (found := _SIGNIFICANT.search(form)) else 6
    if value and 1e-4 <= abs(value) < 1e15:
        whole = len(str(int(abs(value))))
        text = f"{value:{grouped}.{max(digits - whole, 0)}f}" if abs(value) >= 1 else ""
        text = text or f"{value:.{digits}g}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits}g}"


def _with_prefix(value: float) -> str:
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def _filled(template: str, trace: Mapping[str, Any], index: int) -> str:
    def fill(found: re.Match[str]) -> str:
        name, form = found["name"], found["format"] or ""
        if name == "fullData.name":
            return html.escape(str(trace.get("name", "")))
        values = trace.get(name)
        value = values[index] if isinstance(values, Sequence) and len(values) > index else None
        if found["index"] and isinstance(value, Sequence):
            value = value[int(found["index"])]
        return number(value, form)

    return _FIELD.sub(fill, template)
