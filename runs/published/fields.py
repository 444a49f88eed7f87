"""Typed reading of a mapping: errors name the missing, unknown or mistyped field."""

import dataclasses
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING
from datetime import date
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml

from runs.published.document import Address, Levels, Text
from runs.published.errors import PublishedFileError

# The parser in C is ten times as fast; PyYAML without it gives the same result.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
DECIMAL = re.compile(r"\A-?\d+\.\d+")
WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
# The largest file of the archive has some 20,000.
MOST_NODES = 500_000
# Versions are names: 10 and 9.10 are not numbers.
NAMES = frozenset({"version", "versions"})


class _TextLoader(_Base):  # type: ignore[misc]
    """Only `<<` is special, and a key must not occur twice in a mapping."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile(r"^<<$"))]}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping; a duplicate key is an error, instead of the last one winning."""
        seen_keys: set[str] = set()
        for key, _value in node.value:
            if key.value in seen_keys:
                line = key.start_mark.line + 1
                raise PublishedFileError(f"line {line}: “{key.value}” is given twice.")
            if key.value != "<<":
                seen_keys.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def parse(text: str) -> Any:
    """The document with all its scalars as text. Raises PublishedFileError for broken YAML."""
    loader = _TextLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _weight(node, {}) > MOST_NODES:
            raise PublishedFileError("repeats itself by references beyond all measure.")
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError) as error:
        raise PublishedFileError(f"is no YAML: {error}") from error
    finally:
        loader.dispose()


def _weight(node: Any, weights: dict[int, int]) -> int:
    """How many nodes it has with every reference expanded; a reference to itself is invalid."""
    key = id(node)
    if key not in weights:
        weights[key] = MOST_NODES
        children = node.value if isinstance(node.value, list) else []
        flat = (
            child_node
            for child in children
            for child_node in (child if isinstance(child, tuple) else (child,))
        )
        weights[key] = 1 + sum(_weight(child_node, weights) for child_node in flat)
    return weights[key]


def typed(value: Any, *, name: str = "") -> Any:
    """The value with numbers, true, false and null converted, except in versions."""
    if isinstance(value, dict):
        return {
            key: typed(member, name=name if name in NAMES else key)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [typed(element, name=name) for element in value]
    if value in WORDS:
        return WORDS[value]
    return value if name in NAMES else _number(value)


def _number(text: str) -> Any:
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text


T = TypeVar("T")


_hints = lru_cache(get_type_hints)


JAPANESE = re.compile(r"[぀-ヿ㐀-鿿]")
SIZE = re.compile(r"\A(\d++(?:\.\d++)?) ?(\w+)")
SIZES = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
SIZES |= {f"{unit[0]}iB": size for unit, size in SIZES.items()}


class Fields:
    """The fields of one mapping. `close()` refuses fields that nobody has read."""

    def __init__(self, value: Any, place_name: str, *, campaign: str = "") -> None:
        self.place = place_name
        self.campaign = campaign
        if not isinstance(value, Mapping):
            raise self.fault("must be a mapping")
        self._values = dict(value)
        self._asked: set[str] = set()

    def fault(self, message: str, *words: str) -> PublishedFileError:
        """An error that names this mapping; all `words` are in its line."""
        return PublishedFileError(
            f"{self.place} {message}.", campaign=self.campaign, words=words
        )

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
        raw = self._values.get(name)
        return default if raw is None or raw == "" else raw

    def text(
        self, name: str, *, required: bool = False, choices: tuple[str, ...] = ()
    ) -> str:
        """One text; empty if there is none."""
        text = self._take_type(name, str, "one text")
        if required and not text:
            raise self.fault(f"lacks “{name}”")
        if text and choices and text not in choices:
            message = f"has “{text}” in “{name}”; known are {', '.join(choices)}"
            raise self.fault(message, f"{name}:", text)
        return text.strip()

    def pair(self, name: str, *, required: bool = False) -> Text:
        """A text in both languages."""
        raw = self.raw(name)
        if raw is None and not required:
            return Text()
        return as_text(raw, f"{self.place}: “{name}”", campaign=self.campaign)

    def number(self, name: str, *, required: bool = False) -> int | None:
        """A whole number; None if there is none."""
        raw = self.raw(name)
        if raw is None:
            if required:
                raise self.fault(f"lacks “{name}”")
            return None
        if not (isinstance(raw, str) and WHOLE.fullmatch(raw.replace(",", ""))):
            message = f"needs a whole number in “{name}”, not “{raw}”"
            raise self.fault(message, f"{name}:", str(raw))
        return int(raw.replace(",", ""))

    def flag(self, name: str) -> bool:
        """Whether it is true; false is what is not there."""
        return self.text(name, choices=("true", "false")) == "true"

    def size(self, name: str) -> int | None:
        """Bytes of "2 TB"; None if there is none."""
        size_text = self.text(name)
        if not size_text:
            return None
        match = SIZE.fullmatch(size_text)
        if match is None or match[2] not in SIZES:
            message = f"needs a size such as “2 TB” in “{name}”, not “{size_text}”"
            raise self.fault(message, f"{name}:", size_text)
        return round(float(match[1]) * SIZES[match[2]])

    def items(self, name: str) -> list[Any]:
        """A list; empty if there is none."""
        return self._take_type(name, list, "a list")

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping as it is in the file; empty if there is none."""
        return self._take_type(name, dict, "a mapping")

    def _take_type(self, name: str, kind: type[T], words: str) -> T:
        """The field as it is in the file, or nothing of that type."""
        raw = self.raw(name, kind())
        if not isinstance(raw, kind):
            raise self.fault(f"needs {words} in “{name}”", f"{name}:")
        return raw

    def address(self, name: str, *, required: bool = False) -> Address:
        """An address of the web; any other is a fault, since pages would link to it."""
        text = self.text(name, required=required)
        if text and not text.startswith(("http://", "https://")):
            message = (
                f"needs an address that begins with https:// in “{name}”, not “{text}”"
            )
            raise self.fault(message, text)
        return Address(text)

    def day(self, name: str) -> date:
        """A day of the calendar."""
        text = self.text(name, required=True)
        try:
            return date.fromisoformat(text)
        except ValueError:
            message = f"needs a day such as 2026-11-21 in “{name}”, not “{text}”"
            raise self.fault(message) from None

    def levels(self, name: str) -> dict[str, Any]:
        """A mapping with numbers and words converted; a null stays."""
        return {
            key: typed(level, name=key) for key, level in self.mapping(name).items()
        }

    def entry(self, cls: type[T], **members: Any) -> T:
        """The entry that the mapping describes, which is closed.

        What `members` does not have is read by the type of its field; one without a default has to
        be there.
        """
        kinds = _hints(cls)  # type: ignore[arg-type]
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            is_optional = (
                field.default is not MISSING or field.default_factory is not MISSING
            )
            if field.name in members or (is_optional and self.raw(field.name) is None):
                continue
            members[field.name] = self._take_kind(field.name, kinds[field.name])
        self.close()
        return cls(**members)

    def entries(self, name: str, cls: type[T], *, key: str) -> dict[str, T]:
        """A mapping of mappings as such entries; `key` is the field of their key."""
        return {
            entry_key: Fields(
                value, f"{name} {entry_key}", campaign=self.campaign
            ).entry(cls, **{key: entry_key})
            for entry_key, value in self.mapping(name).items()
        }

    def _take_kind(self, name: str, kind: Any) -> Any:
        kind = get_args(kind)[0] if type(None) in get_args(kind) else kind
        readers: dict[Any, Callable[..., Any]]
        readers = {
            str: self.text,
            Text: self.pair,
            Address: self.address,
            int: self.number,
        }
        if kind in readers:
            return readers[kind](name, required=True)
        if kind == Levels:
            return self.levels(name)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self.text(name, choices=arguments)
        if origin is dict:
            mapping = self.mapping(name)
            return (
                {key: str(member) for key, member in mapping.items()}
                if arguments[1] is str
                else mapping
            )
        if origin in (tuple, frozenset):
            place_name = f"{self.place}: an entry of “{name}”"
            return origin(
                self._item(element, arguments[0], place_name)
                for element in self.items(name)
            )
        return self.flag(name) if kind is bool else self.day(name)

    def _item(self, value: Any, kind: Any, place_name: str) -> Any:
        if kind is str:
            return str(value)
        if kind is Text:
            return as_text(value, place_name, campaign=self.campaign)
        if kind == Levels:
            return typed(value)
        return Fields(value, place_name, campaign=self.campaign).entry(kind)


def as_text(value: Any, place_name: str, *, campaign: str = "") -> Text:
    """A pair {en, ja}, or a single word that is the same in both.

    Raises PublishedFileError if one of them is missing.
    """
    if (
        isinstance(value, str)
        and value
        and not JAPANESE.search(value)
        and " " not in value
    ):
        return Text(value, value)
    if not (
        isinstance(value, dict) and set(value) == {"en", "ja"} and all(value.values())
    ):
        raise PublishedFileError(
            f"{place_name} must be a pair of en and ja.", campaign=campaign
        )
    return Text(value["en"].strip(), value["ja"].strip())
