"""Settings that a program, a shell or a template assigns: Nix, Ruby, Puppet, TOML, echo and sed.

What belongs to the other language is not looked at. A setting that is named and not assigned is
none that was understood, and then nothing is read.
"""

import re
from collections.abc import Sequence

from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.forms.reading import Pasted
from runs.postgresql_settings.forms.reading import known_name as known

_STRING = r"""'[^'\n]{0,500}+'|"[^"\n]{0,500}+\""""
# A list of strings, as Nix and Ruby have them.
_LIST = rf"\[\s*+(?:(?:{_STRING})[\s,]*+){{1,40}}+\]"
_VALUE = rf"""{_STRING}|{_LIST}|[^\s"',;{{}}\[\]()/\\]{{1,200}}+"""
# What Nix has before a value.
_NIX = r"(?:lib\.)?mk(?:Force|Default|Override \d{1,4}) "
_ASSIGNED = re.compile(
    r"""(?<!\w)(?P<name>[A-Za-z_]\w{2,80}+)["']?\]?\s{0,40}+"""
    rf"(?:=>|->|[:=]|(?i:to\s))\s{{0,40}}+(?:value\s{{0,9}}=>\s{{0,9}})?(?:{_NIX})?(?=(?P<value>{_VALUE}))"
)
# An extension's, which a program has in quotes.
_OF_EXTENSION = re.compile(
    r"""["'](?P<name>[a-z_]\w{1,60}+\.\w{1,60}+)["']\]?\s{0,40}+(?:=>|[:=])\s{0,40}+"""
    rf"(?P<value>{_VALUE})"
)
_NAME = re.compile(r"[A-Za-z_]\w{2,80}+")
_COMMENT = re.compile(r"(?:\A|\s)(?:#|--|//) .*+")
# What may follow a value: the end, marks of the language, and the next assignment.
_AFTER = re.compile(
    r"""[\s"')\]};,]{0,40}+(?:>|\||&|\\|#|[{(\[]?\s{0,9}+["']?[A-Za-z_][\w.-]{0,80}+["']?\]?"""
    r"""\s{0,9}+(?:=>|[:=])|\Z)"""
)
# How a line of another language ends that begins as one of postgresql.conf.
_ENDS_BARE = re.compile(r"\s{0,40}+(?:(?:#|//).*+)?")
_ENDS = re.compile(r"\s{0,40}+[;,]\s{0,40}+(?:#.*+)?")


def entries(
    lines: Sequence[str], faulty: Sequence[int], *, has_sections: bool
) -> list[Pasted] | None:
    """What the lines assign; None where one of the `faulty` may be a setting written wrong.

    `has_sections` is TOML, whose lines end as any.
    """
    pasted: list[Pasted] = []
    names = set[str]()
    for number, line in enumerate(lines, start=1):
        bare = _COMMENT.sub("", line)
        words = (
            name_match[0] for name_match in _NAME.finditer(bare) if "_" in name_match[0]
        )
        names |= {name for word in words if (name := known(word))}
        for assignment in _ASSIGNED.finditer(bare):
            name = known(assignment["name"])
            if not name:
                continue
            if _AFTER.match(bare, assignment.end("value")) is None:
                return None
            pasted.append((number, name, _unquoted(assignment["value"])))
        pasted += [
            (number, dotted["name"], _unquoted(dotted["value"]))
            for dotted in _OF_EXTENSION.finditer(bare)
        ]
    is_whole = len(pasted) > 1 and names <= {name for _number, name, _value in pasted}
    return (
        pasted if is_whole and _is_other_language(lines, faulty, has_sections) else None
    )


def _is_other_language(
    lines: Sequence[str], faulty: Sequence[int], has_sections: bool
) -> bool:
    """Whether the faults are of another language: most settings end as none in a file does."""
    own_lines = [
        number
        for number, line in enumerate(lines, start=1)
        if _begins_with_setting(line)
    ]
    wrong = [number for number in faulty if number in own_lines]
    written = [lines[n - 1].strip().lstrip("'\"") for n in wrong]
    matches = [(line, _ASSIGNED.match(line)) for line in written]
    if not all(
        match and (has_sections or _ends(line, match)) for line, match in matches
    ):
        return False
    return has_sections or len(wrong) > len(own_lines) / 2 or not own_lines


def _ends(line: str, match: re.Match[str]) -> bool:
    """Whether the line ends as another language's: the last of a list has no comma."""
    sign = line[match.end("name") : match.start("value")]
    is_last = "=" not in sign.replace("=>", "") and _ENDS_BARE.fullmatch(
        line, match.end("value")
    )
    return bool(is_last or _ENDS.fullmatch(line, match.end("value")))


def _begins_with_setting(line: str) -> bool:
    name_match = _NAME.match(line.strip().lstrip("'\""))
    return name_match is not None and bool(existence(name_match[0].lower()))


def _unquoted(value: str) -> str:
    if value[0] == "[":
        return ",".join(string[1:-1] for string in re.findall(_STRING, value))
    return (
        value[1:-1]
        if value[0] in "\"'" and value[0] == value[-1] and len(value) > 1
        else value
    )
