"""Variables of a container's environment: `POSTGRESQL_MAX_CONNECTIONS=220`, with or without export.

A file of variables has no quotes of its own: a value goes to the end of its line. With quotes it is
a shell's.
"""

import re
import shlex

from runs.postgresql_settings.forms.reading import FormReading, known_name

_VARIABLE = re.compile(
    r"\A\s*+(?:(?:export|ENV|-e|set)\s++)?(?P<name>[A-Z][A-Z0-9_]*+)=(?P<value>[^\n]*+)"
)
_EMPTY = re.compile(r"\s*+(?:#.*+)?")


def read(text: str) -> FormReading | None:
    """The settings among variables; None where a line is no variable, or none is a setting."""
    reading = FormReading()
    for number, line in enumerate(text.split("\n"), start=1):
        if _EMPTY.fullmatch(line):
            continue
        variable = _VARIABLE.fullmatch(line)
        if variable is None:
            return None
        name = known_name(variable["name"])
        if not name or "_" not in variable["name"]:
            continue
        value = variable["value"].strip()
        if value[:1] in {"'", '"'}:
            try:
                words = shlex.split(value, comments=True)
            except ValueError:
                words = []
            if len(words) != 1:
                reading.refuse_rest(number, line)
                continue
            value = words[0]
        reading.settings.append((number, name, value))
    return reading if reading.settings or reading.faults else None
