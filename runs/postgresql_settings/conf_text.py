"""What a postgresql.conf says, and how one is written. `conf_file` reads them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.postgresql_settings import values
from runs.postgresql_settings.catalogue import setting
from runs.wording import Marked

# Units stand behind whole numbers only, exponents nowhere that all versions read. A letter is
# anything beyond ASCII too.
_LETTER = r"[^\x00-@\[-\^`{-\x7f]"
_OR_DIGIT = r"[^\x00-/:-@\[-\^`{-\x7f]"
_BARE = re.compile(rf"[+-]?(?:\d+[a-zA-Z]*|\d+\.\d+)|{_LETTER}{_OR_DIGIT}*")

# The form that most texts have.
POSTGRESQL_CONF = Marked("postgresql.conf")


@dataclass(frozen=True)
class Entry:
    """One line that sets something. Lines are counted from 1."""

    line: int
    name: str
    value: str


@dataclass(frozen=True)
class Fault:
    """A line that PostgreSQL would not accept, or that is not supported here.

    `message` is a translatable template, `parameters` belong into it.
    """

    line: int
    code: str
    message: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class ConfFile:
    """What a postgresql.conf says: the last line of a name wins.

    `entries` are all lines in order, also those that later ones replace. `faults` are lines that
    are not settings; an include is such a line, since other files are not available. `left_out`
    are those that do not matter: includes of files that may be missing, a mark of the editor, and
    what is not in force. `form` is the title of the form in which they stand.
    """

    settings: Mapping[str, str]
    entries: tuple[Entry, ...]
    faults: tuple[Fault, ...]
    left_out: tuple[Fault, ...] = ()
    form: Marked = POSTGRESQL_CONF

    def line(self, name: str) -> int | None:
        """The line that gave the setting its value."""
        lines = [
            entry.line for entry in self.entries if entry.name.lower() == name.lower()
        ]
        return lines[-1] if lines else None


def write(
    settings: Mapping[str, str], major: str, *, header: Sequence[str] = ()
) -> str:
    """A postgresql.conf of that version: a header, then the settings by the manual's chapters.

    Raises ValueError for a value that no file can hold. Says nothing about whether the version
    takes the settings: see `validation.check`.
    """
    # A line break in a title must not end the comment: what follows it would be a setting.
    comments = [
        line for text in (*header, f"PostgreSQL {major}") for line in text.splitlines()
    ]
    lines = [f"# {line}".rstrip() for line in comments]
    chapters: dict[str, list[str]] = {}
    for name in sorted(settings, key=str.lower):
        chapters.setdefault(_chapter(name, major), []).append(name)
    for chapter in sorted(chapters, key=lambda each: (each == "", each)):
        lines += ["", f"# {chapter}" if chapter else "# Extensions and others"]
        lines += [
            f"{name} = {_written(name, settings[name], major)}"
            for name in chapters[chapter]
        ]
    return "\n".join([*lines, ""])


def is_bare(value: str) -> bool:
    """Whether it needs no quotes: a number, with its unit or not, or a word."""
    return _BARE.fullmatch(value) is not None


def quoted(value: str) -> str:
    """A value in quotes, as all versions read it. Raises ValueError for a null byte."""
    if "\0" in value:
        raise ValueError("a setting's value cannot hold a null byte")
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def _chapter(name: str, major: str) -> str:
    facts = setting(name, major)
    return facts.category if facts is not None else ""


def _written(name: str, value: str, major: str) -> str:
    """Numbers and words as they are, everything else in quotes."""
    facts = setting(name, major)
    if facts is None or facts.kind == "string" or not is_bare(value):
        return quoted(value)
    try:
        values.parse(value, facts)
    except values.BadValue:
        return quoted(value)
    return value
