"""Raw output of a tool in place of figures: read by the tool's adapter, and kept as it came."""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from runs.api import upload_limits as limits
from runs.api.uploads.fields import Reader
from runs.execution.reporter import ArtifactData, Note
from runs.services.errors import Fault
from runs.services.uploads import GivenMeasurement
from runs.tools import reader, registry
from runs.tools.adapter import Adapter, Reading, UnreadableOutput
from runs.wording import gettext_noop, put, wording_of

Files = Mapping[str, bytes | str]
EXIT_STATUS = "exit_status"
STATUS = re.compile(r"-?[0-9]{1,9}")
INSTEAD = ("measurements", "series", "status")
# What an output says in full. A script it names by its file, and of a rate only that there was one.
EXACT = {"query_mode", "connection", "max_tries"}


def files(run: Reader) -> Files:
    """The files of `raw`: a text is standard output; empty without `raw`."""
    at, value = f"{run.at}/raw", run.body.get("raw")
    if isinstance(value, str):
        return {"stdout": value} if run.is_storable(value, at, most=10**8) else {}
    given = run.mapping("raw", or_text=True)
    if given is None:
        return {}
    found = {}
    for name, sent in given.body.items():
        pointer = f"{at}/{name[:100]}"
        content = str(sent) if type(sent) is int else sent  # the exit status
        if type(content) is not str:
            run.faults.add(pointer, "not_a_string", _("Not a string."))
        elif run.is_storable(name, pointer, most=100) and _is_name(run, name, pointer):
            found[name] = content
    _check_exit_status(run, found)
    if not found or len(found) > limits.MOST_FILES:
        run.fault("raw", "required", _("Give the output of the tool, up to 200 files."))
    return found


def named(run: Reader, files: Files) -> Files:
    """The parts of a form, each a file with a name that can be one."""
    _check_exit_status(run, files)
    return {
        name: content
        for name, content in files.items()
        if _is_name(run, name, f"{run.at}/raw/{name}")
    }


def _check_exit_status(run: Reader, files: Files) -> None:
    """Anything but a number would look like a status that was not recorded."""
    given = files.get(EXIT_STATUS, "")
    text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
    if text.strip() and not STATUS.fullmatch(text.strip()):
        message = _("Not an exit status, which is a whole number such as 0 or 143.")
        run.fault(f"raw/{EXIT_STATUS}", "not_a_number", message)


def _is_name(run: Reader, name: str, pointer: str) -> bool:
    """Whether it can be the end of a file's address: visible, and no way up or nowhere."""
    if name.isprintable() and not {"", ".", ".."} & set(name.split("/")):
        return True
    message = _("Not a file's name: give visible characters, and no part that is empty, . or ..")
    run.faults.add(pointer, "not_a_name", message)
    return False


def read(run: Reader, described: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """What the output says of the run, as fields of it; what the uploader says must not differ."""
    adapter = registry.find(described["tool_name"]) if described["tool_name"] else None
    reading = _reading(run, adapter, files)
    for name in INSTEAD:
        if run.body.get(name) is not None:
            run.fault(name, "either_or", _("It is read from the raw output: leave it out."))
    reason = run.text("reason", most=2000)
    if reading is None:
        return {"status": "failed"}
    _refuse_differences(run, described, reading)
    failure = reading.failure
    return {
        "status": reading.status,
        "code": _code(reading),
        "message": put(failure) if failure else reason,
        "wording": failure,
        "measurements": tuple(GivenMeasurement(**vars(each)) for each in reading.measurements),
        "series": reading.series,
        "notes": _notes(reading),
        "tool_name": reading.tool_name,
        "tool_version": (reading.tool_version or described["tool_version"])[:40],
        "server_version": (described["server_version"] or reading.server_version or "")[:40],
        "levels": {**reading.levels, **described["levels"]},
        "workload": {
            **reading.workload,
            **described["workload"],
            # Levels that describe a workload replace what was read.
            **{
                name: each for name, each in described["levels"].items() if name in reading.workload
            },
        },
        "labels": {**reading.labels, **described["labels"]},
        "files": tuple(
            ArtifactData(name, content.encode() if isinstance(content, str) else content)
            for name, content in files.items()
        ),
    }


def _reading(run: Reader, adapter: Adapter | None, files: Files) -> Reading | None:
    if adapter is None:
        known = ", ".join(each.name for each in registry.every())
        message = _("Name the tool that wrote the raw output; known are: %(known)s.")
        run.fault("tool", "tool_unknown", message % {"known": known})
        return None
    try:
        return reader.read(adapter, files)
    except UnreadableOutput as unreadable:
        sentences = (put(each, _) for each in (unreadable.wording, unreadable.remedy))
        run.faults.append(Fault(f"{run.at}/raw", unreadable.code, *sentences))
        return None


def _refuse_differences(run: Reader, described: Mapping[str, Any], reading: Reading) -> None:
    levels, workload = described["levels"], described["workload"]
    stated = dict.fromkeys(levels, "levels") | dict.fromkeys(workload, "workload")
    exact = EXACT & stated.keys() & reading.workload.keys()
    found = [
        *(
            (f"levels/{name}", reading.levels[name], levels[name])
            for name in levels
            if name in reading.levels
        ),
        *(
            (f"{stated[name]}/{name}", reading.workload[name], described[stated[name]][name])
            for name in exact
        ),
    ]
    differing = [(*each, "level_differs") for each in found if each[1] != each[2]]
    for place, version, given in (
        ("postgresql/version", reading.server_version, described["server_version"]),
        ("tool/version", reading.tool_version, described["tool_version"]),
    ):
        if given and version and not f"{version}.".startswith(f"{given}."):
            differing.append((place, version, given, "version_differs"))
    for place, read, given, code in differing:
        message = _("The output says %(read)s, not %(given)s.") % {"read": read, "given": given}
        run.fault(place, code, message)


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
