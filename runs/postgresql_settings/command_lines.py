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
    r"""(?:\A|(?<=[\s"'\[,=]))(?:-c["']?[\s,]*+(?:-\s++)?["']?|--(?:set[ =])?)"""
    # A comma is of a list of words, or ends an item of a list in brackets.
    rf"""(?P<name>[A-Za-z_][\w.-]*+)=(?P<value>{_VALUE}|(?:[^\s"',\]]|,(?![-\s"'\]]|\Z))*)"""
)
_HAS_OPTIONS = re.compile(
    r"""(?:^|[\s"'\[,])-c["']?[\s,]*+(?:-\s++)?["']?[a-z_]++(?:\.\w++)?="""
    r"""|\A\s*+(?:\S{0,80}/)?postgres\s++(?:-\S++\s++|\S++\s++){0,9}?--[a-z_-]++=""",
    re.MULTILINE,
)
_OF_PROVIDERS = (
    re.compile(
        r"ParameterName=(?P<name>[\w.]++),\s*+ParameterValue=(?P<value>'[^'\n]*+'|[^,\s\"']++)"
    ),
    re.compile(
        r"(?:--name|-n)[ =](?P<name>[\w.]++)\s++(?:--value|-v)[ =][\"']?(?P<value>[^\s\"']++)"
    ),
    # Amazon's --output text, and Ansible's arguments.
    re.compile(
        r"^PARAMETERS\t(?:[^\t\n]{0,300}+\t){4,9}?(?P<name>[a-z_.]{3,80}+)\t(?P<value>[^\t\n]++)\tuser$",
        re.MULTILINE,
    ),
    re.compile(r"\bname=(?P<name>[\w.]++)['\"]? value=(?P<value>[^\s\"']++)"),
    # Pulumi and XML.
    re.compile(r"""\bname\s*+=\s*+"(?P<name>\w++)",?\s*+value\s*+=\s*+"(?P<value>[^"]*+)\""""),
    re.compile(
        r"""config_entry\s*+\{\s*+["'](?P<name>\w++)["']\s*+:"""
        rf"""(?:\s*+ensure\s*+=>\s*+\w++,)?\s*+value\s*+=>\s*+(?P<value>{_VALUE}|[^\s,}}]++)"""
    ),
    re.compile(r"\bpg_conftool\b[^\n]{0,80}? set (?P<name>[\w.]++) (?P<value>'[^'\n]*+'|\S++)"),
    re.compile(r'parameter "(?P<name>[\w.]++)" changed to "(?P<value>[^"]*+)"'),
    # pg_controldata.
    re.compile(r"^(?P<name>\w++) setting: {1,40}+(?P<value>\S++)", re.MULTILINE),
)
# A function's two strings: set_config, and those of programs.
_CALL = re.compile(rf"""\w\(\s*+["'](?P<name>[\w.]++)["']\s*+,\s*+(?P<value>{_VALUE})""")
_OF_CONTROLDATA = {
    "max_prepared_xacts": "max_prepared_transactions",
    "max_locks_per_xact": "max_locks_per_transaction",
}
_FLAGS = re.compile(r"--database-flags[ =][\"']?(?:\^(?P<mark>[^\s^])\^)?(?P<flags>[^\s\"']++)")
# A setting's name has two words; a line of a comment names others.
_NAME = re.compile(r"(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w/])")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//) .*+", re.MULTILINE)


def of_command(text: str) -> list[Pasted] | None:
    """The settings of a command; None for a text that is none."""
    pasted = list(_of_providers(text))
    if not pasted and _HAS_OPTIONS.search(text):
        pasted = list(_of_options(text))
    words = {name_match[0] for name_match in _NAME.finditer(_COMMENT.sub("", text))}
    unread = words - {name.lower() for _line, name, _value in pasted}
    return None if not pasted or any(map(existence, unread)) else pasted


def _of_options(text: str) -> Iterator[Pasted]:
    """What `-c name=value` and `--name=value` give a server."""
    for option_match in _OPTION.finditer(text):
        name = option_match["name"].replace("-", "_")
        if (
            option_match[0].startswith("-c")
            or existence(name)
            or ("." in name and "set" not in option_match[0])
        ):
            value = (
                option_match["value"].strip("\"'")
                if option_match["value"][:1] in "\"'"
                else option_match["value"]
            )
            yield _line(text, option_match), name, value


def _of_providers(text: str) -> Iterator[Pasted]:
    for form in (*_OF_PROVIDERS, _CALL):
        for assignment in form.finditer(text):
            name = _OF_CONTROLDATA.get(assignment["name"], assignment["name"])
            if form is not _CALL or existence(name):
                yield _line(text, assignment), name, assignment["value"].strip("\"'")
    for flags in _FLAGS.finditer(text):
        for flag in flags["flags"].split(flags["mark"] or ","):
            name, equals, value = flag.partition("=")
            if equals:
                yield _line(text, flags), name, value


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1
