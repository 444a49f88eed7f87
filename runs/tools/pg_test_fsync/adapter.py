"""pg_test_fsync's output: operations a second of each way to bring a write to the disk.

Source: src/bin/pg_test_fsync of PostgreSQL 9.2 to 19; the tool prints neither its version nor an
end, which is why the last of its tests is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
    judged,
    quoted,
)
from runs.tools.metrics import Metric
from runs.tools.output import lines_of, output_of, shown, text_named
from runs.wording import gettext_noop as _

_SECTIONS = (
    (re.compile(r"\ACompare file sync methods using one .*:"), known_metrics.ONE_WRITE),
    (
        re.compile(r"\ACompare file sync methods using two .*:"),
        known_metrics.TWO_WRITES,
    ),
    (re.compile(r"\ACompare open_sync with different .*:"), known_metrics.SIZES),
    (
        re.compile(r"\ATest if fsync on non-write file descriptor.*"),
        known_metrics.OTHER_DESCRIPTOR,
    ),
    (re.compile(r"\ANon-[Ss]ync'ed .*writes:"), known_metrics.UNSYNCED),
)
_RATE = re.compile(
    r"\A(?P<method>\S.{0,60}?)\s{1,40}(?P<rate>[0-9]{1,12}[.,][0-9]{3}) ops/sec"
    r"(?:\s{1,40}[0-9]{1,12} usecs/op)?"
)
_UNAVAILABLE = re.compile(r"\A\S.*\sn/a\*?")
_SECONDS = re.compile(r"(?P<seconds>[0-9]{1,6}) seconds? per test")
_VERSION = re.compile(
    r"pg_test_fsync \(PostgreSQL\) (?P<version>[0-9][0-9a-z.]{0,20})(?: .*)?"
)
_SILENT = re.compile(
    r"\(.*|O_DIRECT supported .*|Direct I/O is not supported .*|open_sync sizes\.\)|descriptor\.\)"
    r"|\* This file system and its mount options do not support direct.*|I/O, e\.g\. ext4 .*"
)
_ERROR = re.compile(
    r"\A(?:pg_test_fsync: )?(?:error|fatal|could not|.* failed:).*", re.IGNORECASE
)


@dataclass
class _Tests:
    rates: dict[Metric, float] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    repeated: bool = False
    # Whether a rate has no test above it.
    has_lone_rates: bool = False
    section: Metric | None = None
    sections: list[Metric] = field(default_factory=list)
    seconds: int | None = None
    version: str | None = None
    errors: list[str] = field(default_factory=list)
    unknown_lines: list[str] = field(default_factory=list)


def read(files: Files) -> Reading:
    """Read a run. Raises UnreadableOutput."""
    tests = _read(output_of(files), text_named(files, "stderr"))
    if not tests.sections and not _says_its_name(tests):
        raise UnreadableOutput(
            "not_pg_test_fsync_output",
            _("The output has none of pg_test_fsync's tests."),
            _("Send all that pg_test_fsync printed, unchanged, run with LC_ALL=C."),
        )
    return judged(
        "pg_test_fsync",
        _reasons(tests),
        (
            value
            for metric, rate in tests.rates.items()
            for value in metric.make_values(rate)
        ),
        fatal={"no_beginning", "no_result", "several_results"},
        tool_version=tests.version,
        levels={} if tests.seconds is None else {"seconds_per_test": tests.seconds},
        unknown_lines=shown(tests.unknown_lines),
    )


def _says_its_name(tests: _Tests) -> bool:
    """Whether what came before the tests is this tool's: other programs print errors, too."""
    return (
        tests.seconds is not None
        or tests.version is not None
        or any(error.startswith("pg_test_fsync: ") for error in tests.errors)
    )


def _read(output: str, errors: str) -> _Tests:
    tests = _Tests()
    lines = lines_of(output)
    for line in (*lines.whole, *lines_of(errors).all):
        _take(line.strip(), tests)
    if lines.cut.endswith(" usecs/op"):
        _take(lines.cut.strip(), tests)
    elif lines.cut.strip():
        tests.unknown_lines.append(lines.cut)
    return tests


def _take(line: str, tests: _Tests) -> None:
    if not line or _UNAVAILABLE.fullmatch(line) or _SILENT.fullmatch(line):
        return
    if tests.section and (rate := _RATE.fullmatch(line)):
        metric = tests.section.kind(rate["method"])
        tests.repeated |= metric.name in tests.names
        tests.names.add(metric.name)
        tests.rates[metric] = float(rate["rate"].replace(",", "."))
    elif not tests.sections and _RATE.fullmatch(line):
        tests.has_lone_rates = True
        tests.unknown_lines.append(line)
    elif not (_take_section(line, tests) or _take_setting(line, tests)):
        if line.endswith(":"):
            tests.section = None  # an unknown test's rates are not the last one's
        (tests.errors if _ERROR.fullmatch(line) else tests.unknown_lines).append(line)


def _take_section(line: str, tests: _Tests) -> bool:
    for pattern, section in _SECTIONS:
        if pattern.fullmatch(line):
            tests.repeated |= section in tests.sections
            tests.section = section
            tests.sections.append(section)
            return True
    return False


def _take_setting(line: str, tests: _Tests) -> bool:
    if seconds := _SECONDS.fullmatch(line):
        tests.seconds = int(seconds["seconds"])
    elif version := _VERSION.fullmatch(line):
        tests.version = version["version"]
    return bool(seconds or version)


def _reasons(tests: _Tests) -> Iterator[Reason]:
    if tests.errors:
        yield quoted("tool_error", tests.errors[0])
    if tests.repeated:
        yield SEVERAL_RESULTS
    if not tests.rates:
        yield Reason("no_result", _("No test of the output has a result."))
    elif tests.sections[:1] != [known_metrics.ONE_WRITE] or tests.has_lone_rates:
        yield Reason(
            "no_beginning",
            _("The output begins after the first test, that of one write."),
        )
    elif not any(
        metric.name.startswith(known_metrics.UNSYNCED.name) for metric in tests.rates
    ):
        yield Reason(
            "cut", _("The output ends before the last test, the one without sync.")
        )


ADAPTER = Adapter(
    "pg_test_fsync",
    "pg_test_fsync",
    (
        TakenFile("stdout", _("What pg_test_fsync printed"), required=True),
        TakenFile("stderr", _("Standard error")),
    ),
    read,
)


def one_write(text: str) -> dict[str, float]:
    """Each method of the first section with its rate; what is `n/a` there is left out."""
    rates = _read(text, "").rates.items()
    return {
        metric.name.removeprefix(f"{known_metrics.ONE_WRITE.name}_"): rate
        for metric, rate in rates
        if metric.name.startswith(known_metrics.ONE_WRITE.name)
    }
