"""Variables of a container's environment: `POSTGRESQL_MAX_CONNECTIONS=220`, with or without export.

A file of variables has no quotes of its own: a value goes to the end of its line. With quotes it is
a shell's. A value may have options of a server: `POSTGRESQL_EXTRA_FLAGS=-c work_mem=64MB`.
"""

import re
import shlex

from runs.postgresql_settings.forms import shell_words
from runs.postgresql_settings.forms.reading import FormReading, known_name

_VARIABLE = re.compile(
    r"\A\s*+(?:(?:export|ENV|-e|set)\s++)?(?P<name>[A-Z][A-Z0-9_]*+)=(?P<value>[^\n]*+)"
)
_EMPTY = re.compile(r"\s*+(?:#.*+)?")
_OPTIONS = re.compile(r"(?:^|[\s\"'])(?:-c\s*+|--)[a-z_]++(?:\.\w++)?=")


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
        value = variable["value"].strip()
        if not name and _OPTIONS.search(value):
            _take_options(reading, number, value)
            continue
        if not name or "_" not in variable["name"]:
            continue
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


def _take_options(reading: FormReading, line: int, value: str) -> None:
    """Options of a server as the value of a variable, in quotes or without."""
    words = shell_words.words_of(value)
    if words is None:
        reading.refuse_rest(line, value)
        return
    of_line = [shell_words.Word(line, word.text) for word in words]
    reading.add(shell_words.read_words(of_line))
