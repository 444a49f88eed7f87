"""Control characters, which act instead of being shown: text from a target must not have any.

A terminal that prints `\\x1b]0;...` changes its title, `\\x1b[2J` clears it, and U+202E reverses
the reading direction of the rest of a page.
"""

from runs.patterns import re

# C0 without tab and newline, DEL, C1, and what changes the direction or the order of text.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_REPLACED = {"\0": "\N{SYMBOL FOR NULL}"}


def neutralised(text: str) -> str:
    """The text with each such character escaped, as in `\\x1b`; a CR before a LF is dropped."""
    return _ACTING.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(match: re.Match[str]) -> str:
    character = match[0]
    if character in _REPLACED:
        return _REPLACED[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
