"""Reading the fields of a JSON object: plain code, since a batch has a hundred thousand of them."""

import json
import re
from collections.abc import Collection, Set
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.shared.api import upload_limits
from runs.shared.errors import Fault, Refused

SLUG = re.compile(r"[-a-zA-Z0-9_]+")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
# Repeats are counted as they come: as a level each would be a cell of its own.
RESERVED = frozenset({"repeat"})
# Of these there is one at least.
COUNTED = frozenset({"clients", "threads", "jobs", "scale", "duration"})
Object = dict[str, Any]


class Faults(list[Fault]):
    """What is wrong with a body, all of it up to a thousand."""

    def add(self, pointer: str, code: str, message: str) -> None:
        """Note a fault. Raises Refused when there are too many to be read by anybody."""
        self.append(Fault(pointer, code, message))
        if len(self) >= upload_limits.MOST_FAULTS:
            self.refuse_if_any()

    def refuse_if_any(self) -> None:
        """Raise Refused with all faults, unless there are none."""
        if self:
            raise Refused("invalid", self)


def pointer_below(pointer: str, name: str) -> str:
    """The pointer of a field whose name the uploader has chosen."""
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"


class FieldReader:
    """Reads an object's fields. What is wrong is in `faults`, and as if not given, as null is."""

    def __init__(self, body: Object, pointer: str, faults: Faults) -> None:
        self.body, self.at, self.faults = body, pointer, faults

    def fault(self, name: str, code: str, message: str) -> None:
        """Note what is wrong with a field."""
        self.faults.add(f"{self.at}/{name}", code, message)

    def refuse_unknown(self, known_names: Set[str]) -> None:
        """A field that is not known is a typo, and nobody would miss it otherwise."""
        for name in self.body.keys() - known_names:
            names = ", ".join(sorted(known_names))
            message = _("Unknown field; known are: %(known)s.") % {"known": names}
            self.faults.add(
                pointer_below(self.at, name[:100]), "unknown_field", message
            )

    def missing(self, name: str) -> None:
        """Note that a field must be there."""
        self.fault(name, "required", _("This field is required."))

    def text(self, name: str, *, most: int, required: bool = False) -> str:
        """A string, empty where there is none."""
        value = self.body.get(name)
        if value is None or value == "":
            if required:
                self.missing(name)
            return ""
        if type(value) is not str:
            self.fault(name, "not_a_string", _("Not a string."))
            return ""
        return value if self.is_storable(value, f"{self.at}/{name}", most=most) else ""

    def is_storable(self, value: str, pointer: str, *, most: int) -> bool:
        """Whether a string is short enough, and of characters that PostgreSQL stores."""
        if len(value) > most:
            message = _(
                "Too long: %(length)d characters; at most %(most)d are possible."
            )
            self.faults.add(
                pointer, "too_long", message % {"length": len(value), "most": most}
            )
            return False
        if "\0" in value or not (value.isascii() or _is_unicode(value)):
            message = _(
                "Has a character that cannot be stored (NUL, or half of a surrogate pair)."
            )
            self.faults.add(pointer, "not_storable", message)
            return False
        return True

    def slug(self, name: str, *, most: int, required: bool = False) -> str:
        """A name for addresses: letters of ASCII, digits, hyphens and underscores."""
        value = self.text(name, most=most, required=required)
        if value and not SLUG.fullmatch(value):
            message = _("Not a slug: use letters, digits, hyphens and underscores.")
            self.fault(name, "not_a_slug", message)
            return ""
        return value

    def number(self, value: Any, name: str) -> float | None:
        """A number of a size that can be summarised, as a float."""
        kind = type(value)
        if kind is not float and kind is not int:
            self.fault(name, "not_a_number", _("Not a number."))
            return None
        if -upload_limits.LARGEST <= value <= upload_limits.LARGEST:
            return float(value)
        self.fault(name, "out_of_range", _("Not a finite number below 1e24."))
        return None

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number within bounds."""
        value = self.body.get(name)
        if value is None:
            return None
        if type(value) is not int or not least <= value <= most:
            message = _("Not a whole number from %(least)d to %(most)d.")
            self.fault(name, "out_of_range", message % {"least": least, "most": most})
            return None
        return value

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """One of these words."""
        value = self.body.get(name)
        if value is None:
            return None
        if type(value) is not str or value not in choices:
            message = _("Not one of: %(choices)s.") % {"choices": ", ".join(choices)}
            self.fault(name, "invalid_choice", message)
            return None
        return value

    def time(self, name: str) -> datetime | None:
        """A moment in ISO 8601 with its zone; not before Postgres95, nor a day ahead of us."""
        value = self.body.get(name)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.fault(
                name, "not_a_time", _("Not a time, such as 2026-01-31T12:00:00Z.")
            )
            return None
        if DATE.fullmatch(value):
            message = _(
                "A date is not enough: the time of day and its zone are missing."
            )
            self.fault(name, "not_a_time", message)
        elif moment.tzinfo is None:
            self.fault(name, "no_time_zone", _("The time zone is missing, such as Z."))
        elif moment.year < upload_limits.OLDEST:
            self.fault(
                name, "too_old", _("The date is before PostgreSQL existed (1996).")
            )
        elif moment.year > 9000 or moment > timezone.now() + upload_limits.MOST_AHEAD:
            self.fault(
                name, "in_the_future", _("More than a day ahead of this server.")
            )
        else:
            return moment
        return None

    def items(self, name: str, *, most: int) -> list[Any]:
        """A list with a maximal length."""
        value = self.body.get(name)
        if value is None:
            return []
        if type(value) is not list:
            self.fault(name, "not_a_list", _("Not a list."))
            return []
        return value if self._are_few(value, name, most) else []

    def _are_few(self, value: Collection[Any], name: str, most: int) -> bool:
        if len(value) > most:
            message = _("%(number)d are too many; at most %(most)d are possible.")
            self.fault(name, "too_many", message % {"number": len(value), "most": most})
        return len(value) <= most

    def mapping(self, name: str, *, or_text: bool = False) -> "FieldReader | None":
        """An object, to be read; `or_text` where a text could have been in its place."""
        value = self.body.get(name)
        return (
            None
            if value is None
            else reader(value, f"{self.at}/{name}", self.faults, or_text)
        )

    def strings(self, name: str, *, most: int, most_characters: int) -> dict[str, str]:
        """An object of strings by name; numbers and booleans count as their text."""
        texts = {}
        for key, value_given in self._named(name, most=most).items():
            value = (
                json.dumps(value_given)
                if type(value_given) in {bool, int, float}
                else value_given
            )
            pointer = pointer_below(f"{self.at}/{name}", key)
            if type(value) is not str:
                self.faults.add(pointer, "not_a_string", _("Not a string."))
            elif self.is_storable(value, pointer, most=most_characters):
                texts[key] = value
        return texts

    def levels(self, name: str) -> Object:
        """An object of numbers, strings and booleans by name: what was varied."""
        levels = {}
        for key, value in self._named(name, most=20).items():
            pointer = pointer_below(f"{self.at}/{name}", key[:100])
            kind = type(value)
            if not key.strip():
                self.faults.add(pointer, "not_a_name", _("The factor has no name."))
            elif key.strip().lower() in RESERVED:
                message = _(
                    "BenchLab counts repeats itself: runs of the same levels are repeats."
                )
                self.faults.add(pointer, "reserved", message)
            if key in COUNTED and kind in {int, float} and value <= 0:
                self.faults.add(pointer, "out_of_range", _("Must be above 0."))
            elif kind is str and value.strip():
                if self.is_storable(value, pointer, most=100):
                    levels[key] = value
            elif kind is bool or (kind in {int, float} and abs(value) < 1 << 63):
                levels[key] = value
            else:
                message = _("Not a finite number, a string or a boolean.")
                self.faults.add(pointer, "not_a_level", message)
        return levels

    def _named(self, name: str, *, most: int) -> Object:
        mapping = self.mapping(name)
        if mapping is None or not self._are_few(mapping.body, name, most):
            return {}
        for key in mapping.body:
            self.is_storable(key, pointer_below(mapping.at, key[:100]), most=100)
        return mapping.body


def reader(
    value: Any, pointer: str, faults: Faults, or_text: bool = False
) -> FieldReader | None:
    """What reads an object; None for anything else."""
    if type(value) is dict:
        return FieldReader(value, pointer, faults)
    message = _("Neither a text nor an object.") if or_text else _("Not an object.")
    faults.add(pointer or "/", "not_an_object", message)
    return None


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
