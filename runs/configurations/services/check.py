"""Checks the settings that a user writes: by line, for each version."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.configurations.services import fitted_configurations
from runs.configurations.services.contents import Content
from runs.configurations.services.fitted_configurations import words
from runs.models import Server
from runs.postgresql_settings import combinations, fitting, units, validation, values
from runs.postgresql_settings.catalogue import MAJORS, UNRELEASED, canonical, setting
from runs.postgresql_settings.combinations import Machine
from runs.postgresql_settings.conf_text import ConfFile, Entry
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import Finding, merged
from runs.postgresql_settings.fitting import Fitted

MOST_CHARACTERS = 64 * 1024
MOST_SETTINGS = 500
# A remark on a setting that a run leaves out or writes otherwise, and a server does not take.
AS_WRITTEN = "not_as_written"
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
        if (
            self.line is None or not self.name
        ):  # an unknown setting names its line itself
            return self.message
        values = {"line": self.line, "message": self.message}
        return _("Line %(line)d: %(message)s") % values


@dataclass(frozen=True)
class Start:
    """Whether a version starts: with the settings as they are written, and with those of a run.

    `as_written` are the errors of the first, `of_run` those of what BenchLab makes of them.
    """

    major: str
    as_written: tuple[Finding, ...]
    of_run: tuple[Finding, ...]


@dataclass(frozen=True)
class Given:
    """A setting as it was read; `amount` is that of a number without a unit, else empty."""

    name: str
    value: str
    amount: str


@dataclass(frozen=True)
class Sentence:
    """One sentence of the answer; `tone` is `success`, `warning` or `error`."""

    tone: str
    text: str


@dataclass(frozen=True)
class Checked:
    """The result: remarks (errors first, then by line), and what each version gets.

    `form` is that in which the text was read, `entries` are the settings that it gives.
    """

    content: Content
    remarks: tuple[Remark, ...]
    fitted: tuple[Fitted, ...]
    starts: tuple[Start, ...] = ()
    form: str = ""
    entries: tuple[Entry, ...] = ()

    @property
    def given(self) -> tuple[Given, ...]:
        """The settings of the text, with what a number of blocks or kilobytes amounts to."""
        major = self.fitted[-1].major if self.fitted else MAJORS[-1]
        return tuple(
            Given(entry.name, entry.value, _amount(entry.name, entry.value, major))
            for entry in self.entries
        )

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The answer to both questions: the file there, and a run here."""
        return tuple(_sentences(self))

    @property
    def read_as(self) -> str:
        """What the text was taken for, and how many settings it gives."""
        words = {"form": self.form, "number": len(self.entries)}
        message = ngettext(
            "Read as %(form)s: %(number)d setting.",
            "Read as %(form)s: %(number)d settings.",
            len(self.entries),
        )
        return message % words if self.form else ""

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
    machine: Machine | None = None,
) -> Checked:
    """Check what a postgresql.conf says (`shared.reading`) for the versions."""
    content = Content(dict(file.settings), tuple(initdb_options), written_for)
    checked = check(content, majors, memory_bytes=memory_bytes, machine=machine)
    lines = {entry.name.lower(): entry.line for entry in file.entries}
    at_lines = [
        replace(remark, line=lines.get(canonical(remark.name).lower()))
        for remark in checked.remarks
    ]
    remarks = [*_file_remarks(file), *at_lines]
    return replace(
        checked,
        remarks=tuple(sorted(remarks, key=_place)),
        form=_(file.form),
        entries=tuple(file.entries),
    )


def check(
    content: Content,
    majors: Sequence[str],
    *,
    memory_bytes: int | None = None,
    machine: Machine | None = None,
) -> Checked:
    """Check settings for the versions. Raises UnknownVersion."""
    machine = machine or Machine()
    fitted = tuple(
        fitted_configurations.fitted(content, major, memory_bytes=memory_bytes)
        for major in majors
    )
    of_machine = [
        _check_machine(version.settings, version.major, machine) for version in fitted
    ]
    starts = tuple(
        Start(
            version.major,
            _check_untouched(content, version.major, memory_bytes, machine),
            (*version.errors, *validation.errors(machine_findings)),
        )
        for version, machine_findings in zip(fitted, of_machine, strict=True)
    )
    remarks = [
        *map(_finding_remark, fitting.merged_findings(fitted)),
        *map(_finding_remark, merged(chain.from_iterable(of_machine))),
        *_start_remarks(starts),
        *map(_finding_remark, fitting.across(fitted)),
        *_translation_remarks(fitted),
        *_option_remarks(content),
    ]
    return Checked(content, tuple(remarks), fitted, starts)


def memory_of(server: Server | None) -> int | None:
    """The memory of a server, if it is known."""
    return server.hardware.memory_bytes if server and server.hardware else None


def machine_of(server: Server | None) -> Machine:
    """What else is known of a server's machine."""
    if server is None:
        return Machine()
    facts = server.environment.facts if server.environment else {}
    pages = str((facts.get("kernel_settings") or {}).get("vm.nr_hugepages", ""))
    threads = server.hardware.threads if server.hardware else None
    return Machine(
        int(pages) if pages.isdecimal() else None,
        threads,
        (facts.get("limits") or {}).get("open_files"),
    )


def _check_machine(
    settings: Mapping[str, str], major: str, machine: Machine
) -> tuple[Finding, ...]:
    return tuple(combinations.machine_findings(Effective(settings, major), machine))


def _place(remark: Remark) -> tuple[bool, bool, int, int]:
    is_error = remark.severity == "error" or remark.code == AS_WRITTEN
    order = {"error": 0, "warning": 1}.get(remark.severity, 2)
    return not is_error, remark.line is None, remark.line or 0, order


def _amount(name: str, value: str, major: str) -> str:
    catalogued = setting(name, major)
    if catalogued is None or not value.strip().isdecimal():
        return ""
    try:
        size = values.convert_to_bytes(value, catalogued)
    except ValueError:
        return ""
    return units.rounded(size, "B") if size else ""


def _check_untouched(
    content: Content, major: str, memory_bytes: int | None, machine: Machine
) -> tuple[Finding, ...]:
    """With which settings, untouched, the version does not start."""
    settings = dict(content.settings)
    findings = validation.check(
        settings, [major], memory_bytes=memory_bytes, for_run=False
    )
    return validation.errors((*findings, *_check_machine(settings, major, machine)))


def _start_remarks(starts: Sequence[Start]) -> Iterator[Remark]:
    """Each setting with which a version does not start, where a run leaves or writes it otherwise.

    An error of both is told as one.
    """
    remarks_of_run = {
        (finding.code, finding.name) for start in starts for finding in start.of_run
    }
    findings = merged(finding for start in starts for finding in start.as_written)
    for finding in findings:
        if (finding.code, finding.name) not in remarks_of_run:
            message, remedy = words(finding)
            yield Remark(
                "warning", AS_WRITTEN, finding.name, finding.majors, message, remedy
            )


def _sentences(checked: Checked) -> Iterator[Sentence]:
    if any(
        remark.severity == "error" and not remark.name for remark in checked.remarks
    ):
        yield Sentence("error", _("The text was not read whole: see the lines below."))
    for majors, names in _refusing(checked.starts).items():
        message = ngettext(
            "%(versions)s: no server starts with this file, for %(number)d setting: %(names)s.",
            "%(versions)s: no server starts with this file, for %(number)d settings: %(names)s.",
            len(names),
        )
        values = {
            "versions": _versions(majors),
            "number": len(names),
            "names": ", ".join(names),
        }
        yield Sentence("error", message % values)
    of_run = [
        start.major for start in checked.starts if start.as_written and not start.of_run
    ]
    if of_run:
        message = _("%(versions)s: translated for a run here, it starts.")
        yield Sentence("success", message % {"versions": _versions(of_run)})
    refused = [start.major for start in checked.starts if start.of_run]
    if refused:
        message = _("%(versions)s: a run here does not start either.")
        yield Sentence("error", message % {"versions": _versions(refused)})
    as_written = [start.major for start in checked.starts if not start.as_written]
    if as_written:
        message = _("%(versions)s: a server starts with this file as it is.")
        yield Sentence("success", message % {"versions": _versions(as_written)})


def _refusing(starts: Sequence[Start]) -> dict[tuple[str, ...], list[str]]:
    """The settings that stop servers, by the versions that they stop together."""
    majors_of: dict[tuple[str, ...], list[str]] = {}
    for start in starts:
        names = tuple(dict.fromkeys(finding.name for finding in start.as_written))
        if names:
            majors_of.setdefault(names, []).append(start.major)
    return {tuple(majors): list(names) for names, majors in majors_of.items()}


def _versions(majors: Sequence[str]) -> str:
    return f"PostgreSQL {', '.join(majors)}"


def _file_remarks(file: ConfFile) -> Iterator[Remark]:
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
            message = (
                _("Line %(line)d sets %(name)s again; the last line counts.") % words
            )
            yield Remark(
                "warning", "set_again", entry.name, (), message, line=entry.line
            )


def _finding_remark(finding: Finding) -> Remark:
    message, remedy = words(finding)
    return Remark(
        finding.severity, finding.code, finding.name, finding.majors, message, remedy
    )


def _translation_remarks(fitted: Iterable[Fitted]) -> Iterator[Remark]:
    """What versions write differently or leave out, each once with its versions."""
    versions_of: dict[tuple[str, str, str], list[str]] = {}
    for fitted_version in fitted:
        for change in fitted_version.changes:
            message = _("becomes %(name)s = %(value)s: %(reason)s") % {
                "name": change.name_to,
                "value": change.value_to,
                "reason": _(change.reason) % change.parameters,
            }
            versions_of.setdefault(
                ("translated", change.name_from, message), []
            ).append(fitted_version.major)
        for lost in fitted_version.left_out:
            message = _("is not applied: %(reason)s") % {
                "reason": _(lost.reason) % lost.parameters
            }
            versions_of.setdefault(("left_out", lost.name_from, message), []).append(
                fitted_version.major
            )
    for (code, name, message), majors in versions_of.items():
        yield Remark("info", code, name, tuple(majors), f"{name} {message}")


def _option_remarks(content: Content) -> Iterator[Remark]:
    for problem in fitted_configurations.option_problems(content.initdb_options):
        yield Remark("error", problem.code, "", (), problem.message, problem.remedy)
