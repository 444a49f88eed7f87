"""Takes off what psql, mail programs, editors, logs and tickets put around a plan.

Everything that reads a plan reads the lines that come from here. Each keeps the number that it has
in the text, so that a message can name it.
"""

import html
import quopri
import re
from collections.abc import Callable
from functools import partial

Line = tuple[int, str]

_TAG = re.compile(r"<[A-Za-z/!][^<>]{0,300}+>")
_IS_HTML = re.compile(r"<(?:t[dr]|pre|br)\b", re.IGNORECASE)
_ESCAPED = re.compile(r"-&gt;|&quot;|&lt;Plan&gt;")
_BEFORE_CELL = re.compile(r"^[ \t]++(?=<t[dhr]\b)", re.MULTILINE)
_ROW_ENDS = re.compile(r"(?:</tr>|<br ?/?>)(?![ \t]{0,40}\n)", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}+[A-Za-z]")
_BLANKS = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u202f\u3000", " ") | {"\ufeff": "", "\0": ""}
)
# A log's entry of auto_explain, of stderr, csvlog and jsonlog.
LOGGED = re.compile(r"duration: (\d{1,15}\.\d{1,9}) ms  plan:(\\n|[ \t]*+\n|[ \t]*+)")
_CSV_REST = re.compile(r'[^"]*+(?:""[^"]*+)*')
_CSV_CELL = re.compile(
    r'^(?:QUERY PLAN,)?"(?=(?:[\[{]\s*+){1,3}+""|- Plan:|<explain )', re.MULTILINE
)

# What logs, containers and mails put in front of each line.
_PREFIXES = (
    re.compile(r"\A>(?: ?>)* ?"),
    # A comment of SQL, C or of a shell.
    re.compile(r"\A(?:--(?!-)|#| ?\*) ?"),
    re.compile(r"\A[\w.-]{1,60}+ {1,20}+\| ?"),
    re.compile(
        r"\A\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]*+(?: std(?:out|err) [FP])? "
    ),
    re.compile(
        r"\A\w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,99} \S{1,99}\[\d+\]: (?:\[\d+-\d+\] )?"
    ),
)
_BORDER = re.compile(r"\A\s*+[|│║┃]")
_BORDERS = "|│║┃"
_RULE = re.compile(
    r"\A\s*+[-+=|:_*│─┼┌┐└┘├┤┬┴═║╔╗╚╝╟╢╠╣╤╧╪╞╡╥╨╬╦╩]{3,}+\s*+\Z"
    r"|\A[-+═─╔╠╟├┌*\s]{0,40}+\[? ?(?:\w{1,20}+ \d{1,9}+|\d{1,9}+\. \w{1,20}+) ?\]?"
    r"[-+*═─╗╢╣┐┤╪╤┼]{3,}+\s*+\Z"
    r"|\A(?:\* \w{1,20}+|\s*+Record) \d{1,9}+\s*+\Z"
)
_FENCE = re.compile(
    r"\A\s*+(?:`{3,9}+|~{3,9}+|/\*{1,9}+|\*{1,9}+/"
    r"|\[/?code\b[^\]]{0,20}+\]|\{(?:code|noformat|quote|panel)[^{}]{0,40}+\}"
    r"|\\(?:begin|end)\{(?:verbatim|lstlisting|minted)\}.{0,80}|(?:\w{1,40}+ ?= ?)?\"\"\")"
    r"[\w-]*+\s*+\Z|\A\.\. [\w-]{1,20}+::|\A\[source\b[^\]]{0,40}+\]\Z|\A#\+(?:BEGIN|END)_"
)
# Where a test has written it, as Go's says on the first line.
_POSITION = re.compile(
    r"^(\s{0,20})[\w./-]{1,80}\.\w{1,5}:\d{1,6}: (?=[A-Z][^\n]{1,300}?\((?:cost=|actual ))",
    re.MULTILINE,
)
# What a chat has put on one line with the plan.
_GLUED = re.compile(
    r"^(?P<begin>```|\[code\b[^\]\n]{0,20}\])(?=[^`\n]{1,300}\((?:cost=|actual ))"
    r"|(?<=\S)(?P<end>```|\[/code\])$",
    re.MULTILINE,
)
_OF_PLAN = re.compile(r"\((?:cost=|actual )|Node[ -]Type")
# A client's, with its column's type below.
_HEADING = re.compile(
    r"""\A[\s"'`|]*+(?:QUERY PLAN|text|json)[\s"'`|]*+\Z""", re.IGNORECASE
)
# The column's name that psql's \x puts in front, and the marks of lines that go on (old-ascii):
# a colon after a line break, a semicolon where psql has broken the line.
_COLUMN = re.compile(r"\A(\s*+[|│║]?\s*+)QUERY PLAN(?=\s*+\S)")
_GOES_ON = re.compile(r"\A(\s{0,9}?[|│║]? {10,12})([:;])(?= |\Z)")
_COUNT = re.compile(r"\A\s*+[(（]\d{1,9} ?[^\W\d]{1,20}(?: [^\W\d]{1,20})?[)）]\s*+\Z")
# What psql answers to other statements.
_ANSWER = re.compile(
    r"(?:SET|RESET|BEGIN|COMMIT|ROLLBACK|EXPLAIN|ANALYZE|VACUUM|(?:CREATE|DROP|ALTER) [A-Z ]{1,40}"
    r"|Timing is o(?:n|ff)\.|(?:NOTICE|WARNING|INFO):  .*+)"
)
_PROMPT = re.compile(r"""\A\w[\w.@:/-]{0,60}?[=(*"'!^$-][#>](?:\s|\Z)""")
# What psql's \timing prints, in any language.
_TIMING = re.compile(
    r"[^\W\d_]{1,20}\s?[:：] ?\d{1,12}(?:[.,]\d{1,3})? \w{1,20}(?: ?\([\d:., \w]{1,40}\))?"
)
# What word processors and chats make of an arrow, and of two dots.
_ARROWS = re.compile(
    r"(?<![^\s|│\"'])(?:-->|[\u2013\u2014\u2212]>|[\u2192\u2794])(?= {0,2}[A-Z])"
)
_DOTS = re.compile(r"(?<=\d)\u2026(?=\d)")
_DATE = r"\d{4}-\d\d-\d\d[ T]\d\d:"
_NEXT_ENTRY = re.compile(rf"\n{_DATE}")


def lines_of(text: str) -> list[Line]:
    """The lines of the plan and of what is written beside it, without what frames them."""
    lines = list(enumerate(_plain(text).split("\n"), start=1))
    lines = _fenced([(number, line.expandtabs(8)) for number, line in lines])
    for _round in range(6):
        before = lines
        lines = _remove_column(lines)
        for pattern in _PREFIXES:
            lines = _change_most(lines, pattern, partial(pattern.sub, ""))
        lines = _change_most(lines, _BORDER, _remove_border)
        lines = _remove_quotes(lines)
        if lines == before:
            break
    return _unmarked(_unwrapped([line for line in lines if not _is_frame(line[1])]))


def _plain(text: str) -> str:
    """One kind of line break and of blank; the text of HTML; the message of a log."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    text = _GLUED.sub(
        lambda match: "```\n" if match["begin"] else "\n```", _COLOUR.sub("", text)
    )
    if "=3D" in text:  # the source of a mail
        text = quopri.decodestring(text.encode()).decode(errors="replace")
    if _IS_HTML.search(text):
        text = _ROW_ENDS.sub("\n", _BEFORE_CELL.sub("", text))
        text = html.unescape(_TAG.sub("", text)).translate(_BLANKS)
    elif (
        _ESCAPED.search(text) and "<Plan>" not in text
    ):  # the source of a page, without its marks
        text = html.unescape(text).translate(_BLANKS)
    text = _POSITION.sub(r"\1", text.replace("#011", "\t"))
    text = _ARROWS.sub(lambda match: f"{'->':>{len(match[0])}}", _DOTS.sub("..", text))
    if (logged := LOGGED.search(text)) is not None:
        text = _message(text, logged)
    elif (cell := _CSV_CELL.search(text)) is not None:
        text = _csv(text, cell.end())
    return text


def _message(text: str, logged: re.Match[str]) -> str:
    """What auto_explain has written, as its line breaks and quotes were."""
    if text[logged.start() - 1 : logged.start()] == '"':
        return _csv(text, logged.end())
    begin = text.rfind("\n", 0, logged.start()) + 1
    following = _NEXT_ENTRY.search(text, logged.end() - 1)
    is_entry = (
        re.match(_DATE, text[begin:]) and following and following.start() > logged.end()
    )
    return text[begin : following.start() if is_entry and following else len(text)]


def _csv(text: str, begin: int) -> str:
    csv_match = _CSV_REST.match(text, begin)
    return csv_match[0].replace('""', '"') if csv_match else ""


def _fenced(lines: list[Line]) -> list[Line]:
    """What is in the fence of a plan; everything where there is none."""
    fences = [
        index for index, (_number, line) in enumerate(lines) if _FENCE.match(line)
    ]
    fenced = [lines[a + 1 : b] for a, b in zip(fences[::2], fences[1::2], strict=False)]
    plans = [
        fence for fence in fenced if any(_OF_PLAN.search(line) for _n, line in fence)
    ]
    chosen = plans if len(fences) > 2 else fenced
    if len(chosen) != 1 or len(fences) % 2:
        return [line for line in lines if not _FENCE.match(line[1])]
    return chosen[0]


def _change_most(
    lines: list[Line], pattern: re.Pattern[str], change: Callable[[str], str]
) -> list[Line]:
    """Change the lines that match, if most of them do."""
    written = [
        line for _number, line in lines if line.strip() and not _RULE.match(line)
    ]
    matching = sum(bool(pattern.match(line)) for line in written)
    if not written or matching * 10 < len(written) * 6:
        return lines
    return [(n, change(line) if pattern.match(line) else line) for n, line in lines]


def _remove_border(line: str) -> str:
    inner = line.strip()[1:]
    return inner[:-1] if inner[-1:] in _BORDERS and inner else inner


def _remove_quotes(lines: list[Line]) -> list[Line]:
    """Without the quotes of pgAdmin around lines, or of CSV around those with a comma."""
    if any(line.lstrip()[:1] in {"[", "{"} for _number, line in lines):
        return lines
    return [(number, _unquoted(line)) for number, line in lines]


def _unquoted(line: str) -> str:
    stripped = line.strip().removesuffix(",").removesuffix(";")
    for quote in ('"', "'", "`"):
        inner = stripped[1:-1].replace(quote * 2, "")
        if (
            len(stripped) > 1
            and stripped[0] == quote == stripped[-1]
            and quote not in inner
        ):
            return stripped[1:-1].replace(quote * 2, quote)
    return line


def _is_frame(line: str) -> bool:
    return (
        not line.strip()
        or any(pattern.match(line) for pattern in (_RULE, _HEADING, _COUNT, _FENCE))
        or any(pattern.fullmatch(line.strip()) for pattern in (_TIMING, _ANSWER))
    )


def _remove_column(lines: list[Line]) -> list[Line]:
    """With blanks for the column's name."""
    unnamed = [
        (number, _COLUMN.sub(_blank, line.removeprefix("QUERY PLAN|")))
        for number, line in lines
    ]
    if unnamed == lines:
        return lines
    whole_lines: list[Line] = []
    for number, line in unnamed:
        mark = _GOES_ON.match(line)
        if mark and mark[2] == ";" and whole_lines:
            last_line = (
                re.sub(r" ?[|│║] *\Z", "", whole_lines[-1][1])
                if mark[1].strip()
                else whole_lines[-1][1]
            )
            whole_lines[-1] = (whole_lines[-1][0], last_line + line[mark.end() + 1 :])
        else:
            whole_lines.append((number, _GOES_ON.sub(r"\1|", line)))
    return whole_lines


def _blank(match: re.Match[str]) -> str:
    return f"{match[1]:{len(match[0])}}"


def _unwrapped(lines: list[Line]) -> list[Line]:
    """With the lines that psql's format `wrapped` has broken made whole."""
    whole_lines: list[Line] = []
    for number, line in lines:
        last_line = whole_lines[-1][1].rstrip() if whole_lines else ""
        if last_line[-1:] in {".", "…"} and last_line[-1:] == line[:1]:
            whole_lines[-1] = (whole_lines[-1][0], last_line[:-1] + line[1:])
        else:
            whole_lines.append((number, line))
    return whole_lines


def _unmarked(lines: list[Line]) -> list[Line]:
    """Without psql's marks of a line break within a value, and without prompts."""
    unmarked = []
    for number, line in lines:
        stripped = line.rstrip()
        if stripped[-1:] in {"+", "↵"} and stripped[-2:-1] in {*' )]},[{"', ""}:
            stripped = stripped[:-1].rstrip()
        if stripped:
            unmarked.append((number, stripped))
    return unmarked


def is_statement(line: str) -> bool:
    """Whether it is a line of psql with its prompt, or the beginning of an EXPLAIN."""
    begin = line.lstrip("=> \t")[:8].lower()  # Rails has an arrow there
    return bool(_PROMPT.match(line)) or begin in {"explain ", "explain("}
