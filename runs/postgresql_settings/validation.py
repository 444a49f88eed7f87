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
    word_lists,
)
from runs.postgresql_settings.catalogue import position
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import Finding, Severity, merged
from runs.wording import gettext_noop as _

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
    found = list(_twice(settings, majors))
    for major in sorted(majors, key=position):
        found += _alone(settings, major)
        effective = Effective(settings, major)
        found += combinations.findings(effective, wal_segment_bytes)
        if memory_bytes is not None:
            found += combinations.memory_findings(effective, memory_bytes)
        if for_run:
            found += ownership.findings(effective.given, major)
            found += _hidden(effective.given, major)
            found += comparability_warnings.findings(effective)
    if for_run and len(majors) > 1:
        found += comparability_warnings.across(settings, sorted(majors, key=position))
    return tuple(sorted(merged(found), key=lambda finding: finding.severity != "error"))


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those with which a run cannot start."""
    return tuple(finding for finding in findings if finding.severity == "error")


def _hidden(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    """Settings of extensions that would be stored without their value, and so cannot be applied."""
    for name, value in settings.items():
        is_refused = ownership.runs_command(name, value)
        if "." in name and not is_refused and secrets.masked(name, value) == secrets.MASK:
            yield Finding(
                "error",
                "hidden_value",
                name,
                (major,),
                _("BenchLab hides the value of %(name)s, which may be a secret, from its readers."),
                {"name": name, "major": major},
                _("Leave %(name)s out. Numbers, switches and words of enumerations can be shown."),
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
        yield _finding(
            "error",
            "not_one_line",
            name,
            major,
            _("The value of %(name)s must be one line without control characters."),
        )
    if name.lower() in unlisted.IN_VAIN:
        message = _("%(name)s belongs to a session: in a configuration it has no effect.")
        yield _finding("warning", "without_effect", name, major, message, _("Leave it out."))
    setting = names.known(name, major)
    if setting is None:
        return
    try:
        values.parse(value, setting)
    except values.BadValue as bad:
        parameters = {**bad.parameters, "name": setting.name}
        yield Finding(
            "error", bad.code, setting.name, (major,), bad.message, parameters, bad.remedy
        )
    else:
        yield from word_lists.findings(value, setting)
        if unlisted.depends_on_the_build(setting, value):
            message = _("A server takes %(name)s = %(value)s or not by its build or machine.")
            remedy = _("Without such a library, locale, time zone or stack it does not start.")
            yield _finding("warning", "by_build", name, major, message, remedy, value=value)


def _twice(settings: Mapping[str, str], majors: Sequence[str]) -> Iterator[Finding]:
    """Names are the same in any case, so one of two spellings would be lost."""
    seen: dict[str, str] = {}
    for name in settings:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield Finding(
                "error",
                "given_twice",
                name,
                tuple(majors),
                _("%(name)s and %(other)s are the same setting."),
                {"name": name, "other": other, "major": ", ".join(majors)},
                _("Keep one of them."),
            )


def _finding(
    severity: Severity,
    code: str,
    name: str,
    major: str,
    message: str,
    remedy: str = "",
    **parameters: str,
) -> Finding:
    given = {"name": name, "major": major, **parameters}
    return Finding(severity, code, name, (major,), message, given, remedy)
