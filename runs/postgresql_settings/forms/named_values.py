"""A name and a value in marks of another language: XML, calls, Puppet, Ansible's arguments, a log.

Each mark has an end of its own, up to which the value goes.
"""

import re

from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.forms.reading import FormReading
from runs.postgresql_settings.forms.shell_words import names_all

_STRING = r"""(?:(?:'[^']*+')+|"[^"]*+")"""
_MARKS = (
    # Amazon's --output text, and Ansible's arguments.
    re.compile(
        r"^PARAMETERS\t(?:[^\t\n]{0,300}+\t){4,9}?(?P<name>[a-z_.]{3,80}+)\t(?P<value>[^\t\n]++)\tuser$",
        re.MULTILINE,
    ),
    re.compile(
        r"\bname=(?P<name>[\w.]++)['\"]? value=(?P<value>[^\s\"']++)(?=[\s\"']|\Z)"
    ),
    re.compile(rf"\bname=(?P<name>[\w.]++) value=(?P<value>{_STRING})"),
    # Pulumi and XML.
    re.compile(
        r"""\bname\s*+=\s*+"(?P<name>[\w.]++)",?\s*+value\s*+=\s*+"(?P<value>[^"]*+)\""""
    ),
    re.compile(
        r"""config_entry\s*+\{\s*+["'](?P<name>[\w.]++)["']\s*+:"""
        rf"""(?:\s*+ensure\s*+=>\s*+\w++,)?\s*+value\s*+=>\s*+(?P<value>{_STRING}|[^\s,}}]++)"""
    ),
    re.compile(r'parameter "(?P<name>[\w.]++)" changed to "(?P<value>[^"]*+)"'),
    # pg_controldata.
    re.compile(
        r"^(?P<name>\w++) setting: {1,40}+(?P<value>\S++)[ \t]*+$", re.MULTILINE
    ),
)
# A function's two strings, or a pair of them, as programs have them.
_CALL = re.compile(
    rf"""[\w\[,(]\s{{0,40}}+\(\s*+["'](?P<name>[\w.]++)["']\s*+,\s*+(?P<value>{_STRING})"""
)
_OF_CONTROLDATA = {
    "max_prepared_xacts": "max_prepared_transactions",
    "max_locks_per_xact": "max_locks_per_transaction",
}


def read(text: str) -> FormReading | None:
    """The settings of a text; None for a text without one, or that names others besides."""
    reading = FormReading()
    for mark in (*_MARKS, _CALL):
        for assignment in mark.finditer(text):
            name = _OF_CONTROLDATA.get(assignment["name"], assignment["name"])
            if mark is not _CALL or existence(name):
                line = text.count("\n", 0, assignment.start()) + 1
                reading.settings.append((line, name, _unquoted(assignment["value"])))
    return reading if reading.settings and names_all(text, reading) else None


def _unquoted(value: str) -> str:
    is_string = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_string else value
