"""What a form of settings gives, and what the forms have in common."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from runs.postgresql_settings.catalogue import MAJORS, existence, setting
from runs.postgresql_settings.conf_text import Fault
from runs.wording import Marked
from runs.wording import gettext_noop as _

# Line, name and value.
Pasted = tuple[int, str, str]

_NAME = re.compile(r"[A-Za-z_][\w$]*+(?:\.[A-Za-z_][\w$]*+)?")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_PREFIX = re.compile(
    r"\A(?:patroni_postgresql_parameters|postgres(?:ql)?|pg)_", re.IGNORECASE
)
_NOT_IN_FORCE = _(
    "Line %(line)s is left out, as it is not of a configuration: %(text)s."
)
_REST = _("Line %(line)s: what stands behind the value was not understood: %(text)s.")
_NOT_UNDERSTOOD = _("Line %(line)s was not understood: %(text)s.")


@dataclass
class FormReading:
    """The settings of a text, in order; what is not in force; and what was not understood."""

    settings: list[Pasted] = field(default_factory=list)
    left_out: list[Fault] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def leave_out(self, line: int, text: str) -> None:
        """Note that a setting is not in force: of a session, of a server's state, of a role."""
        self.left_out.append(_fault(line, "not_in_force", _NOT_IN_FORCE, text))

    def refuse_rest(self, line: int, text: str) -> None:
        """Note what stands behind a value."""
        self.faults.append(_fault(line, "rest", _REST, text))

    def refuse(self, line: int, text: str) -> None:
        """Note a line that should have set something."""
        self.faults.append(_fault(line, "not_understood", _NOT_UNDERSTOOD, text))

    def add(self, other: "FormReading") -> None:
        """Take what another reading has, behind this one's."""
        self.settings += other.settings
        self.left_out += other.left_out
        self.faults += other.faults


@dataclass(frozen=True)
class Form:
    """A form in which people have settings.

    `read` gives None for a text of another form. Of a text that is of its form, it reads every
    line, or says which it has not read.
    """

    name: str
    title: Marked
    read: Callable[[str], FormReading | None]


def _fault(line: int, code: str, message: str, text: str) -> Fault:
    return Fault(line, code, message, {"line": str(line), "text": text.strip()[:200]})


def known_name(name: str) -> str:
    """The setting that is meant, also behind the product's name or in another case; else empty."""
    for candidate in (name, _PREFIX.sub("", name), _snake(name)):
        if existence(candidate.lower()):
            return candidate.lower()
    return ""


def is_name(text: str) -> bool:
    """Whether it has the form of a setting's name."""
    return _NAME.fullmatch(text) is not None


def is_setting(name: str) -> bool:
    """Whether it is a setting of PostgreSQL or may be one of an extension."""
    return bool(existence(name) or ("." in name and is_name(name)))


def is_known(name: str) -> bool:
    """Whether it is a setting, may be one of an extension, or means one in another spelling."""
    return is_setting(name) or bool(known_name(name))


def is_preset(name: str) -> bool:
    """Whether it only shows how a server was built, or its state: an export has these, too."""
    catalogued = [
        facts for major in MAJORS if (facts := setting(name, major)) is not None
    ]
    return bool(catalogued) and catalogued[-1].is_preset


def sql_literal(text: str) -> str:
    """The value of a literal of SQL; other words as they are."""
    if len(text) > 1 and text[0] == "'" == text[-1]:
        return text[1:-1].replace("''", "'")
    return text


def _snake(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).replace("-", "_").lower()
