"""JSON that somebody else has written: its depth is looked at before anything is made of it."""

import json
import string
from typing import Any

from runs.patterns import re

# A plan has two levels for each of its nodes.
MOST_DEPTH = 200
# As most documents have at most.
FEW_LEVELS = 20
# What a document begins with; "[ 15%]", "[1/20]" and "[12:30]" of a log are none.
BEGINS = re.compile(
    r"""(?:\[\s{0,200}+){1,8}+(?:["\]]|\{\s{0,200}+["}]"""
    r"""|(?:-?(?:0|[1-9]\d{0,400}+)(?:\.\d{1,400}+)?(?:[eE][+-]?\d{1,9}+)?|true|false|null)"""
    r"""\s{0,200}+[,\]])|\{\s{0,200}+["}]"""
)
_BRACKETS = "[]{}"
_BRACKETS_ALONE = str.maketrans(dict.fromkeys(set(string.printable) - set(_BRACKETS)))
# A whole string; one that is not closed goes to the end.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
# Up to the next bracket.
_BRACKET = re.compile(rf'(?:[^\[\]{{}}"]++|{_STRING})*+([\[\]{{}}]|\Z)', re.DOTALL)

# Strings (to the end if not closed), comments, a last comma, words and the brackets of tuples.
_LITERAL = re.compile(
    r"""'((?:[^'\\]|\\.)*+)(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)"""
    r"""|//[^\n]*+|,(?=\s*+[\]})])|[A-Za-z_]\w*+|[()]""",
    re.DOTALL,
)
_WORDS = {"(": "[", ")": "]", ",": "", "True": "true", "False": "false", "None": "null"}


class TooDeepError(ValueError):
    """It has more levels than anything that BenchLab reads."""

    def __init__(self) -> None:
        super().__init__(f"It is nested deeper than {MOST_DEPTH} levels.")


def loads(text: str, **options: Any) -> Any:
    """As `json.loads`. Raises TooDeepError, another ValueError for what is no JSON."""
    # Most are lines of a query, of which a run reads a thousand: they have few brackets in all.
    if text.count("[") + text.count("{") > MOST_DEPTH and not _is_flat(text):
        check_depth(text)
    return json.loads(text, **options)


def first(text: str, begin: int = 0) -> tuple[Any, int]:
    """The document that begins there, and where it ends. Raises as `loads`."""
    check_depth(text, begin)
    return json.JSONDecoder(strict=False).raw_decode(text, begin)


def convert_literal(text: str) -> str:
    """JSON for a literal of Python or JavaScript, as these print their values; else the text."""
    if text.lstrip()[:1] not in {"[", "(", "{"}:
        return text
    for candidate in (text, _LITERAL.sub(_convert_word, text)):
        try:
            loads(candidate)
        except ValueError:
            continue
        return candidate
    return text


def _convert_word(word_match: re.Match[str]) -> str:
    word = word_match[0]
    if word_match[1] is not None:
        return '"{}"'.format(word_match[1].replace("\\'", "'").replace('"', '\\"'))
    is_name = (
        word[0].isalpha()
        and word_match.string[word_match.end() : word_match.end() + 2].strip()[:1]
        == ":"
    )
    if is_name:
        return f'"{word}"'
    return "" if word.startswith("//") else _WORDS.get(word, word)


def _is_flat(text: str) -> bool:
    """Whether it surely has few levels: for a large document in a tenth of `check_depth`'s time.

    Its brackets outside of strings end in nothing where the innermost pairs are removed some times.
    """
    without_escapes = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(without_escapes.split('"')[::2])
    brackets = outside.translate(_BRACKETS_ALONE)
    for _level in range(FEW_LEVELS):
        if not brackets:
            return True
        brackets = brackets.replace("[]", "").replace("{}", "")
    return False


def check_depth(text: str, begin: int = 0) -> None:
    """Raise TooDeepError for the document that begins there, if it has too many levels."""
    depth = 0
    for bracket in _BRACKET.finditer(text, begin):
        if bracket[1] in {"[", "{"}:
            depth += 1
            if depth > MOST_DEPTH:
                raise TooDeepError
        else:
            depth -= 1
            if depth <= 0:
                return
