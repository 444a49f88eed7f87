"""HammerDB's log: the result of a timed TPROC-C run, its virtual users, and the time profile.

Sources: the manual (CLI, "Timed test", "Time profiling with xtprof") and published logs of 3.1 to
6.0. To 3.1 the result gives TPM before NOPM. In the profile of 4.x and 5.0 the summary counts each
call twice: calls are those of the users. A profile's file has those of earlier runs above its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runs.patterns import re

_COUNT = "[0-9]{1,15}"
_MS = r"[0-9]{1,15}\.[0-9]{1,6}"
_PREFIX = re.compile(
    r"(?:hammerdb>)?\s{0,4}(?:Vuser (?P<user>[0-9]{1,6}):)?(?P<said>.*)"
)
_RESULTS = (
    re.compile(
        rf"TEST RESULT : System achieved (?P<nopm>{_COUNT}) NOPM from (?P<tpm>{_COUNT}) "
        r"(?P<database>.{1,40}) TPM"
    ),
    re.compile(
        rf"TEST RESULT : System achieved (?P<tpm>{_COUNT}) (?P<database>.{{1,40}}) TPM "
        rf"at (?P<nopm>{_COUNT}) NOPM"
    ),
)
_SETTINGS = re.compile(
    r"(?P<users>[0-9]{1,9}) Active Virtual Users configured"
    r"|Beginning rampup time of (?P<rampup>[0-9]{1,9}) minutes"
    r"|Timing test period of (?P<minutes>[0-9]{1,9}) in minutes"
    r"|HammerDB CLI v(?P<version>[0-9.]{1,20})"
    r"|DBVersion:(?P<release>[0-9]{1,3}(?:\.[0-9]{1,3}){0,2})"
    r"|Benchmark Run jobid=(?P<jobid>[0-9A-F]{8,40})"
)
# What was asked for, in answer to `diset`.
_ASKED = re.compile(
    rf"Changed tpcc:pg_(?P<name>\w{{1,40}}) from \S{{1,40}} to (?P<value>{_COUNT}) for .*"
    rf"|Value (?P<kept>{_COUNT}) for tpcc:pg_(?P<same>\w{{1,40}}) is the same .*"
)
_NAMES = {"count_ware": "warehouses", "rampup": "rampup", "duration": "minutes"}
_FAILED_USER = re.compile(r"(?P<user>[0-9]{1,9}):FINISHED FAILED")
_ERROR = re.compile(r"Error in Virtual User [0-9]{1,9}: ?.*")
_SUMMARY = re.compile(
    r">>>>> SUMMARY OF (?P<users>[0-9]{1,9}) ACTIVE VIRTUAL USERS : .*"
)
_REPORT = re.compile(
    r"(?:\w{1,20} )?Hammerdb Time Profile (?:Log|Report) @ .*", re.IGNORECASE
)
_USER_PROFILE = re.compile(r">>>>> VIRTUAL USER [0-9]{1,9} : .*")
_PROCEDURE = re.compile(r">>>>> PROC: (?P<name>[A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20})?)")
_PROFILE_VALUE = re.compile(
    rf"(?P<name>[A-Z0-9]{{2,5}}): (?P<value>{_MS}|{_COUNT})(?:ms|%)?"
)
_QUERIES = re.compile(
    r"\A(?:Executing Query [0-9]{1,3} |query [0-9]{1,3} completed in "
    r"|Completed [0-9]{1,6} query set|Geometric mean of query times)"
)
_SILENT = re.compile(
    r"\A(?:RUNNING|FINISHED SUCCESS|ALL VIRTUAL USERS COMPLETE|Processing .*|Rampup .*"
    r"|[0-9]+ *\.\.\.,|Test complete, .*|Timer: .*|Logging activated|to /.*|.* tpm"
    r"|Vuser [0-9]+ created.*|[0-9]+ Virtual Users Created.*|vudestroy success|Taking .*|\+[-+]*"
    r"|Timestamp [0-9]+ @ .*|Copyright .*|Type \"help\".*|Initialized .*"
    r"|Changed .*|Value .*|Database set .*|Script .*|The xml is .*"
    r"|Hammerdb Log @ .*|(?:Checkpoint|Vacuum|Transaction Counter|Logging activated) .*|[0-9]+"
    r"|Initializing xtprof time profiler|Gathering timing data .*|Calculating timings\.\.\."
    r"|Writing timing data to .*|Benchmark set to .*"
    r"|TRANSACTION RESPONSE TIMES|TRANSACTION COUNT|HAMMERDB RESULT"
    r"|[0-9A-F]{24}|[-0-9]{10} [0-9:]{8})"  # of a job's result: its id and time
)
_OWN = re.compile(
    r"\A(?:hammerdb>|Vuser [0-9]{1,6}[: ])|virtual users|hammerdb|vudestroy|xtprof",
    re.IGNORECASE,
)


@dataclass
class Log:
    """The lines, sorted. `profile` has the values of each procedure: calls, and times in ms."""

    results: list[dict[str, str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    failed_users: set[str] = field(default_factory=set)
    profile: dict[str, dict[str, float]] = field(default_factory=dict)
    # Lines that no other program prints: of others a number or a rule is like one of these, too.
    own_lines: int = 0
    unknown_lines: list[str] = field(default_factory=list)
    calls: dict[str, float] = field(
        default_factory=dict
    )  # of all users that are printed
    printed_users: int = 0
    in_summary: bool = False
    procedure: str | None = None


def read_lines(lines: tuple[str, ...], log: Log) -> None:
    """Sort lines into the log."""
    for line in lines:
        _take(line.strip(), log)


def is_result(line: str) -> bool:
    """Whether a line is a complete result."""
    return any(pattern.fullmatch(_message(line.strip())) for pattern in _RESULTS)


def _message(line: str) -> str:
    match = _PREFIX.fullmatch(line)
    return match["said"].strip() if match else line


def _take(line: str, log: Log) -> None:
    text = _message(line)
    if not text:
        return
    is_own = True
    if result := _RESULTS[0].fullmatch(text) or _RESULTS[1].fullmatch(text):
        log.results.append(result.groupdict())
    elif setting := _SETTINGS.fullmatch(text):
        log.values.update(
            {k: v for k, v in setting.groupdict().items() if v is not None}
        )
    elif match := _ASKED.fullmatch(text):
        if name := _NAMES.get(match["name"] or match["same"]):
            log.values[name] = match["value"] or match["kept"]
    elif text == "FINISHED FAILED" or _ERROR.fullmatch(text):
        _take_failure(line, text, log)
    elif _QUERIES.match(text):
        log.values.setdefault("benchmark", "TPROC-H")
    elif not _take_profile(text, log):
        is_own = _OWN.search(line) is not None
        if not _SILENT.fullmatch(text):
            log.unknown_lines.append(line)
    log.own_lines += is_own


def _take_failure(line: str, text: str, log: Log) -> None:
    if failed := _FAILED_USER.search(line):
        log.failed_users.add(failed["user"])
    else:
        log.errors.append(text)


def _take_profile(text: str, log: Log) -> bool:
    if _REPORT.fullmatch(text):
        log.profile.clear()
        _forget_users(log)
    elif summary := _SUMMARY.fullmatch(text):
        log.in_summary = True
        if int(summary["users"]) != log.printed_users:
            _forget_users(log)
    elif _USER_PROFILE.fullmatch(text):
        log.in_summary, log.procedure = False, None
        log.printed_users += 1
    elif procedure := _PROCEDURE.fullmatch(text):
        log.procedure = procedure["name"]
    elif text.startswith(("CALLS: ", "P99: ")):
        _take_times(text, log)
    else:
        return False
    return True


def _forget_users(log: Log) -> None:
    log.calls.clear()
    log.printed_users = 0


def _take_times(text: str, log: Log) -> None:
    if not log.procedure:
        return
    profile_values = {
        value_match["name"].lower(): float(value_match["value"])
        for value_match in _PROFILE_VALUE.finditer(text)
    }
    if not log.in_summary:
        calls = log.calls.get(log.procedure, 0.0) + profile_values.get("calls", 0.0)
        log.calls[log.procedure] = calls
        return
    if log.calls.get(log.procedure):
        profile_values |= (
            {"calls": log.calls[log.procedure]} if "calls" in profile_values else {}
        )
    log.profile.setdefault(log.procedure, {}).update(profile_values)
