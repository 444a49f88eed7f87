"""What a check says about settings: one finding each, in words that pages can translate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from runs.postgresql_settings.catalogue import position

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One problem of one setting in one or more versions.

    `message` and `remedy` are English templates with named parameters: translate the template,
    then put `parameters` in (`gettext(finding.message) % finding.parameters`). An error is
    something that the server or BenchLab refuses; a warning leaves the decision to a person.
    """

    severity: Severity
    code: str
    name: str
    majors: tuple[str, ...]
    message: str
    parameters: Mapping[str, str]
    remedy: str = ""


@dataclass(frozen=True)
class About:
    """A setting in a version, of which something is to be said. The texts may name both."""

    name: str
    major: str

    def error(
        self, code: str, message: str, remedy: str = "", **parameters: str
    ) -> Finding:
        """What the server or BenchLab refuses."""
        values = {"name": self.name, "major": self.major, **parameters}
        return Finding("error", code, self.name, (self.major,), message, values, remedy)

    def warning(
        self, code: str, message: str, remedy: str = "", **parameters: str
    ) -> Finding:
        """What is left to a person to decide."""
        return replace(
            self.error(code, message, remedy, **parameters), severity="warning"
        )


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for all versions that say the same, errors first, in the order of their coming.

    The parameter `major` names all of these versions.
    """
    same: dict[object, list[Finding]] = {}
    for finding in findings:
        parameters = sorted(
            (k, v) for k, v in finding.parameters.items() if k != "major"
        )
        key = (
            finding.severity,
            finding.code,
            finding.name,
            finding.message,
            tuple(parameters),
        )
        same.setdefault(key, []).append(finding)
    joined = (_joined(group) for group in same.values())
    return tuple(sorted(joined, key=lambda finding: finding.severity != "error"))


def _joined(group: list[Finding]) -> Finding:
    majors = tuple(
        sorted({m for finding in group for m in finding.majors}, key=position)
    )
    parameters = {**group[0].parameters, "major": ", ".join(majors)}
    return replace(group[0], majors=majors, parameters=parameters)
