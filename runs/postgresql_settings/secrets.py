"""Secrets within settings: an archive that everybody reads must not have them.

What PostgreSQL itself knows is shown, but for passwords within it, and of commands the program
only. Of settings that it does not know (`app.key`), a value is shown that can be no secret: a
number, a switch, a word of an enumeration. `primary_conninfo` and the like PostgreSQL shows to
privileged roles only.
"""

import functools
import re
from collections.abc import Mapping

from runs.postgresql_settings import catalogue
from runs.postgresql_settings.ownership import (
    HARMLESS_COMMANDS,
    KNOWN_EXTENSIONS,
    is_command,
)

MASK = "********"

# What a name of a secret contains, in a setting's name and in texts (`PGPASSWORD=x`) alike.
WORDS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "bearer",
    "apikey",
    "api_key",
    "accesskey",
    "access_key",
    "account_key",
    "private_key",
    "privatekey",
    "storage_key",
    "encryption_key",
    "authorization",
    "signature",
)
# The same as a part of a name: `app.auth`, `pw=x`; within a word they mean something else.
PARTS = frozenset({"auth", "cred", "creds", "pass", "pw", "sas", "sig"})
# Settings of extensions whose values are names and lists of words.
_SHOWN = frozenset(
    {
        "citus.node_conninfo",
        "cron.database_name",
        "cron.host",
        "cron.timezone",
        "basic_archive.archive_directory",
        "pg_partman_bgw.dbname",
        "pg_partman_bgw.role",
        "pgaudit.role",
        "plpgsql.extra_errors",
        "plpgsql.extra_warnings",
        "postgres_fdw.application_name",
    }
)
# Words of enumerations besides those of PostgreSQL's own settings.
_HARMLESS_WORDS = frozenset(
    {
        "(disabled)",
        "basic",
        "csv",
        "enabled",
        "f",
        "function",
        "json",
        "misc",
        "misc_set",
        "n",
        "nested",
        "object",
        "read",
        "relaxed_order",
        "role",
        "row",
        "statement",
        "strict_order",
        "t",
        "text",
        "top",
        "use_column",
        "use_variable",
        "write",
        "xml",
        "y",
        "yaml",
    }
)
_NUMBER = re.compile(
    r"[-+]?\d{1,15}(\.\d{1,15})?([eE][-+]?\d{1,3})?\s?(B|[kMGT]B|us|ms|s|min|h|d|%)?"
)
_PROGRAM = re.compile(r"[\w./+-]{1,200}")
# A name begins where none goes on, and takes all of its letters: each is looked at once. A quote
# that is not closed goes on to the end.
_PAIR = re.compile(
    r"(?<![\w-])([\w-]++[\"']?+\s*+[=:]\s*+)"
    r"('(?:[^'\\]|\\.|'')*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|[^\s'\",;&]++)",
    re.DOTALL,
)
_HEADER = re.compile(r"(?i)(\bauthorization\s*+[=:]\s*+\w++\s++)([^\s'\",;]++)")
_NAME = re.compile(r"[\w-]++")
# `postgresql://user:password@host`.
_URL = re.compile(r"(://[^\s/:@]*+:)([^\s/@]++)(@)")


def masked(name: str, value: str) -> str:
    """The value of a setting without the secrets in it; the same where there are none."""
    lower, plain = name.lower(), value.strip()
    if not plain or plain.lower() in _words():
        return value
    if is_command(lower):
        return _program(plain) if plain not in HARMLESS_COMMANDS else value
    if lower in _known():
        return _hide_pairs(value)
    if _is_hidden(lower, plain):
        return MASK
    return _hide_pairs(value)


def masked_all(settings: Mapping[str, str]) -> dict[str, str]:
    """All settings, each without its secrets."""
    return {name: masked(name, value) for name, value in settings.items()}


def _is_hidden(lower: str, plain: str) -> bool:
    """Whether the value may be a secret as a whole."""
    extension, dot, _own = lower.partition(".")
    if _NUMBER.fullmatch(plain):
        # A PIN is a number, too; `app.token_limit` is none.
        return extension not in KNOWN_EXTENSIONS and _ends_secret(lower)
    if is_secret(lower):
        return True
    return bool(dot) and lower not in _SHOWN and not _is_enumeration(plain)


def is_secret(name: str) -> bool:
    """Whether what has this name is a secret."""
    plain = name.lower().replace("-", "_")
    return any(word in plain for word in WORDS) or not PARTS.isdisjoint(
        re.split(r"[._]", plain)
    )


def _ends_secret(lower: str) -> bool:
    plain = lower.replace("-", "_")
    return plain.endswith(WORDS) or re.split(r"[._]", plain)[-1] in PARTS


def _is_enumeration(plain: str) -> bool:
    choices = [choice.strip() for choice in plain.lower().split(",")]
    return all(choice in _words() or _NUMBER.fullmatch(choice) for choice in choices)


def _program(command: str) -> str:
    """The first word of a command; its arguments, and what is set before it, may be secrets."""
    program, *arguments = command.split(maxsplit=1)
    if not _PROGRAM.fullmatch(program):
        return MASK
    return f"{program} {MASK}" if arguments else program


def _hide_pairs(value: str) -> str:
    without = _PAIR.sub(_masked_pair, _HEADER.sub(rf"\g<1>{MASK}", value))
    return _URL.sub(rf"\g<1>{MASK}\g<3>", without)


def _masked_pair(match: "re.Match[str]") -> str:
    name = _NAME.match(match[1])
    return f"{match[1]}{MASK}" if name and is_secret(name[0]) else match[0]


@functools.cache
def _known() -> frozenset[str]:
    """Settings of PostgreSQL itself, of any version."""
    return frozenset(setting_name.lower() for setting_name in catalogue.all_names())


@functools.cache
def _words() -> frozenset[str]:
    """Switches, and the words of all enumerations of PostgreSQL itself."""
    words = {word.lower() for word in catalogue.all_words()}
    return frozenset(
        {*words, *_HARMLESS_WORDS, "on", "off", "true", "false", "yes", "no"}
    )
