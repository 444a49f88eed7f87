"""Options of a server, or lines of postgresql.conf, as the strings of a program: Go, Rust, Python.

The words of the command are what stands in quotes, in order; all else belongs to the language.
"""

import re

from runs import foreign_json
from runs.postgresql_settings.forms.reading import FormReading
from runs.postgresql_settings.forms.shell_words import Word, names_all, read_words

# An option that is an argument or an element by itself, several in an argument, a line of a file.
_BEGINS = re.compile(
    r"""(?P<quote>["'])-c(?P=quote)\s{0,40}+[,);]"""
    r"""|["'](?:[\w/]{0,60}+\s{1,9}+)?-c\s{1,9}+[a-z_]{3,60}+(?:\.\w{1,60}+)?=[^"'\n]{1,2000}+["']"""
    r"""\s{0,9}+[,;)}\]]"""
    r"""|"[a-z_]{3,60}+(?:\.\w{1,60}+)?\s?=\s?'[^'"\n]{0,200}+'\""""
)
# Or what is escaped outside of strings, which begins none.
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)"' r"|'((?:[^'\\\n]|\\.)*+)'" r"|\\.")
_ESCAPED = re.compile(r"\\(.)")


def _text_of(string: re.Match[str]) -> str:
    """What a string says; those in double quotes are JSON's in most languages."""
    try:
        return str(foreign_json.loads(string[0]))
    except ValueError:
        return _ESCAPED.sub(r"\1", string[1] or string[2] or "")


def read(text: str) -> FormReading | None:
    """The settings of a program's strings; None for a text without, or that names others."""
    if _BEGINS.search(text) is None:
        return None
    words = []
    line = 1
    counted = 0
    for string in _STRING.finditer(text):
        if string.lastindex is None:
            continue
        line += text.count("\n", counted, string.start())
        counted = string.start()
        words.append(Word(line, _text_of(string)))
    reading = read_words(words)
    return reading if reading.settings and names_all(text, reading) else None
