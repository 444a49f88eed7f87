"""Reads postgresql.conf, and what people paste in place of one; `conf_text` writes it.

A line's grammar is in `conf_lines`, other forms are in `forms`.
pgbench's scripts are carried between versions by `runs.tools.pgbench.dialect`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs import enclosed
from runs.postgresql_settings import conf_lines, forms
from runs.postgresql_settings.catalogue import canonical, existence
from runs.postgresql_settings.conf_text import POSTGRESQL_CONF, ConfFile, Entry, Fault
from runs.postgresql_settings.forms import assignments, sql_text
from runs.postgresql_settings.forms.reading import Pasted, known_name
from runs.wording import Marked
from runs.wording import gettext_noop as _

_WORD = re.compile(r"(?<![\w.-])[a-z]+(?:_[a-z]+)+(?!\w)")
_FENCE = re.compile(r"\A\s*+(?:```|~~~)[\w-]*+\s*+\Z")
_SECTION = re.compile(r"\A\s*+\[[\w. -]{1,60}+\]\s*+\Z")
# Names of files, as head prints them, and what a shell was asked for.
_SHELL = re.compile(
    r"==> \S{1,200}+ <==|(?:[\w.-]{1,40}+@[\w.-]{1,60}+[:~/\w \]-]{0,80}+[#$]|\$)"
    r"(?: (?:[\w/.-]{1,40}+ ){0,9}?(?:cat|e?grep|head|tail|less) [^=]{0,300}+)?"
    r"|[\w./-]{1,40} [^<]{0,200}+<<-? ?['\"]?\w{1,20}+['\"]?[^=]{0,80}+|EO[FT]"
)
# What Helm and Jinja decide.
_TEMPLATE = re.compile(r"\A\s*+\{[{%].{0,300}[%}]\}\s*+")
_BRACES = re.compile(r"\A[ \t]*+\w{1,80}+ *+= *+\{[ \t\r]*+")
_MAIL = re.compile(r"\A> ?")
_BLOCK = re.compile(r"\A( *+)[\w.-]++: [|>][-+]?\s*+\Z")
_HUNK = re.compile(r"\A@@ -\d++(?:,\d++)? \+\d++(?:,\d++)? @@")
_SETTING = re.compile(r"\A\s*+[A-Za-z_][\w.]*+\s*+=")
# Terraform's plan: what is added, what goes, and a value that becomes another.
_PLANNED = re.compile(
    r"\A\s*+[~+-]\s++(?:(?:resource|parameter|database_flags)\b[^:]*\{|\w++\s*+= )"
)
_PLAN_MARK = re.compile(r"\A(\s*+)([~+-]) (?=\s*+[\w\"])")
_BECOMES = re.compile(
    r"""(=\s{0,40}+)(?:"[^"]{0,400}+"|[^\s=]{1,200}+)\s{1,40}+->\s{1,40}+"""
)
_HTML = re.compile(r"<(?:pre|t[dr])\b", re.IGNORECASE)
_CELL = re.compile(r"</t[dh]>\s*+<t[dh]\b[^<>]{0,300}>", re.IGNORECASE)
_ROW = re.compile(r"</tr>", re.IGNORECASE)
# Code in a list or table of Markdown.
_CODE = re.compile(r"\A\s*+[-*|] ?[^`]*+`")
# A list of Markdown, each a setting.
_BULLET = re.compile(r"\A\s{0,20}+([-*+•])\s++(?=[A-Za-z_][\w.]{1,80}+\s*+=)")
# Heroku's names.
_HEADING = re.compile(r"\A=== ")
_DASHED = re.compile(r"\A[a-z]{1,40}(?:-[a-z]{1,40}){1,8}+(?=: )")
# pgtune and others print the name on a line of its own.
_ALTER = re.compile(
    r"^([ \t]*+alter[ \t]++system[ \t]++set)[ \t]*+\n[ \t]*+",
    re.IGNORECASE | re.MULTILINE,
)


def plain(text: str) -> str:
    """The text with its settings alone, as far as that is known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _HTML.search(text):
        text = enclosed.strip_marks(_ROW.sub("\n", _CELL.sub("\t", text)))
    lines = _ALTER.sub(r"\n\1 ", text).split("\n")
    lines = [
        "" if _SECTION.match(line) or _SHELL.fullmatch(line.strip()) else line
        for line in lines
    ]
    lines = ["" if _TEMPLATE.fullmatch(line) else line for line in lines]
    lines = ["" if _FENCE.match(line) else line for line in _fenced_lines(lines)]
    if _HEADING.match(text):
        lines = ["", *(_DASHED.sub(_underscored, line) for line in lines[1:])]
    # A fence within a line.
    lines = [line.replace("```", " ") for line in lines]
    lines = [line.replace("`", "") if _CODE.match(line) else line for line in lines]
    lines = _listed_lines(lines)
    # A heading of Jira.
    lines = [
        line.replace("||", "|") if line.startswith("||") else line for line in lines
    ]
    written = [line for line in lines if line.strip()]
    if written and sum(bool(_MAIL.match(line)) for line in written) > 0.8 * len(
        written
    ):
        lines = [_MAIL.sub("", line) for line in lines]
    return "\n".join(_plan_lines(_diff_lines(lines)))


def _listed_lines(lines: list[str]) -> list[str]:
    """The lines without the mark of a list, where each has the same."""
    marks = {
        mark[1] if (mark := _BULLET.match(line)) else ""
        for line in lines
        if line.strip()
    }
    if len(marks) != 1 or "" in marks:
        return lines
    return [_BULLET.sub("", line) for line in lines]


def _fenced_lines(lines: list[str]) -> list[str]:
    """The lines of the only fence, the others empty where they name no setting."""
    fences = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    if len(fences) != 2:
        return lines
    begin, end = fences
    around = " ".join(lines[:begin] + lines[end + 1 :])
    if any(existence(word) for word in _WORD.findall(around)):
        return lines
    return [line if begin < index < end else "" for index, line in enumerate(lines)]


def _underscored(name_match: re.Match[str]) -> str:
    name = name_match[0].replace("-", "_")
    return name if existence(name) else name_match[0]


def has_sections(text: str) -> bool:
    """Whether it has headings such as [postgres.parameters], or blocks such as parameters = {."""
    lines = text.removeprefix("\ufeff").split("\n")
    return any(_SECTION.match(line) or _BRACES.fullmatch(line) for line in lines)


def _diff_lines(lines: list[str]) -> list[str]:
    """The newer lines of `diff -u`, what they replace and what is no part of it empty."""
    if not any(map(_HUNK.match, lines)):
        return lines
    return [
        line[1:] if line[:1] in {"+", " "} and line[:3] != "+++" else ""
        for line in lines
    ]


def _plan_lines(lines: list[str]) -> list[str]:
    """The lines of Terraform's plan as they will be."""
    if not any(map(_PLANNED.match, lines)):
        return lines
    planned = []
    for line in lines:
        mark = _PLAN_MARK.match(line)
        goes = mark is not None and (
            mark[2] == "-" or line.rstrip().endswith("-> null")
        )
        planned.append(
            "" if goes else _BECOMES.sub(r"\1", _PLAN_MARK.sub(r"\1  ", line))
        )
    return planned


def _block_lines(lines: list[str]) -> list[str]:
    """The lines of the first block scalar of YAML that holds settings, the others empty."""
    for index, line in enumerate(lines):
        if (begin := _BLOCK.match(line)) is None:
            continue
        end = index + 1
        while end < len(lines) and (
            not lines[end].strip()
            or len(lines[end]) - len(lines[end].lstrip()) > len(begin[1])
        ):
            end += 1
        if any(map(_SETTING.match, lines[index + 1 : end])):
            return [
                block_line if index < n < end else ""
                for n, block_line in enumerate(lines)
            ]
    return lines


# What stands around lines of a file: where a program's string begins and ends, and a command that
# restarts the server.
_OPENS = re.compile(r"""(?:\bqq?[{(\[]|"{3}|'{3}|`)\Z""")
_CLOSES = re.compile(r"""(?:"{3}|'{3}|`|[})\]])[)\]};,]{0,5}+""")
_RESTARTS = re.compile(
    r"\A(?:sudo )?(?:systemctl|service|pg_ctl|pg_ctlcluster|/etc/init\.d/\w{1,40}+)"
    r"\s[\w@./ -]{1,100}+"
)
_FIRST_WORD = re.compile(r"[A-Za-z_][\w.]{0,80}+")

# No file of settings is longer; what is, is read as lines only.
MOST_CHARACTERS = 1_000_000

OF_A_PROGRAM = _("assignments of a program")
LEFT_OUT = frozenset({"include_left_out"})
# Statements that pgtune and others print around the settings.
_NO_SETTING = re.compile(
    r"\A\s*+(?:--.*+|(?:\S{1,60} ?[#>] )?select\s++pg_reload_conf\(\)\s*+;?"
    r"|alter\s++system\s++reset\s++\S++)\s*+",
    re.IGNORECASE,
)
_BY_AN_EDITOR = _(
    "The text begins with a byte order mark, left out: no server starts with it."
)


def read(text: str) -> ConfFile:
    """Everything that a postgresql.conf sets, with names as PostgreSQL spells them.

    Other forms are read as well: the strictest that takes all of the text.
    """
    mark = (
        [Fault(1, "byte_order_mark", _BY_AN_EDITOR, {})]
        if text.startswith("\ufeff")
        else []
    )
    if len(text) > MOST_CHARACTERS:
        return _read_lines(text, mark)
    if (form_reading := forms.read(plain(text))) is not None:
        form, reading = form_reading
        entries = _listed(reading.settings)
        return ConfFile(
            {entry.name: entry.value for entry in entries},
            tuple(entries),
            tuple(reading.faults),
            (*mark, *reading.left_out),
            form.title,
        )
    return _read_lines(text, mark)


def _read_lines(text: str, mark: Sequence[Fault]) -> ConfFile:
    """Lines of postgresql.conf, or of another language that assigns settings."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    # YAML that a template is, and that no parser takes.
    lines = _block_lines(plain(text).split("\n"))
    for number, line in enumerate(lines, 1):
        of_line = _read_line(number, line)
        entries += of_line.entries
        faults += of_line.faults
    form: Marked = POSTGRESQL_CONF
    if (
        any(fault.code == "syntax_error" for fault in faults)
        and len(text) <= MOST_CHARACTERS
    ):
        wrong = [fault.line for fault in faults if fault.code not in LEFT_OUT]
        assigned = assignments.entries(lines, wrong, has_sections=has_sections(text))
        if assigned:
            entries, faults, form = _listed(assigned), [], OF_A_PROGRAM
    if entries:
        faults = [
            fault
            for fault in faults
            if fault.code != "syntax_error"
            or not _is_around(lines[fault.line - 1].strip())
        ]
    settings = {entry.name: entry.value for entry in entries}
    left_out = [fault for fault in faults if fault.code in LEFT_OUT]
    faults = [fault for fault in faults if fault.code not in LEFT_OUT]
    return ConfFile(settings, tuple(entries), tuple(faults), (*mark, *left_out), form)


def _is_around(line: str) -> bool:
    name_match = _FIRST_WORD.match(line)
    is_named = name_match is not None and existence(name_match[0].lower())
    return not is_named and bool(
        _OPENS.search(line) or _CLOSES.fullmatch(line) or _RESTARTS.fullmatch(line)
    )


@dataclass(frozen=True)
class _Line:
    """What a line sets, or why not."""

    entries: Sequence[Entry] = ()
    faults: Sequence[Fault] = ()


def _read_line(number: int, text: str) -> _Line:
    """A line of postgresql.conf, or a statement or variable among such lines."""
    entry = conf_lines.line(number, text)
    if isinstance(entry, Entry):
        if name := _known_behind_product(entry.name):
            entry = Entry(number, canonical(name), entry.value)
        return _Line([entry])
    if entry is None or _NO_SETTING.fullmatch(text):
        return _Line()
    statement = sql_text.read_line(text)
    if statement is not None and not statement.faults:
        settings = [(number, name, value) for _one, name, value in statement.settings]
        return _Line(_listed(settings))
    return _Line(faults=[entry])


def _known_behind_product(name: str) -> str:
    """The setting of a container's variable, or of a line of properties; else empty."""
    if name.startswith("POSTGRES"):
        return known_name(name)
    product, _dot, last = name.partition(".")
    # Not Aiven's `pg.`, whose work_mem is in MB.
    is_product = product.lower() in {"postgresql", "postgres"}
    return last if is_product and existence(last) else ""


def _listed(pasted: Sequence[Pasted]) -> list[Entry]:
    return [Entry(line, canonical(name), value) for line, name, value in pasted]
