"""YAML in which every scalar is text: 9.10, off and 0.50 stay as printed."""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from runs.published.errors import PublishedFileError

# The parser in C is ten times as fast; PyYAML without it gives the same result.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
DECIMAL = re.compile(r"-?\d+\.\d+")
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
        seen: set[str] = set()
        for key, _value in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise PublishedFileError(f"line {line}: “{key.value}” is given twice.")
            if key.value != "<<":
                seen.add(key.value)
        made: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return made


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


def _weight(node: Any, known: dict[int, int]) -> int:
    """How many nodes it has with every reference expanded; a reference to itself is invalid."""
    key = id(node)
    if key not in known:
        known[key] = MOST_NODES
        parts = node.value if isinstance(node.value, list) else []
        flat = (each for part in parts for each in (part if isinstance(part, tuple) else (part,)))
        known[key] = 1 + sum(_weight(each, known) for each in flat)
    return known[key]


def typed(value: Any, *, name: str = "") -> Any:
    """The value with numbers, true, false and null converted, except in versions."""
    if isinstance(value, dict):
        return {
            key: typed(each, name=name if name in NAMES else key) for key, each in value.items()
        }
    if isinstance(value, list):
        return [typed(each, name=name) for each in value]
    if value in WORDS:
        return WORDS[value]
    return value if name in NAMES else _number(value)


def _number(text: str) -> Any:
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text
