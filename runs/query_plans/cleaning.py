"""Takes off what psql, mail programs, editors, logs and tickets put around a plan.

Everything that reads a plan reads the lines that come from here. Each keeps the number that it has
in the text, so that a message can name it.
"""

import html
import re
from collections.abc import Callable
from typing import Any

from runs import foreign_json

Line = tuple[int, str]

_TAG = re.compile(r"<[A-Za-z/!][^<>]{0,300}+>")
_IS_HTML = re.compile(r"<(?:t[dr]|pre|br)\b", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}+[A-Za-z]")
_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\u3000", " ") | {"\ufeff": "", "\0": ""})
# A log's entry of auto_explain, of stderr, csvlog and jsonlog.
LOGGED = re.compile(r"duration: (\d{1,15}\.\d{1,9}) ms  plan:(\\n|[ \t]*+\n|[ \t]*+)")
_CSV_REST = re.compile(r'[^"]*+(?:""[^"]*+)*')
_JSON_REST = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*')
_CSV_CELL = re.compile(r'^"(?=(?:[\[{]\s*+){1,3}+""|- Plan:|<explain )', re.MULTILINE)

# What logs, containers and mails put in front of each line.
_PREFIXES = (
    re.compile(r"\A>(?: ?>)* ?"),
    # A comment of SQL, C or of a shell.
    re.compile(r"\A(?:--(?!-)|#| ?\*) ?"),
    re.compile(r"\A[\w.-]{1,60}+ {1,20}+\| ?"),
    re.compile(r"\A\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]*+(?: std(?:out|err) [FP])? "),
    re.compile(r"\A\w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,99} \S{1,99}\[\d+\]: (?:\[\d+-\d+\] )?"),
)
_BORDER = re.compile(r"\A\s*+[|│║┃]")
_BORDERS = "|│║┃"
_RULE = re.compile(
    r"\A\s*+[-+=|:_*│─┼┌┐└┘├┤┬┴═║╔╗╚╝╟╢╠╣╤╧╪╞╡╥╨╬╦╩]{3,}+\s*+\Z"
    r"|\A[-+═─╔╠╟├┌*\s]{0,20}+\[? ?\w{1,20}+ \d{1,9}+ ?\]?[-+═─╗╢╣┐┤╪╤┼]{3,}+\s*+\Z"
    r"|\A\* \w{1,20}+ \d{1,9}+\s*+\Z"
)
_FENCE = re.compile(
    r"\A\s*+(?:`{3,9}+|~{3,9}+|/\*{1,9}+|\*{1,9}+/|\[/?code\]|\{(?:code|noformat)[^{}]{0,40}+\})"
    r"[\w-]*+\s*+\Z"
)
_HEADING = re.compile(r"""\A[\s"'`|]*+QUERY PLAN[\s"'`|]*+\Z""", re.IGNORECASE)
_EXPANDED = re.compile(r"\A\s*+(?:QUERY PLAN(?:\s*+[|│║])? ?|[|│║] ?)")
_IS_EXPANDED = re.compile(r"\A\s*+QUERY PLAN\s*+[|│║] ?\S")
_COUNT = re.compile(r"\A\s*+[(（]\d{1,9} ?[^\W\d]{1,20}[)）]\s*+\Z")
_PROMPT = re.compile(r"""\A\w[\w.@:/-]{0,60}?[=(*"'!^$-][#>](?:\s|\Z)""")
# What psql's \timing prints, in the languages that it speaks.
_TIMING = re.compile(
    r"\A(?:Time|Zeit|Temps|Tiempo|Tempo|Durée|時間|时间|시간|Время|Tid|Zaman)\s?[:：] ?[\d.,]+ "
)


def lines_of(text: str) -> list[Line]:
    """The lines of the plan and of what is written beside it, without what frames them."""
    lines = list(enumerate(_plain(text).split("\n"), start=1))
    lines = _fenced([(number, line.expandtabs(8)) for number, line in lines])
    if "QUERY PLAN" in text and any(_IS_EXPANDED.match(line) for _number, line in lines):
        lines = [(number, _EXPANDED.sub("", line)) for number, line in lines]
    for _round in range(6):
        before = lines
        for pattern in _PREFIXES:
            lines = _by_most(lines, pattern, lambda line, p=pattern: p.sub("", line))  # type: ignore[misc]
        lines = _by_most(lines, _BORDER, _without_border)
        lines = _without_quotes(lines)
        if lines == before:
            break
    lines = _without_expanded([each for each in lines if not _is_frame(each[1])])
    return _unmarked(_unwrapped(lines))


def _plain(text: str) -> str:
    """One kind of line break and of blank; the text of HTML; the message of a log."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    text = _COLOUR.sub("", text)
    if _IS_HTML.search(text):
        text = html.unescape(_TAG.sub("", text)).translate(_BLANKS)
    elif "-&gt;" in text:  # the source of a page, without its marks
        text = html.unescape(text).translate(_BLANKS)
    text = text.replace("#011", "\t")
    if "->" not in text:  # what word processors and chats make of it
        text = text.replace("\u2192", "->").replace("\u2794", "->")
    text = _of_rows(text)
    if (logged := LOGGED.search(text)) is not None:
        text = _message(text, logged)
    elif (cell := _CSV_CELL.search(text)) is not None:
        text = _csv(text, cell.end())
    return text


def _of_rows(text: str) -> str:
    """The lines that a client has written as JSON: strings, or rows of one column."""
    if not text.lstrip().startswith("["):
        return text
    try:
        rows = foreign_json.loads(text)
    except ValueError:
        return text
    lines = [_only_value(row) for row in rows]
    found = [line for line in lines if isinstance(line, str)]
    return "\n".join(found) if found and len(found) == len(lines) else text


def _only_value(row: Any) -> Any:
    values = list(row.values()) if isinstance(row, dict) else row
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _message(text: str, logged: re.Match[str]) -> str:
    """What auto_explain has written, as its line breaks and quotes were."""
    if logged[2] == "\\n":
        return _json_text(text, logged.end())
    if text[logged.start() - 1 : logged.start()] == '"':
        return _csv(text, logged.end())
    return text[text.rfind("\n", 0, logged.start()) + 1 :]


def _csv(text: str, begin: int) -> str:
    found = _CSV_REST.match(text, begin)
    return found[0].replace('""', '"') if found else ""


def _json_text(text: str, begin: int) -> str:
    """The rest of a string of JSON; as it is where it is none."""
    found = _JSON_REST.match(text, begin)
    rest = found[0] if found else ""
    try:
        return str(foreign_json.loads(f'"{rest}"', strict=False))
    except ValueError:
        return rest


def _fenced(lines: list[Line]) -> list[Line]:
    """What is in the first fence; everything where there is none."""
    fences = [at for at, (_number, line) in enumerate(lines) if _FENCE.match(line)]
    if len(fences) != 2:
        return [each for each in lines if not _FENCE.match(each[1])]
    return lines[fences[0] + 1 : fences[1]]


def _by_most(
    lines: list[Line], pattern: re.Pattern[str], change: Callable[[str], str]
) -> list[Line]:
    """Change the lines that match, if most of them do."""
    written = [line for _number, line in lines if line.strip() and not _RULE.match(line)]
    matching = sum(bool(pattern.match(line)) for line in written)
    if not written or matching * 10 < len(written) * 6:
        return lines
    return [(n, change(line) if pattern.match(line) else line) for n, line in lines]


def _without_border(line: str) -> str:
    inner = line.strip()[1:]
    return inner[:-1] if inner[-1:] in _BORDERS and inner else inner


def _without_quotes(lines: list[Line]) -> list[Line]:
    """Without the quotes of pgAdmin around lines, or of CSV around those with a comma."""
    if any(line.lstrip()[:1] in {"[", "{"} for _number, line in lines):
        return lines
    return [(number, _unquoted(line)) for number, line in lines]


def _unquoted(line: str) -> str:
    whole = line.strip().removesuffix(",").removesuffix(";")
    for quote in ('"', "'"):
        inner = whole[1:-1].replace(quote * 2, "")
        if len(whole) > 1 and whole[0] == quote == whole[-1] and quote not in inner:
            return whole[1:-1].replace(quote * 2, quote)
    return line


def _is_frame(line: str) -> bool:
    return (
        not line.strip()
        or any(each.match(line) for each in (_RULE, _HEADING, _COUNT, _FENCE))
        or _TIMING.match(line.strip()) is not None
    )


def _without_expanded(lines: list[Line]) -> list[Line]:
    """Without the column's name that psql's \\x puts in front of each line."""
    if not any(line.lstrip().startswith("QUERY PLAN") for _number, line in lines):
        return lines
    return [(number, _EXPANDED.sub("", line)) for number, line in lines]


def _unwrapped(lines: list[Line]) -> list[Line]:
    """With the lines that psql's format `wrapped` has broken made whole."""
    whole: list[Line] = []
    for number, line in lines:
        last = whole[-1][1].rstrip() if whole else ""
        if last[-1:] in {".", "…"} and last[-1:] == line[:1]:
            whole[-1] = (whole[-1][0], last[:-1] + line[1:])
        else:
            whole.append((number, line))
    return whole


def _unmarked(lines: list[Line]) -> list[Line]:
    """Without psql's marks of a line break within a value, and without prompts."""
    found = []
    for number, line in lines:
        whole = line.rstrip()
        if whole[-1:] in {"+", "↵"} and whole[-2:-1] in {*' )]},[{"', ""}:
            whole = whole[:-1].rstrip()
        if whole:
            found.append((number, whole))
    return found


def is_statement(line: str) -> bool:
    """Whether it is a line of psql with its prompt, or the beginning of an EXPLAIN."""
    return bool(_PROMPT.match(line)) or line.lstrip()[:8].lower() in {"explain ", "explain("}
