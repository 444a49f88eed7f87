"""Raw output of a tool in place of figures: read by the tool's adapter, and kept as it came."""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from runs.api.uploads.fields import Faults, Object, is_object, is_storable, text
from runs.execution.reporter import ArtifactData, Note
from runs.services.errors import Fault
from runs.services.uploads import GivenMeasurement, GivenSeries
from runs.tools import reader, registry
from runs.tools.adapter import Adapter, Reading, UnreadableOutput
from runs.wording import gettext_noop, put, wording_of

Files = Mapping[str, bytes | str]
MOST_FILES = 200
EXIT_STATUS = "exit_status"
STATUS = re.compile(r"-?[0-9]{1,9}")
INSTEAD = ("measurements", "series", "status")
# What an output says in full. A script it names by its file, and of a rate only that there was one.
EXACT = {"query_mode", "connection", "max_tries"}


def files(given: Object, at: str, faults: Faults) -> Files:
    """The files of `raw`: a text is standard output; empty without `raw`."""
    value = given.get("raw")
    if value is None:
        return {}
    if isinstance(value, str):
        return {"stdout": value} if is_storable(value, f"{at}/raw", faults, most=10**8) else {}
    if not is_object(value, f"{at}/raw", faults, or_text=True):
        return {}
    found = {}
    for name, sent in value.items():
        pointer = f"{at}/raw/{name[:100]}"
        content = str(sent) if type(sent) is int else sent  # the exit status
        if type(content) is not str:
            faults.add(pointer, "not_a_string", _("Not a string."))
        elif is_storable(name, pointer, faults, most=100) and _is_name(name, pointer, faults):
            found[name] = content
    _check_exit_status(found, f"{at}/raw/{EXIT_STATUS}", faults)
    if not found or len(found) > MOST_FILES:
        faults.add(f"{at}/raw", "required", _("Give the output of the tool, up to 200 files."))
    return found


def named(files: Files, at: str, faults: Faults) -> Files:
    """The parts of a form, each a file with a name that can be one."""
    _check_exit_status(files, f"{at}/raw/{EXIT_STATUS}", faults)
    return {
        name: content
        for name, content in files.items()
        if _is_name(name, f"{at}/raw/{name}", faults)
    }


def _check_exit_status(files: Files, pointer: str, faults: Faults) -> None:
    """Anything but a number would look like a status that was not recorded."""
    given = files.get(EXIT_STATUS, "")
    text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
    if text.strip() and not STATUS.fullmatch(text.strip()):
        message = _("Not an exit status, which is a whole number such as 0 or 143.")
        faults.add(pointer, "not_a_number", message)


def _is_name(name: str, pointer: str, faults: Faults) -> bool:
    """Whether it can be the end of a file's address: visible, and no way up or nowhere."""
    if name.isprintable() and not {"", ".", ".."} & set(name.split("/")):
        return True
    message = _("Not a file's name: give visible characters, and no part that is empty, . or ..")
    faults.add(pointer, "not_a_name", message)
    return False


def read(
    given: Object, described: Mapping[str, Any], files: Files, at: str, faults: Faults
) -> dict[str, Any]:
    """What the output says of the run, as fields of it; what the uploader says must not differ."""
    adapter = registry.find(described["tool_name"]) if described["tool_name"] else None
    reading = _reading(adapter, files, at, faults)
    for name in INSTEAD:
        if given.get(name) is not None:
            message = _("It is read from the raw output: leave it out.")
            faults.add(f"{at}/{name}", "either_or", message)
    reason = text(given, "reason", at, faults, most=2000)
    if reading is None:
        return {"status": "failed"}
    _refuse_differences(described, reading, at, faults)
    failure = reading.failure
    return {
        "status": reading.status,
        "code": _code(reading),
        "message": put(failure) if failure else reason,
        "wording": failure,
        "measurements": tuple(
            GivenMeasurement(
                each.metric, each.value, unit=each.unit, direction=each.direction, title=each.title
            )
            for each in reading.measurements
        ),
        "series": tuple(
            GivenSeries(each.name, each.unit, each.start, each.interval, list(each.values))
            for each in reading.series
        ),
        "notes": _notes(reading),
        "tool_name": reading.tool_name,
        "tool_version": (reading.tool_version or described["tool_version"])[:40],
        "server_version": (described["server_version"] or reading.server_version or "")[:40],
        "levels": {**reading.levels, **described["levels"]},
        "workload": {
            **reading.workload,
            **described["workload"],
            **_stated(reading, described["levels"]),
        },
        "labels": {**reading.labels, **described["labels"]},
        "files": tuple(
            ArtifactData(name, content.encode() if isinstance(content, str) else content)
            for name, content in files.items()
        ),
    }


def _stated(reading: Reading, levels: Mapping[str, Any]) -> dict[str, Any]:
    """Levels that describe a workload: they replace what was read."""
    return {name: level for name, level in levels.items() if name in reading.workload}


def _reading(adapter: Adapter | None, files: Files, at: str, faults: Faults) -> Reading | None:
    if adapter is None:
        known = ", ".join(each.name for each in registry.every())
        message = _("Name the tool that wrote the raw output; known are: %(known)s.")
        faults.add(f"{at}/tool", "tool_unknown", message % {"known": known})
        return None
    try:
        return reader.read(adapter, files)
    except UnreadableOutput as unreadable:
        sentences = (put(each, _) for each in (unreadable.wording, unreadable.remedy))
        faults.append(Fault(f"{at}/raw", unreadable.code, *sentences))
        return None


def _refuse_differences(
    described: Mapping[str, Any], reading: Reading, at: str, faults: Faults
) -> None:
    for name, level in described["levels"].items():
        if name in reading.levels and reading.levels[name] != level:
            message = _("The output says %(read)s, not %(given)s.")
            names = {"read": reading.levels[name], "given": level}
            faults.add(f"{at}/levels/{name}", "level_differs", message % names)
    stated = {name: ("levels", level) for name, level in described["levels"].items()}
    stated |= {name: ("workload", level) for name, level in described["workload"].items()}
    for name in EXACT & stated.keys() & reading.workload.keys():
        where, level = stated[name]
        if reading.workload[name] != level:
            message = _("The output says %(read)s, not %(given)s.")
            names = {"read": reading.workload[name], "given": level}
            faults.add(f"{at}/{where}/{name}", "level_differs", message % names)
    for field, read_version, pointer in (
        ("server_version", reading.server_version, "postgresql/version"),
        ("tool_version", reading.tool_version, "tool/version"),
    ):
        given = described[field]
        if given and read_version and not f"{read_version}.".startswith(f"{given}."):
            message = _("The output says %(read)s, not %(given)s.")
            names = {"read": read_version, "given": given}
            faults.add(f"{at}/{pointer}", "version_differs", message % names)


def _code(reading: Reading) -> str:
    if reading.status == "finished":
        return ""
    if reading.status == "partial":
        return "partial"
    return reading.reasons[0].code if reading.reasons else "failed"


def _notes(reading: Reading) -> tuple[dict[str, Any], ...]:
    notes = [Note(each.code, each.message, "info", each.wording) for each in reading.notes]
    notes += [Note(each.code, each.message, "warning", each.wording) for each in reading.reasons]
    if reading.unknown_lines:
        shown = " | ".join(reading.unknown_lines)[:2000]
        wording = wording_of(
            gettext_noop("Lines that BenchLab does not know: %(lines)s"), {"lines": shown}
        )
        notes.append(Note("unknown_lines", put(wording), "info", wording))
    return tuple(each.stored for each in notes)
