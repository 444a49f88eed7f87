"""Checks the settings that a user writes: by line, for each version."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from runs.configurations.services import fitted_configurations
from runs.configurations.services.contents import Content
from runs.configurations.services.fitted_configurations import words
from runs.models import Server
from runs.postgresql_settings import fitting
from runs.postgresql_settings.catalogue import MAJORS, UNRELEASED, canonical
from runs.postgresql_settings.conf_text import ConfFile, Entry
from runs.postgresql_settings.findings import Finding
from runs.postgresql_settings.fitting import Fitted

MOST_CHARACTERS = 64 * 1024
MOST_SETTINGS = 500
OFFERED_MAJORS = tuple(major for major in MAJORS if major not in UNRELEASED)


@dataclass(frozen=True)
class Remark:
    """One remark, in the reader's language. `line` is None if it belongs to no line.

    `severity` is `error` (the server or BenchLab refuses it), `warning` or `info`.
    """

    severity: str
    code: str
    name: str
    majors: tuple[str, ...]
    message: str
    remedy: str = ""
    line: int | None = None

    @property
    def sentence(self) -> str:
        """The message with its line."""
        if self.line is None or not self.name:  # an unknown setting names its line itself
            return self.message
        values = {"line": self.line, "message": self.message}
        return _("Line %(line)d: %(message)s") % values


@dataclass(frozen=True)
class Checked:
    """The result: remarks in the order of the lines, and what each version gets."""

    content: Content
    remarks: tuple[Remark, ...]
    fitted: tuple[Fitted, ...]

    @property
    def errors(self) -> tuple[Remark, ...]:
        """The errors."""
        return tuple(remark for remark in self.remarks if remark.severity == "error")


def check_file(
    file: ConfFile,
    majors: Sequence[str],
    *,
    initdb_options: Sequence[str] = (),
    written_for: str = "",
    memory_bytes: int | None = None,
) -> Checked:
    """Check what a postgresql.conf says (`shared.reading`) for the versions."""
    content = Content(dict(file.settings), tuple(initdb_options), written_for)
    checked = check(content, majors, memory_bytes=memory_bytes)
    lines = {entry.name.lower(): entry.line for entry in file.entries}
    at_lines = [
        replace(remark, line=lines.get(canonical(remark.name).lower()))
        for remark in checked.remarks
    ]
    remarks = [*_of_file(file), *at_lines]
    return Checked(content, tuple(sorted(remarks, key=_place)), checked.fitted)


def check(content: Content, majors: Sequence[str], *, memory_bytes: int | None = None) -> Checked:
    """Check settings for the versions. Raises UnknownVersion."""
    fitted = tuple(
        fitted_configurations.fitted(content, major, memory_bytes=memory_bytes) for major in majors
    )
    remarks = [
        *map(_of_finding, fitting.merged_findings(fitted)),
        *map(_of_finding, fitting.across(fitted)),
        *_of_translation(fitted),
        *_of_options(content),
    ]
    return Checked(content, tuple(remarks), fitted)


def memory_of(server: Server | None) -> int | None:
    """The memory of a server, if it is known."""
    return server.hardware.memory_bytes if server and server.hardware else None


def _place(remark: Remark) -> tuple[bool, int, int]:
    order = {"error": 0, "warning": 1}.get(remark.severity, 2)
    return remark.line is None, remark.line or 0, order


def _of_file(file: ConfFile) -> Iterator[Remark]:
    for severity, faults in (("error", file.faults), ("warning", file.left_out)):
        for fault in faults:
            message = _(fault.message) % fault.parameters
            yield Remark(severity, fault.code, "", (), message, line=fault.line)
    yield from _replaced(file.entries)


def _replaced(entries: Sequence[Entry]) -> Iterator[Remark]:
    last_entry_of = {entry.name: entry for entry in entries}
    for entry in entries:
        winner = last_entry_of[entry.name]
        if winner is not entry:
            words = {"line": winner.line, "name": entry.name}
            message = _("Line %(line)d sets %(name)s again; the last line counts.") % words
            yield Remark("warning", "set_again", entry.name, (), message, line=entry.line)


def _of_finding(finding: Finding) -> Remark:
    message, remedy = words(finding)
    return Remark(finding.severity, finding.code, finding.name, finding.majors, message, remedy)


def _of_translation(fitted: Iterable[Fitted]) -> Iterator[Remark]:
    """What versions write differently or leave out, each once with its versions."""
    versions_of: dict[tuple[str, str, str], list[str]] = {}
    for fitted_version in fitted:
        for change in fitted_version.changes:
            message = _("becomes %(name)s = %(value)s: %(reason)s") % {
                "name": change.name_to,
                "value": change.value_to,
                "reason": _(change.reason) % change.parameters,
            }
            versions_of.setdefault(("translated", change.name_from, message), []).append(
                fitted_version.major
            )
        for lost in fitted_version.left_out:
            message = _("is not applied: %(reason)s") % {"reason": _(lost.reason) % lost.parameters}
            versions_of.setdefault(("left_out", lost.name_from, message), []).append(
                fitted_version.major
            )
    for (code, name, message), majors in versions_of.items():
        yield Remark("info", code, name, tuple(majors), f"{name} {message}")


def _of_options(content: Content) -> Iterator[Remark]:
    for problem in fitted_configurations.option_problems(content.initdb_options):
        yield Remark("error", problem.code, "", (), problem.message, problem.remedy)
