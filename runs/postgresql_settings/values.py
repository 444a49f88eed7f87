"""Reads a setting's value as PostgreSQL does, and writes it for people and files.

Source: `parse_bool`, `parse_int`, `parse_real` and `config_enum_lookup_by_name` of PostgreSQL.
"""

from __future__ import annotations

from typing import Union

from runs.patterns import re
from runs.postgresql_settings import units, unlisted
from runs.postgresql_settings.catalogue import Setting, is_older
from runs.postgresql_settings.findings import About
from runs.wording import gettext_noop as _

Value = Union[bool, int, float, str]

_HEXADECIMAL = r"0[xX][0-9a-fA-F]++"
_INTEGER = re.compile(
    rf"\A(?P<number>[+-]?(?:{_HEXADECIMAL}|\d++))\s*+(?P<unit>[^\s\d.eE].*)?", re.ASCII
)
_REAL = re.compile(
    rf"\A(?P<number>[+-]?(?:{_HEXADECIMAL}|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?))"
    r"\s*+(?P<unit>\S.*)?",
    re.ASCII,
)
_BOOLEANS = {
    "true": True,
    "false": False,
    "yes": True,
    "no": False,
    "on": True,
    "off": False,
}


class BadValue(ValueError):
    """PostgreSQL would refuse the value of the setting, as `finding` says."""

    def __init__(
        self,
        setting: Setting,
        text: str,
        code: str,
        message: str,
        remedy: str = "",
        **values: str,
    ) -> None:
        about = About(setting.name, setting.major)
        self.finding = about.error(code, message, remedy, value=text, **values)
        super().__init__(message % self.finding.parameters)


def parse(text: str, setting: Setting) -> Value:
    """The value in the setting's own unit, as its version reads it.

    Memory and time come as a number of `setting.unit`, bool as bool, enum in the word that
    PostgreSQL shows. Raises BadValue for what the server would refuse; what a string setting
    means is for the server to judge.
    """
    if setting.kind == "bool":
        return _boolean(text, setting)
    if setting.kind == "enum":
        return _enum(text, setting)
    if setting.is_number:
        return _within_range(_number(text, setting), text, setting)
    return text


def spelled(value: Value, setting: Setting) -> str:
    """The value as one writes it into a file of that version: `on`, `128MB`, `0.9`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    return units.spelled(value, setting.unit, setting.major)


def default(setting: Setting) -> str:
    """The built-in default for people: `1GB` rather than 65536 pages of 8kB."""
    if not setting.is_number or not setting.boot:
        return setting.boot
    return units.spelled(float(setting.boot), setting.unit, setting.major)


def allowed(setting: Setting) -> str:
    """The allowed values for people: `128kB to 8TB`, `on, off`, or empty where anything goes."""
    if setting.kind == "bool":
        return "on, off"
    if setting.minimum is not None and setting.maximum is not None:
        ends = (
            units.rounded(end, setting.unit)
            for end in (setting.minimum, setting.maximum)
        )
        return " … ".join(ends)
    return ", ".join(
        word or "''" for word in (*setting.values, *unlisted.build_words(setting))
    )


def convert_to_bytes(text: str, setting: Setting) -> int | None:
    """How many bytes the value means; None for -1 and 0, which have other meanings.

    Raises BadValue; ValueError if the setting is not an amount of memory.
    """
    if setting.unit not in units.BYTES and not setting.unit.endswith("B"):
        raise ValueError(f"{setting.name} is no amount of memory")
    number = parse(text, setting)
    if isinstance(number, str) or number <= 0:
        return None
    return int(number * units.size(setting.unit))


def _boolean(text: str, setting: Setting) -> bool:
    word = text.lower()
    if word in {"1", "0"}:
        return word == "1"
    # `o` could be on or off; any other beginning is enough.
    matching_values = {
        value for name, value in _BOOLEANS.items() if word and name.startswith(word)
    }
    if len(matching_values) != 1:
        message = _("%(name)s takes on or off, not “%(value)s”.")
        raise BadValue(setting, text, "invalid_boolean", message)
    return matching_values.pop()


def _enum(text: str, setting: Setting) -> str:
    word = text.lower()
    if setting.name == "wal_compression" and word in unlisted.ON:
        return "pglz"
    for value in (*setting.values, *unlisted.build_words(setting)):
        if value.lower() == word:
            return value
    if word in unlisted.words(setting):
        return _shown(word, setting)
    raise BadValue(
        setting,
        text,
        "invalid_choice",
        _("%(name)s cannot be “%(value)s” in PostgreSQL %(major)s."),
        _("Choose one of: %(allowed)s."),
        allowed=allowed(setting),
    )


def _shown(word: str, setting: Setting) -> str:
    """What the server shows for a word that it takes but does not list."""
    shown_word = {"wal_level": "replica", "password_encryption": "md5"}.get(
        setting.name
    )
    if shown_word is not None:
        return shown_word
    if word == "debug":
        return "debug2"
    if word in unlisted.ON:
        return "on"
    return "off" if word in unlisted.OFF else word


def _number(text: str, setting: Setting) -> float:
    bare = text.strip()
    match = (setting.kind == "integer" and _INTEGER.fullmatch(bare)) or _REAL.fullmatch(
        bare
    )
    if not match or _stops_within(match["number"], setting):
        raise _no_number(text, setting)
    number, unit = match["number"], match["unit"] or ""
    _refuse_fraction_of_old(number, unit, text, setting)
    if unit:
        _refuse_unit(unit, text, setting)
    try:
        count = _read(number, setting)
        if unit:
            count = units.convert_to_base(count, unit, setting.unit, setting.major)
        return round(count) if setting.kind == "integer" else float(count)
    except (OverflowError, ValueError) as error:  # as 1e400, or thousands of digits
        raise _no_number(text, setting) from error


def _no_number(text: str, setting: Setting) -> BadValue:
    message = _("%(name)s takes a number, not “%(value)s”.")
    return BadValue(setting, text, "invalid_number", message)


def _read(number: str, setting: Setting) -> float:
    """As C reads it: whole numbers of integer settings may be hexadecimal or octal (010 is 8)."""
    sign, digits = (-1 if number.startswith("-") else 1), number.lstrip("+-")
    if digits.lower().startswith("0x"):
        return sign * int(digits, 16)
    if setting.kind == "integer" and digits.isdigit():
        return sign * int(digits, 8 if digits.startswith("0") else 10)
    return float(number)


def _stops_within(number: str, setting: Setting) -> bool:
    """Whether C stops within it: at an 8 in an octal number, and at a point behind a sign."""
    digits = number.lstrip("+-")
    octal = (
        digits.isdigit()
        and digits.startswith("0")
        and not set(digits) <= set("01234567")
    )
    return setting.kind == "integer" and (
        octal or (digits != number and digits[0] == ".")
    )


def _refuse_fraction_of_old(
    number: str, unit: str, text: str, setting: Setting
) -> None:
    """Before 12, integers had no fraction and no exponent, and reals had no unit."""
    is_whole = number.lstrip("+-").isdigit() or number.lower().lstrip("+-").startswith(
        "0x"
    )
    if not is_older(setting.major, "12") or (
        is_whole if setting.kind == "integer" else not unit
    ):
        return
    raise BadValue(
        setting,
        text,
        "fraction_too_new",
        _(
            "PostgreSQL %(major)s takes no fraction or exponent in %(name)s = %(value)s."
        ),
        _("Write it as a whole number, in a smaller unit where there is one."),
    )


def _refuse_unit(unit: str, text: str, setting: Setting) -> None:
    if not setting.unit:
        message = _("%(name)s takes a number without a unit, not “%(value)s”.")
        raise BadValue(setting, text, "no_unit", message)
    known_units = units.known(setting.unit, setting.major)
    if unit in known_units:
        return
    code, message = "wrong_unit", _("“%(unit)s” is no unit for %(name)s.")
    remedy = _("Write one of these, in just these letters: %(units)s.")
    if unit in units.family(setting.unit):
        code, remedy = "unit_too_new", _("It knows: %(units)s.")
        message = _(
            "PostgreSQL %(major)s does not know the unit %(unit)s of %(name)s = %(value)s."
        )
    raise BadValue(
        setting, text, code, message, remedy, unit=unit, units=", ".join(known_units)
    )


def _within_range(number: float, text: str, setting: Setting) -> float:
    low, high = setting.minimum, setting.maximum
    least = unlisted.LEAST_BUT_ZERO.get(setting.name)
    if least is not None and number != 0:
        low = least
    is_zero = number == 0 and setting.name in unlisted.NEVER_ZERO
    if low is None or high is None or (low <= number <= high and not is_zero):
        return _round_to_banks(number, text, setting)
    raise BadValue(
        setting,
        text,
        "out_of_range",
        _("%(name)s = %(value)s is outside the range of PostgreSQL %(major)s."),
        _("Choose a value from %(low)s to %(high)s."),
        low="1" if is_zero else units.spelled(low, setting.unit, setting.major),
        high=units.rounded(high, setting.unit),
    )


def _round_to_banks(number: float, text: str, setting: Setting) -> float:
    bank = unlisted.MULTIPLE_OF.get(setting.name)
    if bank is None or number % bank == 0:
        raised = unlisted.least(setting)
        return number if raised is None or number < 0 else max(number, raised)
    raise BadValue(
        setting,
        text,
        "not_a_multiple",
        _("%(name)s = %(value)s is not a multiple of %(bank)s."),
        _("Choose a multiple of %(bank)s."),
        bank=units.spelled(bank, setting.unit, setting.major),
    )
