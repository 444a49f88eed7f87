"""Settings in command lines: options of a server, and the tools of providers.

Source: the manual's page of postgres; `aws rds modify-db-parameter-group`, `gcloud sql instances
patch --database-flags` and `az postgres flexible-server parameter set` of their references.
"""

import re
from collections.abc import Iterator

from runs.postgresql_settings.catalogue import existence

# Line, name and value.
Pasted = tuple[int, str, str]

_VALUE = r"""(?:(?:'[^']*+')+|"[^"]*+")"""
_OPTION = re.compile(
    r"""(?:\A|(?<=[\s"'\[,=]))(?:-c["']?[\s,]*+(?:-\s++)?["']?|--)"""
    rf"""(?P<name>[A-Za-z_][\w.-]*+)=(?P<value>{_VALUE}|[^\s"',\]]*+)"""
)
_HAS_OPTIONS = re.compile(
    r"""(?:^|[\s"'\[,])-c["']?[\s,]*+(?:-\s++)?["']?[a-z_]++(?:\.\w++)?="""
    r"""|\A\s*+(?:\S{0,80}/)?postgres\s++(?:-\S++\s++|\S++\s++){0,9}?--[a-z_-]++=""",
    re.MULTILINE,
)
_OF_PROVIDERS = (
    re.compile(r"ParameterName=(?P<name>[\w.]++),\s*+ParameterValue=(?P<value>[^,\s\"']++)"),
    re.compile(r"--name[ =](?P<name>[\w.]++)\s++--value[ =][\"']?(?P<value>[^\s\"']++)"),
)
_FLAGS = re.compile(r"--database-flags[ =][\"']?(?P<flags>[^\s\"']++)")


def of_command(text: str) -> list[Pasted] | None:
    """The settings of a command; None for a text that is none."""
    found = list(_of_providers(text))
    if not found and _HAS_OPTIONS.search(text):
        return list(_of_options(text))
    return found or None


def _of_options(text: str) -> Iterator[Pasted]:
    """What `-c name=value` and `--name=value` give a server."""
    for each in _OPTION.finditer(text):
        name = each["name"].replace("-", "_")
        if each[0].startswith("-c") or existence(name) or "." in name:
            value = each["value"].strip("\"'") if each["value"][:1] in "\"'" else each["value"]
            yield _line(text, each), name, value


def _of_providers(text: str) -> Iterator[Pasted]:
    for form in _OF_PROVIDERS:
        for each in form.finditer(text):
            yield _line(text, each), each["name"], each["value"]
    for flags in _FLAGS.finditer(text):
        for flag in flags["flags"].split(","):
            name, equals, value = flag.partition("=")
            if equals:
                yield _line(text, flags), name, value


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1
