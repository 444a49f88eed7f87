"""The key of a compared series in an address: `slug~version=9.3~checksums=on`."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _

SLUG = re.compile(r"[-\w]+")


class BadSeriesKey(ValueError):
    """A text that is not a key of a series; the message says which part is wrong."""


@dataclass(frozen=True)
class SeriesKey:
    """A campaign by its slug, and the levels that are fixed in it, each as text.

    A factor that the key leaves open is the x axis, or gives a series for each of its levels.
    """

    slug: str
    levels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        fixed = [f"{_encoded(name)}={_encoded(level)}" for name, level in self.levels]
        return "~".join([self.slug, *fixed])

    def matches(self, levels: Mapping[str, Any]) -> bool:
        """Whether a cell with these levels belongs to the series."""
        return all(
            level_text(levels.get(name, "")) == text
            or (name == "revision" and str(levels.get(name, "")).startswith(text))
            for name, text in self.levels
        )

    def fixed(self, levels: Iterable[tuple[str, str]]) -> "SeriesKey":
        """The same series with more levels fixed."""
        return SeriesKey(self.slug, (*self.levels, *levels))


def parse(text: str) -> SeriesKey:
    """Read a key. Raises BadSeriesKey, which names the unreadable part."""
    if "\0" in unquote(text):
        raise BadSeriesKey(_("A series has a null character in it, which no level can have."))
    slug, *parts = text.split("~")
    if not SLUG.fullmatch(slug):
        raise BadSeriesKey(
            _("“%(slug)s” in “%(text)s” is not the short name of a campaign.")
            % {"slug": slug, "text": text}
        )
    levels: dict[str, str] = {}
    for part in parts:
        name, equals, level = part.partition("=")
        name = unquote(name)
        if not name or not equals:
            raise BadSeriesKey(
                _("“%(part)s” in “%(text)s” must be a factor and its level, as in version=16.")
                % {"part": part, "text": text}
            )
        if name in levels:
            raise BadSeriesKey(
                _("“%(text)s” fixes the factor %(name)s twice.") % {"name": name, "text": text}
            )
        levels[name] = unquote(level)
    return SeriesKey(slug, tuple(levels.items()))


def level_text(level: Any) -> str:
    """A level as a key has it: "16", "0.5", "true"; text as it is."""
    if type(level) is int:  # for most of them: json takes a hundred times as long
        return str(level)
    return level if isinstance(level, str) else json.dumps(level, sort_keys=True)


def level_forms(text: str) -> list[Any]:
    """The stored levels with this text: "9.3" may be a text or a number."""
    try:
        typed = json.loads(text)
    except ValueError:
        return [text]
    # Stored JSON has no NaN and no overlong numbers; the database refuses them.
    is_number = isinstance(typed, int | float) and math.isfinite(typed)
    return [text, typed] if is_number or typed is None else [text]


@lru_cache(maxsize=4096)
def _encoded(text: str) -> str:
    # quote() considers the tilde harmless; here it separates the levels.
    return quote(text, safe="").replace("~", "%7E")
