"""Passwords within settings: an archive that everybody reads must not have them.

PostgreSQL itself shows `primary_conninfo` and the like to privileged roles only.
"""

import re
from collections.abc import Mapping

MASK = "********"

# The complete value is a secret, or a command that prints one.
_WHOLE = re.compile(r"(^|[._])(ssl_passphrase_command|\w*(password|passphrase|secret|token)\w*)$")
# Names that only mention secrets; their values are switches, words and files.
_HARMLESS = frozenset(
    {
        "password_encryption",
        "ssl_passphrase_command_supports_reload",
        "md5_password_warnings",
        "krb_server_keyfile",
        "passwordcheck.min_password_length",
        "passwordcheck.level",
        "trace_locks",
    }
)
_HARMLESS_VALUES = frozenset({"", "on", "off", "true", "false", "yes", "no"})
_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|[^\s'\",;&]+"
# `password = 'x y'` of a connection string, `PGPASSWORD=x` of a command, `password: x`. A name
# begins at the begin of a word: tried at each letter, a word of 10,000 would take three seconds.
_PAIR = re.compile(
    rf"(?i)(\b\w*(?:password|passwd|passphrase|secret|token|api_?key|access_?key)\w*\s*[=:]\s*)({_QUOTED})"
)
# `postgresql://user:password@host`.
_URL = re.compile(r"(://[^\s/:@]*:)([^\s/@]+)(@)")


def masked(name: str, value: str) -> str:
    """The value of a setting without the secrets in it; the same where there are none."""
    lower = name.lower()
    if lower in _HARMLESS or value.strip().lower() in _HARMLESS_VALUES:
        return value
    if _WHOLE.search(lower) and not value.strip().isdigit():
        return MASK
    return _URL.sub(rf"\g<1>{MASK}\g<3>", _PAIR.sub(rf"\g<1>{MASK}", value))


def masked_all(settings: Mapping[str, str]) -> dict[str, str]:
    """All settings, each without its secrets."""
    return {name: masked(name, value) for name, value in settings.items()}
