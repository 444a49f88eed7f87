"""Words in Django-free modules: marked for translation, kept with their values, put when shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runs.control_characters import neutralised
from runs.patterns import re

_PLACE = re.compile(r"%%|%\((\w+)\)s")
DEEPEST = 5

# {"text": "Cannot write to %(path)s: %(found)s", "values": {"path": ..., "found": ...}}, where a
# value is quoted, or a wording itself.
Wording = Mapping[str, Any]


class Marked(str):
    """A text that is translated where it is shown, unlike what is quoted."""

    __slots__ = ()


def gettext_noop(text: str) -> Marked:
    """Return the text itself, marked; its name makes the message extractor pick it up."""
    return Marked(text)


def keep_english(text: str) -> str:
    """The text itself."""
    return text


def wording_of(text: str, values: Mapping[str, object]) -> Wording:
    """A text with what it quotes, without control characters, or with what has a wording itself."""
    quoted = {name: _quoted(value) for name, value in values.items()}
    is_ours = bool(quoted) or isinstance(text, Marked)
    return {"text": text if is_ours else neutralised(text), "values": quoted}


def _quoted(value: object) -> str | Wording:
    if isinstance(value, Marked):
        return {"text": value, "values": {}}
    wording = getattr(value, "wording", value)  # a problem's
    return wording if isinstance(wording, Mapping) else neutralised(str(value))


def joined(wordings: Sequence[Wording], further_text: str) -> Wording:
    """Sentences in one: each but the first as `further_text` has it, such as "; %(sentence)s"."""
    if len(wordings) == 1:
        return wordings[0]
    values = {
        str(index): wording_of(further_text, {"sentence": wording})
        if index
        else wording
        for index, wording in enumerate(wordings)
    }
    return {"text": "".join(f"%({name})s" for name in values), "values": values}


def is_wording(value: Any, depth: int = DEEPEST) -> bool:
    """Whether foreign data can be put: with a value for each place, which is there once.

    So a sentence is no longer than its parts together.
    """
    if not isinstance(value, Mapping) or not depth:
        return False
    text, values = value.get("text"), value.get("values", {})
    if not isinstance(text, str) or not isinstance(values, Mapping):
        return False
    places = [placeholder for placeholder in _PLACE.findall(text) if placeholder]
    is_complete = len(set(places)) == len(places) and values.keys() >= set(places)
    return (not values or (is_complete and "%" not in _PLACE.sub("", text))) and all(
        isinstance(member, str) or is_wording(member, depth - 1)
        for member in values.values()
    )


def put(wording: Wording, translate: Callable[[str], str] = keep_english) -> str:
    """A wording as a sentence; what it quotes stays as it is."""
    values = {
        name: _put_value(member, translate)
        for name, member in wording.get("values", {}).items()
    }
    text = wording["text"]
    text = translate(text) if text else ""
    return text % values if values else text


def _put_value(value: Any, translate: Callable[[str], str]) -> str:
    return put(value, translate) if isinstance(value, Mapping) else str(value)


def say_stored(wording: Wording, message: str, translate: Callable[[str], str]) -> str:
    """A stored message, from its wording where it has one."""
    if wording:
        return put(wording, translate)
    return translate(message) if message else ""
