"""Checks settings against the versions that are to run with them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from runs.postgresql_settings import (
    combinations,
    comparability_warnings,
    names,
    ownership,
    secrets,
    unlisted,
    values,
)
from runs.postgresql_settings.catalogue import Setting, is_older, position
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import About, Finding, merged
from runs.wording import gettext_noop as _

_CANNOT_BE = _("%(name)s cannot be “%(value)s” in PostgreSQL %(major)s.")
# (word, first version that has it)
_LISTS: Mapping[str, Mapping[str, str]] = {
    "createrole_self_grant": {"set": "16", "inherit": "16"},
    "debug_io_direct": {"data": "16", "wal": "16", "wal_init": "16"},
    "log_connections": dict.fromkeys(
        ("all", "receipt", "authentication", "authorization", "setup_durations"), "18"
    ),
    "log_destination": {
        "stderr": "9.2",
        "csvlog": "9.2",
        "syslog": "9.2",
        "eventlog": "9.2",
        "jsonlog": "15",
    },
    "restrict_nonsystem_relation_kind": {"view": "9.2", "foreign-table": "9.2"},
    "wal_consistency_checking": dict.fromkeys(
        (
            "all",
            "heap2",
            "heap",
            "btree",
            "hash",
            "gin",
            "gist",
            "sequence",
            "spgist",
            "brin",
            "generic",
        ),
        "10",
    ),
}
# What stands alone in place of a list.
_ALONE: Mapping[str, tuple[str, ...]] = {
    "log_connections": (*unlisted.ON, *unlisted.OFF),
}
_PAGES = (
    "866",
    "874",
    "932",
    "936",
    "949",
    "950",
    *(str(number) for number in range(1250, 1259)),
)
_ENCODINGS = frozenset(
    (
        "abc",
        "alt",
        "big5",
        "euccn",
        "eucjis2004",
        "eucjp",
        "euckr",
        "euctw",
        "gb18030",
        "gbk",
        "johab",
        "koi8",
        "koi8r",
        "koi8u",
        "mskanji",
        "muleinternal",
        "shiftjis",
        "shiftjis2004",
        "sjis",
        "sqlascii",
        "tcvn",
        "tcvn5712",
        "uhc",
        "unicode",
        "utf8",
        "vscii",
        "win",
        *(f"latin{number}" for number in range(1, 11)),
        *(f"iso8859{number}" for number in (*range(1, 11), 13, 14, 15, 16)),
        *(f"{name}{page}" for name in ("win", "windows") for page in _PAGES),
    )
)
_STANDBYS = re.compile(
    r"""(?:(?P<name>(?:"[^"]++")+|[A-Za-z_\u0080-\U0010ffff][\w$]*+|\*)"""
    r"""|(?P<number>\d++)|(?P<mark>[(),]))\s*+"""
)
_STYLE = r"(?:iso|sql|postgres\w*+|german)\s*+"
_ORDER = r"(?:ymd|dmy|mdy|us|(?:non)?euro\w*+)\s*+"
_IDENTIFIER = r"""(?:"[^"]++"|[^\s",]++)\s*+"""
_IDENTIFIERS = rf"(?:{_IDENTIFIER}(?:,\s*+{_IDENTIFIER})*)?"
# What else a value as a whole has to look like.
_SHAPES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"\A\s*+{shape}\Z", re.IGNORECASE | re.ASCII)
    for name, shape in {
        "backtrace_functions": r"[\w,\s]*+",
        "DateStyle": (
            rf"(?:{_STYLE}(?:,\s*+{_ORDER})?|{_ORDER}(?:,\s*+{_STYLE})?|default\s*+)?"
        ),
        "default_table_access_method": r".++",
        "primary_slot_name": r"(?-i:[a-z0-9_]{0,63})",
        "recovery_target": r"(?:immediate)?",
        "recovery_target_lsn": r"(?:[0-9a-f]{1,8}/[0-9a-f]{1,8})?",
        "recovery_target_name": r".{0,63}",
        "recovery_target_time": (
            r"(?:(?!\d{4}-\d\d-\d\d)\D*+\d.*+"
            r"|\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d).*+)?"
        ),
        "search_path": _IDENTIFIERS,
        "synchronized_standby_slots": _IDENTIFIERS,
        "temp_tablespaces": _IDENTIFIERS,
    }.items()
}
_PRIORITY = re.compile(
    r"\A\s*(?:(?P<method>first|any)\s+)?(?P<count>\d+)\s*\(", re.IGNORECASE
)


def findings(value: str, setting: Setting) -> Iterator[Finding]:
    """What the server would refuse in a string that the catalogue takes."""
    say = About(setting.name, setting.major)
    if setting.name in _LISTS and setting.kind == "string":
        yield from _words(value, setting)
    elif setting.name == "client_encoding":
        if re.sub(r"[^a-z0-9]", "", value.lower()) not in _ENCODINGS:
            yield say.error(
                "invalid_encoding", _("There is no encoding “%(value)s”."), value=value
            )
    elif setting.name == "synchronous_standby_names":
        yield from _standbys(value, setting)
    elif setting.name == "password_encryption" and value.strip().lower() == "md5":
        if not is_older(setting.major, "18"):
            yield say.warning(
                "deprecated",
                _("MD5 passwords are deprecated since PostgreSQL 18."),
                _("Use scram-sha-256; users have to set their passwords again."),
            )
    elif setting.name in _SHAPES and not _SHAPES[setting.name].fullmatch(value):
        yield say.error("invalid_choice", _CANNOT_BE, value=value)


def _words(value: str, setting: Setting) -> Iterator[Finding]:
    since = _LISTS[setting.name]
    allowed = [
        word
        for word, first_major in since.items()
        if not is_older(setting.major, first_major)
    ]
    alone = _ALONE.get(setting.name, ())
    if value.strip().lower() in alone:
        return
    words = [word.strip().strip('"').lower() for word in value.split(",")]
    for word in words if value.strip() else ():
        if word not in allowed:
            yield About(setting.name, setting.major).error(
                "invalid_choice",
                _CANNOT_BE,
                _("Choose one of: %(allowed)s."),
                value=word,
                allowed=", ".join((*allowed, *alone[:1], *alone[4:5])),
            )


def _standbys(value: str, setting: Setting) -> Iterator[Finding]:
    """Several synchronous standbys came with 9.6, FIRST and ANY with 10."""
    match, say = _PRIORITY.match(value), About(setting.name, setting.major)
    since = "10" if match and match["method"] else "9.6"
    if match is not None and is_older(setting.major, since):
        yield say.error(
            "syntax_too_new",
            _(
                "PostgreSQL %(major)s does not read %(name)s = %(value)s: it is of %(since)s."
            ),
            _(
                "Give the standbys as a plain list; its first connected one is synchronous."
            ),
            value=value,
            since=since,
        )
    elif value.strip() and not _is_standby_list(
        value, is_plain=is_older(setting.major, "9.6")
    ):
        yield say.error(
            "invalid_standbys",
            _("%(name)s = %(value)s is no list of standbys."),
            _(
                "Write names with commas between them, or FIRST 1 (a, b), or ANY 1 (a, b)."
            ),
            value=value,
        )


def _is_standby_list(value: str, *, is_plain: bool) -> bool:
    if is_plain:
        # Before 9.6 it is a list of identifiers, in which other marks are letters.
        return all(
            len(standby.split()) == 1 or '"' in standby for standby in value.split(",")
        )
    kinds, offset = "", len(value) - len(value.lstrip())
    while offset < len(value):
        standby_match = _STANDBYS.match(value, offset)
        if standby_match is None:
            return False
        is_method = standby_match["name"] is not None and standby_match[
            "name"
        ].lower() in {
            "first",
            "any",
        }
        if standby_match["mark"]:
            kinds += standby_match["mark"]
        elif is_method:
            kinds += "m"
        else:
            kinds += "n" if standby_match["name"] else "0"
        if (
            standby_match["number"]
            and not standby_match["number"].strip("0")
            and not kinds.strip("m0")
        ):
            return False
        offset = standby_match.end()
    return bool(re.fullmatch(r"(?:m?0\([n0](?:,[n0])*\)|[n0](?:,[n0])*)", kinds))


_UNWRITABLE = re.compile(r"[\x00-\x1f]")


def check(
    settings: Mapping[str, str],
    majors: Sequence[str],
    *,
    memory_bytes: int | None = None,
    wal_segment_bytes: int = combinations.WAL_SEGMENT_BYTES,
    for_run: bool = True,
) -> tuple[Finding, ...]:
    """All that is to be said about the settings for those major versions: errors first.

    `memory_bytes` is the machine's, for the sums; None leaves them out. `for_run=False` asks only
    what PostgreSQL itself says, for configurations of others: no word about BenchLab's own
    settings and about comparability_warnings. Raises UnknownVersion.
    """
    findings = list(_twice(settings, majors))
    for major in sorted(majors, key=position):
        findings += _alone(settings, major)
        effective = Effective(settings, major)
        findings += combinations.findings(effective, wal_segment_bytes)
        if memory_bytes is not None:
            findings += combinations.memory_findings(effective, memory_bytes)
        if for_run:
            findings += ownership.findings(effective.given, major)
            findings += _hidden(effective.given, major)
            findings += comparability_warnings.findings(effective)
    if for_run and len(majors) > 1:
        findings += comparability_warnings.across(
            settings, sorted(majors, key=position)
        )
    return merged(findings)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those with which a run cannot start."""
    return tuple(finding for finding in findings if finding.severity == "error")


def _hidden(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    """Settings of extensions that would be stored without their value, and so cannot be applied."""
    for name, value in settings.items():
        is_refused = ownership.runs_command(name, value)
        if (
            "." in name
            and not is_refused
            and secrets.masked(name, value) == secrets.MASK
        ):
            yield About(name, major).error(
                "hidden_value",
                _(
                    "BenchLab hides the value of %(name)s, which may be a secret, from its readers."
                ),
                _(
                    "Leave %(name)s out. Numbers, switches and words of enumerations can be shown."
                ),
            )


def _alone(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    """What each name and value is worth, on its own."""
    for name, value in settings.items():
        wrong = names.problem(name, value, major)
        if wrong is not None:
            yield wrong
        if wrong is None or wrong.severity == "warning":
            yield from _value(name, value, major)


def _value(name: str, value: str, major: str) -> Iterator[Finding]:
    if _UNWRITABLE.search(value):
        yield About(name, major).error(
            "not_one_line",
            _("The value of %(name)s must be one line without control characters."),
        )
    if name.lower() in unlisted.IN_VAIN:
        message = _(
            "%(name)s belongs to a session: in a configuration it has no effect."
        )
        yield About(name, major).warning("without_effect", message, _("Leave it out."))
    setting = names.known(name, major)
    if setting is None:
        return
    try:
        values.parse(value, setting)
    except values.BadValue as bad:
        yield bad.finding
    else:
        yield from findings(value, setting)
        if unlisted.depends_on_the_build(setting, value):
            message = _(
                "A server takes %(name)s = %(value)s or not by its build or machine."
            )
            remedy = _(
                "Without such a library, locale, time zone or stack it does not start."
            )
            yield About(name, major).warning("by_build", message, remedy, value=value)


def _twice(settings: Mapping[str, str], majors: Sequence[str]) -> Iterator[Finding]:
    """Names are the same in any case, so one of two spellings would be lost."""
    spelling_of: dict[str, str] = {}
    for name in settings:
        other_spelling = spelling_of.setdefault(name.lower(), name)
        if other_spelling != name:
            yield Finding(
                "error",
                "given_twice",
                name,
                tuple(majors),
                _("%(name)s and %(other)s are the same setting."),
                {"name": name, "other": other_spelling, "major": ", ".join(majors)},
                _("Keep one of them."),
            )
