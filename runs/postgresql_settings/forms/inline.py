"""Settings in one line, as people write them to each other: `a = 1; b = 2`, `a=1, b=2`."""

import re

from runs.postgresql_settings import conf_lines
from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.conf_text import Entry
from runs.postgresql_settings.forms.reading import FormReading

_ASSIGNED = re.compile(
    r"""[ \t]{0,40}+(?P<name>[A-Za-z_][\w.]{1,80}+)[ \t]{0,40}+[=:][ \t]{0,40}+"""
    r"""(?P<value>'(?:[^'\\\n]|''|\\.)*+'|"[^"\n]*+"|[^\s,;'"]{1,200}+)[ \t]{0,40}+(?:[;,]|\Z)"""
)


def read(text: str) -> FormReading | None:
    """The settings of lines of which one has several; None where a line has anything else."""
    reading = FormReading()
    has_several = False
    for number, line in enumerate(text.split("\n"), start=1):
        written = line.rstrip()
        position = count = 0
        while position < len(written):
            assigned = _ASSIGNED.match(written, position)
            if assigned is None or not existence(assigned["name"].lower()):
                return None
            value = _value(assigned["name"], assigned["value"])
            if value is None:
                return None
            reading.settings.append((number, assigned["name"], value))
            position = assigned.end()
            count += 1
        has_several |= count > 1
    return reading if has_several else None


def _value(name: str, written: str) -> str | None:
    """The value as postgresql.conf has it, which knows no double quotes."""
    if written[0] == '"':
        return written[1:-1]
    entry = conf_lines.line(1, f"{name} = {written}")
    return entry.value if isinstance(entry, Entry) else written
