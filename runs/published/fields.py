"""Typed reading of a mapping: errors name the missing, unknown or mistyped field."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from runs.published.document import Text
from runs.published.errors import PublishedFileError
from runs.published.yaml_text import WHOLE, typed

T = TypeVar("T")

JAPANESE = re.compile(r"[぀-ヿ㐀-鿿]")
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(\w+)")
SIZES = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
SIZES |= {f"{unit[0]}iB": size for unit, size in SIZES.items()}


class Fields:
    """The fields of one mapping. `close()` refuses fields that nobody has read."""

    def __init__(self, value: Any, place: str, *, campaign: str = "") -> None:
        self.place = place
        self.campaign = campaign
        if not isinstance(value, Mapping):
            raise self.fault("must be a mapping")
        self._values = dict(value)
        self._asked: set[str] = set()

    def fault(self, message: str, *words: str) -> PublishedFileError:
        """An error that names this mapping; all `words` are in its line."""
        return PublishedFileError(f"{self.place} {message}.", campaign=self.campaign, words=words)

    def close(self) -> None:
        """Raise PublishedFileError for a field that nobody has read, such as a misspelt one."""
        unknown = sorted(str(name) for name in self._values.keys() - self._asked)
        if unknown:
            names = ", ".join(sorted(self._asked))
            message = f"has an unknown field: {', '.join(unknown)}; known are {names}"
            raise self.fault(message, f"{unknown[0]}:")

    def raw(self, name: str, default: Any = None) -> Any:
        """The field as it is in the file."""
        self._asked.add(name)
        found = self._values.get(name)
        return default if found is None or found == "" else found

    def text(self, name: str, *, required: bool = False, choices: tuple[str, ...] = ()) -> str:
        """One text; empty if there is none."""
        found = self.raw(name, "")
        if not isinstance(found, str):
            raise self.fault(f"needs one text in “{name}”", f"{name}:")
        if required and not found:
            raise self.fault(f"lacks “{name}”")
        if found and choices and found not in choices:
            message = f"has “{found}” in “{name}”; known are {', '.join(choices)}"
            raise self.fault(message, f"{name}:", found)
        return found.strip()

    def pair(self, name: str, *, required: bool = False) -> Text:
        """A text in both languages."""
        found = self.raw(name)
        if found is None and not required:
            return Text()
        return as_text(found, f"{self.place}: “{name}”", campaign=self.campaign)

    def pairs(self, name: str) -> tuple[Text, ...]:
        """A list of texts in both languages."""
        place = f"{self.place}: “{name}”"
        return tuple(as_text(each, place, campaign=self.campaign) for each in self.items(name))

    def number(self, name: str) -> int | None:
        """A whole number; None if there is none."""
        found = self.raw(name)
        if found is None:
            return None
        if not (isinstance(found, str) and WHOLE.fullmatch(found.replace(",", ""))):
            message = f"needs a whole number in “{name}”, not “{found}”"
            raise self.fault(message, f"{name}:", str(found))
        return int(found.replace(",", ""))

    def flag(self, name: str, *, default: bool) -> bool:
        """true or false."""
        found = self.text(name, choices=("true", "false"))
        return found == "true" if found else default

    def size(self, name: str) -> int | None:
        """Bytes of "2 TB"; None if there is none."""
        found = self.text(name)
        if not found:
            return None
        match = SIZE.fullmatch(found)
        if match is None or match[2] not in SIZES:
            message = f"needs a size such as “2 TB” in “{name}”, not “{found}”"
            raise self.fault(message, f"{name}:", found)
        return round(float(match[1]) * SIZES[match[2]])

    def items(self, name: str) -> list[Any]:
        """A list; empty if there is none."""
        found = self.raw(name, [])
        if not isinstance(found, list):
            raise self.fault(f"needs a list in “{name}”", f"{name}:")
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping as it is in the file; empty if there is none."""
        found = self.raw(name, {})
        if not isinstance(found, dict):
            raise self.fault(f"needs a mapping in “{name}”", f"{name}:")
        return found

    def levels(self, name: str) -> dict[str, Any]:
        """A mapping with numbers and words converted; a null stays."""
        return {key: typed(level, name=key) for key, level in self.mapping(name).items()}

    def each(self, name: str, read: Callable[["Fields", str], T]) -> dict[str, T]:
        """A mapping of mappings, each read by `read` and closed."""
        made = {}
        for key, value in self.mapping(name).items():
            fields = Fields(value, f"{name} {key}", campaign=self.campaign)
            made[key] = read(fields, key)
            fields.close()
        return made


def as_text(value: Any, place: str, *, campaign: str = "") -> Text:
    """A pair {en, ja}, or a single word that is the same in both.

    Raises PublishedFileError if one of them is missing.
    """
    if isinstance(value, str) and value and not JAPANESE.search(value) and " " not in value:
        return Text(value, value)
    if not (isinstance(value, dict) and set(value) == {"en", "ja"} and all(value.values())):
        raise PublishedFileError(f"{place} must be a pair of en and ja.", campaign=campaign)
    return Text(value["en"].strip(), value["ja"].strip())
