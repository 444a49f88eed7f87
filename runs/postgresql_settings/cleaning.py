"""What people's texts have around settings: marks of mails, fences, headings, blocks of YAML.

Lines that set nothing become empty, so that the others keep their numbers.
"""

import re

_FENCE = re.compile(r"\A\s*+(?:```|~~~)[\w-]*+\s*+\Z")
_SECTION = re.compile(r"\A\s*+\[[\w. -]{1,60}+\]\s*+\Z")
_MAIL = re.compile(r"\A> ?")
_BLOCK = re.compile(r"\A( *+)[\w.-]++: [|>][-+]?\s*+\Z")
_HUNK = re.compile(r"\A@@ -\d++(?:,\d++)? \+\d++(?:,\d++)? @@")
_SETTING = re.compile(r"\A\s*+[A-Za-z_][\w.]*+\s*+=")
# pgtune and others print the name on a line of its own.
_ALTER = re.compile(
    r"^([ \t]*+alter[ \t]++system[ \t]++set)[ \t]*+\n[ \t]*+", re.IGNORECASE | re.MULTILINE
)


def plain(text: str) -> str:
    """The text with its settings alone, as far as that is known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = _ALTER.sub(r"\n\1 ", text).split("\n")
    lines = ["" if _FENCE.match(line) or _SECTION.match(line) else line for line in lines]
    written = [line for line in lines if line.strip()]
    if written and sum(bool(_MAIL.match(line)) for line in written) > 0.8 * len(written):
        lines = [_MAIL.sub("", line) for line in lines]
    return "\n".join(_of_block(_of_difference(lines)))


def has_sections(text: str) -> bool:
    """Whether it has headings such as [postgres.parameters]."""
    return any(map(_SECTION.match, text.removeprefix("\ufeff").split("\n")))


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
