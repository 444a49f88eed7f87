"""Raw output of a tool in place of figures: read by the tool's adapter, and kept as it came."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from runs.execution.reporter import ArtifactData, Note
from runs.shared import reading
from runs.shared.api import upload_limits
from runs.shared.errors import Fault
from runs.tools.adapter import Reading
from runs.uploads.api.fields import FieldReader
from runs.uploads.services import GivenMeasurement
from runs.wording import gettext_noop, put, wording_of

Files = Mapping[str, bytes | str]
EXIT_STATUS = "exit_status"
STATUS = re.compile(r"-?[0-9]{1,9}")
INSTEAD = ("measurements", "series", "status")
# What an output says in full. A script it names by its file, and of a rate only that there was one.
EXACT = {"query_mode", "connection", "max_tries"}


def files(run: FieldReader) -> Files:
    """The files of `raw`: a text is standard output; empty without `raw`."""
    place_in_body, value = f"{run.at}/raw", run.body.get("raw")
    if isinstance(value, str):
        return (
            {"stdout": value}
            if run.is_storable(value, place_in_body, most=10**8)
            else {}
        )
    output = run.mapping("raw", or_text=True)
    if output is None:
        return {}
    files_by_name = {}
    for name, sent in output.body.items():
        pointer = f"{place_in_body}/{name[:100]}"
        content = str(sent) if type(sent) is int else sent  # the exit status
        if type(content) is not str:
            run.faults.add(pointer, "not_a_string", _("Not a string."))
        elif run.is_storable(name, pointer, most=100) and _is_name(run, name, pointer):
            files_by_name[name] = content
    _check_exit_status(run, files_by_name)
    if not files_by_name or len(files_by_name) > upload_limits.MOST_FILES:
        run.fault("raw", "required", _("Give the output of the tool, up to 200 files."))
    return files_by_name


def named(run: FieldReader, files: Files) -> Files:
    """The parts of a form, each a file with a name that can be one."""
    _check_exit_status(run, files)
    return {
        name: content
        for name, content in files.items()
        if _is_name(run, name, f"{run.at}/raw/{name}")
    }


def _check_exit_status(run: FieldReader, files: Files) -> None:
    """Anything but a number would look like a status that was not recorded."""
    exit_status = files.get(EXIT_STATUS, "")
    text = (
        exit_status.decode("utf-8", "replace")
        if isinstance(exit_status, bytes)
        else exit_status
    )
    if text.strip() and not STATUS.fullmatch(text.strip()):
        message = _("Not an exit status, which is a whole number such as 0 or 143.")
        run.fault(f"raw/{EXIT_STATUS}", "not_a_number", message)


def _is_name(run: FieldReader, name: str, pointer: str) -> bool:
    """Whether it can be the end of a file's address: visible, and no way up or nowhere."""
    if name.isprintable() and not {"", ".", ".."} & set(name.split("/")):
        return True
    message = _(
        "Not a file's name: give visible characters, and no part that is empty, . or .."
    )
    run.faults.add(pointer, "not_a_name", message)
    return False


def read(
    run: FieldReader,
    described: Mapping[str, Any],
    files: Files,
    outputs: reading.ForeignReader,
) -> dict[str, Any]:
    """What the output says of the run, as fields of it; what the uploader says must not differ."""
    output = _output(run, described["tool_name"], files, outputs)
    for name in INSTEAD:
        if run.body.get(name) is not None:
            run.fault(
                name, "either_or", _("It is read from the raw output: leave it out.")
            )
    reason = run.text("reason", most=2000)
    if output is None:
        return {"status": "failed"}
    _refuse_differences(run, described, output)
    failure = output.failure
    return {
        "status": output.status,
        "code": _code(output),
        "message": put(failure) if failure else reason,
        "wording": failure,
        "measurements": tuple(
            GivenMeasurement(**vars(measurement)) for measurement in output.measurements
        ),
        "series": output.series,
        "notes": _notes(output),
        "tool_name": output.tool_name,
        "tool_version": (output.tool_version or described["tool_version"])[:40],
        "server_version": (described["server_version"] or output.server_version or "")[
            :40
        ],
        "levels": {**output.levels, **described["levels"]},
        "workload": {
            **output.workload,
            **described["workload"],
            # Levels that describe a workload replace what was read.
            **{
                name: level
                for name, level in described["levels"].items()
                if name in output.workload
            },
        },
        "labels": {**output.labels, **described["labels"]},
        "files": tuple(
            ArtifactData(
                name, content.encode() if isinstance(content, str) else content
            )
            for name, content in files.items()
        ),
    }


def _output(
    run: FieldReader, tool_name: str, files: Files, outputs: reading.ForeignReader
) -> Reading | None:
    tool = reading.tool_named(tool_name)
    if not tool:
        tool_names = ", ".join(reading.tools())
        message = _("Name the tool that wrote the raw output; known are: %(known)s.")
        run.fault("tool", "tool_unknown", message % {"known": tool_names})
        return None
    try:
        return outputs.output(tool, files)
    except reading.NotUnderstood as error:
        refusal = error.refusal
        sentences = (put(text, _) for text in (refusal.wording, refusal.remedy))
        run.faults.append(Fault(f"{run.at}/raw", refusal.code, *sentences))
        return None


class _Stated(NamedTuple):
    """What the output says, and what the upload says of the same: at fault with `code`."""

    pointer: str
    read: Any
    stated: Any
    code: str


def _refuse_differences(
    run: FieldReader, described: Mapping[str, Any], output: Reading
) -> None:
    levels, workload = described["levels"], described["workload"]
    stated = dict.fromkeys(levels, "levels") | dict.fromkeys(workload, "workload")
    exact = EXACT & stated.keys() & output.workload.keys()
    comparisons = [
        _Stated(f"levels/{name}", output.levels[name], levels[name], "level_differs")
        for name in levels
        if name in output.levels
    ]
    for name in exact:
        value = described[stated[name]][name]
        pointer = f"{stated[name]}/{name}"
        comparisons.append(
            _Stated(pointer, output.workload[name], value, "level_differs")
        )
    differing = [
        comparison for comparison in comparisons if comparison.read != comparison.stated
    ]
    versions = [
        _Stated(
            "postgresql/version",
            output.server_version,
            described["server_version"],
            "version_differs",
        ),
        _Stated(
            "tool/version",
            output.tool_version,
            described["tool_version"],
            "version_differs",
        ),
    ]
    for version in versions:
        if not version.stated or not version.read:
            continue
        if not f"{version.read}.".startswith(f"{version.stated}."):
            differing.append(version)
    for difference in differing:
        message = _("The output says %(read)s, not %(given)s.") % {
            "read": difference.read,
            "given": difference.stated,
        }
        run.fault(difference.pointer, difference.code, message)


def _code(output: Reading) -> str:
    if output.status == "finished":
        return ""
    if output.status == "partial":
        return "partial"
    return output.reasons[0].code if output.reasons else "failed"


def _notes(output: Reading) -> tuple[dict[str, Any], ...]:
    notes = [
        Note(output_note.code, output_note.message, "info", output_note.wording)
        for output_note in output.notes
    ]
    notes += [
        Note(output_note.code, output_note.message, "warning", output_note.wording)
        for output_note in output.reasons
    ]
    if output.unknown_lines:
        unknown_lines = " | ".join(output.unknown_lines)[:2000]
        wording = wording_of(
            gettext_noop("Lines that BenchLab does not know: %(lines)s"),
            {"lines": unknown_lines},
        )
        notes.append(Note("unknown_lines", put(wording), "info", wording))
    return tuple(note.stored for note in notes)
