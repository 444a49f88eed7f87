"""What people's texts have around settings: marks of mails, fences, headings, blocks of YAML.

Lines that set nothing become empty, so that the others keep their numbers.
"""

import re

from runs import enclosed
from runs.postgresql_settings.catalogue import existence

_WORD = re.compile(r"(?<![\w.-])[a-z]+(?:_[a-z]+)+(?!\w)")
_FENCE = re.compile(r"\A\s*+(?:```|~~~)[\w-]*+\s*+\Z")
_SECTION = re.compile(r"\A\s*+\[[\w. -]{1,60}+\]\s*+\Z")
# Names of files, as head prints them, and what a shell was asked for.
_SHELL = re.compile(
    r"==> \S{1,200}+ <==|(?:[\w.-]{1,40}+@[\w.-]{1,60}+[:~/\w \]-]{0,80}+[#$]|\$)"
    r"(?: (?:[\w/.-]{1,40}+ ){0,9}?(?:cat|e?grep|head|tail|less) [^=]{0,300}+)?"
    r"|(?:sudo )?(?:cat|tee) [^=<]{0,200}+<<-? ?['\"]?\w{1,20}+['\"]?[^=]{0,80}+|EO[FT]"
)
_BRACES = re.compile(r"\A[ \t]*+\w{1,80}+ *+= *+\{[ \t\r]*+")
_MAIL = re.compile(r"\A> ?")
_BLOCK = re.compile(r"\A( *+)[\w.-]++: [|>][-+]?\s*+\Z")
_HUNK = re.compile(r"\A@@ -\d++(?:,\d++)? \+\d++(?:,\d++)? @@")
_SETTING = re.compile(r"\A\s*+[A-Za-z_][\w.]*+\s*+=")
_HTML = re.compile(r"<(?:pre|t[dr])\b", re.IGNORECASE)
_CELL = re.compile(r"</t[dh]>\s*+<t[dh]\b[^<>]{0,300}>", re.IGNORECASE)
_ROW = re.compile(r"</tr>", re.IGNORECASE)
# Code in a list or table of Markdown.
_CODE = re.compile(r"\A\s*+[-*|] ?[^`]*+`")
# Heroku's names.
_HEADING = re.compile(r"\A=== ")
_DASHED = re.compile(r"\A[a-z]{1,40}(?:-[a-z]{1,40}){1,8}+(?=: )")
# pgtune and others print the name on a line of its own.
_ALTER = re.compile(
    r"^([ \t]*+alter[ \t]++system[ \t]++set)[ \t]*+\n[ \t]*+", re.IGNORECASE | re.MULTILINE
)


def plain(text: str) -> str:
    """The text with its settings alone, as far as that is known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _HTML.search(text):
        text = enclosed.without_marks(_ROW.sub("\n", _CELL.sub("\t", text)))
    lines = _ALTER.sub(r"\n\1 ", text).split("\n")
    lines = [
        "" if _SECTION.match(line) or _SHELL.fullmatch(line.strip()) else line for line in lines
    ]
    lines = ["" if _FENCE.match(line) else line for line in _of_fence(lines)]
    if _HEADING.match(text):
        lines = ["", *(_DASHED.sub(_underscored, line) for line in lines[1:])]
    lines = [line.replace("`", "") if _CODE.match(line) else line for line in lines]
    # A heading of Jira.
    lines = [line.replace("||", "|") if line.startswith("||") else line for line in lines]
    written = [line for line in lines if line.strip()]
    if written and sum(bool(_MAIL.match(line)) for line in written) > 0.8 * len(written):
        lines = [_MAIL.sub("", line) for line in lines]
    return "\n".join(_of_block(_of_difference(lines)))


def _of_fence(lines: list[str]) -> list[str]:
    """The lines of the only fence, the others empty where they name no setting."""
    fences = [at for at, line in enumerate(lines) if _FENCE.match(line)]
    if len(fences) != 2:
        return lines
    begin, end = fences
    around = " ".join(lines[:begin] + lines[end + 1 :])
    if any(existence(word) for word in _WORD.findall(around)):
        return lines
    return [line if begin < at < end else "" for at, line in enumerate(lines)]


def _underscored(found: re.Match[str]) -> str:
    name = found[0].replace("-", "_")
    return name if existence(name) else found[0]


def has_sections(text: str) -> bool:
    """Whether it has headings such as [postgres.parameters], or blocks such as parameters = {."""
    lines = text.removeprefix("\ufeff").split("\n")
    return any(_SECTION.match(line) or _BRACES.fullmatch(line) for line in lines)


def _of_difference(lines: list[str]) -> list[str]:
    """The newer lines of `diff -u`, what they replace empty."""
    if not any(map(_HUNK.match, lines)):
        return lines
    kept = [
        "" if line.startswith(("-", "+++", "@@", "diff ", "index ")) else line for line in lines
    ]
    return [line[1:] if line[:1] in {"+", " "} else line for line in kept]


def _of_block(lines: list[str]) -> list[str]:
    """The lines of the first block scalar of YAML that holds settings, the others empty."""
    for at, line in enumerate(lines):
        if (begin := _BLOCK.match(line)) is None:
            continue
        end = at + 1
        while end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > len(begin[1])
        ):
            end += 1
        if any(map(_SETTING.match, lines[at + 1 : end])):
            return [each if at < n < end else "" for n, each in enumerate(lines)]
    return lines
