"""What a server of one version would run with: the settings given, else its defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from runs.postgresql_settings import secrets, values
from runs.postgresql_settings.catalogue import Setting, position, setting

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

    @property
    def english(self) -> str:
        """Message and remedy in English, for logs and the command line."""
        text = f"{self.message} {self.remedy}" if self.remedy else self.message
        return text % self.parameters


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for all versions that say the same, in the order in which they came.

    The parameter `major` names all of these versions.
    """
    same: dict[object, list[Finding]] = {}
    for finding in findings:
        others = sorted((k, v) for k, v in finding.parameters.items() if k != "major")
        key = (finding.severity, finding.code, finding.name, finding.message, tuple(others))
        same.setdefault(key, []).append(finding)
    return tuple(_joined(group) for group in same.values())


def _joined(group: list[Finding]) -> Finding:
    majors = tuple(sorted({m for finding in group for m in finding.majors}, key=position))
    parameters = {**group[0].parameters, "major": ", ".join(majors)}
    return replace(group[0], majors=majors, parameters=parameters)


class Effective:
    """Given settings over the version's defaults.

    Values that the server would refuse count as not given: another check reports them.
    """

    def __init__(self, settings: Mapping[str, str], major: str) -> None:
        self.major = major
        self.given = {
            (secrets.alias(name, major) or name).lower(): value for name, value in settings.items()
        }

    def number(self, name: str) -> float | None:
        """The value in the setting's own unit; None where the version has no such setting."""
        value = self._value(name)
        return None if value is None or isinstance(value, str) else value

    def bytes(self, name: str) -> int | None:
        """The amount of memory; None for 0, -1 and where the version has no such setting."""
        found = setting(name, self.major)
        if found is None:
            return None
        try:
            return values.in_bytes(self._text(found), found)
        except values.BadValue:
            return values.in_bytes(found.boot, found)

    def is_on(self, name: str) -> bool:
        """Whether a bool setting is on."""
        return self._value(name) is True

    def word(self, name: str) -> str:
        """The value of an enum or string; empty where the version has no such setting."""
        value = self._value(name)
        return value if isinstance(value, str) else ""

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def _text(self, found: Setting) -> str:
        return self.given.get(found.name.lower(), found.boot)

    def _value(self, name: str) -> values.Value | None:
        found = setting(name, self.major)
        if found is None:
            return None
        try:
            return values.parse(self._text(found), found)
        except values.BadValue:
            return values.parse(found.boot, found)
