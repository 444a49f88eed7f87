"""Reading the fields of a JSON object: plain functions, since a batch has a hundred thousand.

Each takes the object, the field's name, and `at`, the object's JSON pointer; what is wrong goes
into `faults`, and the value is then as if it had not been given. A null is not given.
"""

import json
import re
from collections.abc import Collection, Mapping, Set
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.services.errors import Fault, Refused

MOST_FAULTS = 1000
# Nobody measures that much in any unit; squares of it can still be summed up.
LARGEST = 1e24
MOST_AHEAD = timedelta(days=1)
OLDEST = 1995  # the year of Postgres95
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
        if len(self) >= MOST_FAULTS:
            self.refuse_if_any()

    def refuse_if_any(self) -> None:
        """Raise Refused with all faults, unless there are none."""
        if self:
            raise Refused("invalid", self)


def below(at: str, name: str) -> str:
    """The pointer of a field whose name the uploader has chosen."""
    return f"{at}/{name.replace('~', '~0').replace('/', '~1')}"


def refuse_unknown(body: Object, known: Set[str], at: str, faults: Faults) -> None:
    """A field that is not known is a typo, and nobody would miss it otherwise."""
    if body.keys() <= known:
        return
    for name in body.keys() - known:
        message = _("Unknown field; known are: %(known)s.") % {"known": ", ".join(sorted(known))}
        faults.add(below(at, name[:100]), "unknown_field", message)


def missing(name: str, at: str, faults: Faults) -> None:
    """Note that a field must be there."""
    faults.add(f"{at}/{name}", "required", _("This field is required."))


def text(
    body: Object, name: str, at: str, faults: Faults, *, most: int, required: bool = False
) -> str:
    """A string, empty where there is none."""
    value = body.get(name)
    if value is None or value == "":
        if required:
            missing(name, at, faults)
        return ""
    if type(value) is not str:
        faults.add(f"{at}/{name}", "not_a_string", _("Not a string."))
        return ""
    if len(value) <= most and _is_storable(value):
        return value  # most are, and need no pointer
    return value if is_storable(value, f"{at}/{name}", faults, most=most) else ""


def _is_storable(value: str) -> bool:
    return "\0" not in value and (value.isascii() or _is_unicode(value))


def is_storable(value: str, pointer: str, faults: Faults, *, most: int) -> bool:
    """Whether a string is short enough, and of characters that PostgreSQL stores."""
    if len(value) > most:
        message = _("Too long: %(length)d characters; at most %(most)d are possible.")
        faults.add(pointer, "too_long", message % {"length": len(value), "most": most})
        return False
    if not _is_storable(value):
        message = _("Has a character that cannot be stored (NUL, or half of a surrogate pair).")
        faults.add(pointer, "not_storable", message)
        return False
    return True


def slug(
    body: Object, name: str, at: str, faults: Faults, *, most: int, required: bool = False
) -> str:
    """A name for addresses: letters of ASCII, digits, hyphens and underscores."""
    value = text(body, name, at, faults, most=most, required=required)
    if value and not SLUG.fullmatch(value):
        message = _("Not a slug: use letters, digits, hyphens and underscores.")
        faults.add(f"{at}/{name}", "not_a_slug", message)
        return ""
    return value


def number(value: Any, pointer: str, faults: Faults) -> float | None:
    """A number of a size that can be summarised, as a float."""
    kind = type(value)
    if kind is not float and kind is not int:
        faults.add(pointer, "not_a_number", _("Not a number."))
        return None
    if -LARGEST <= value <= LARGEST:
        return float(value)
    faults.add(pointer, "out_of_range", _("Not a finite number below 1e24."))
    return None


def whole(body: Object, name: str, at: str, faults: Faults, *, least: int, most: int) -> int | None:
    """A whole number within bounds."""
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        message = _("Not a whole number from %(least)d to %(most)d.")
        faults.add(f"{at}/{name}", "out_of_range", message % {"least": least, "most": most})
        return None
    return value


def choice(
    body: Object, name: str, choices: Collection[str], at: str, faults: Faults
) -> str | None:
    """One of these words."""
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not str or value not in choices:
        message = _("Not one of: %(choices)s.") % {"choices": ", ".join(choices)}
        faults.add(f"{at}/{name}", "invalid_choice", message)
        return None
    return value


def time(body: Object, name: str, at: str, faults: Faults) -> datetime | None:
    """A moment in ISO 8601 with its time zone; not before Postgres95, nor a day ahead of us."""
    value = body.get(name)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        message = _("Not a time, such as 2026-01-31T12:00:00Z.")
        faults.add(f"{at}/{name}", "not_a_time", message)
        return None
    if DATE.fullmatch(value):
        message = _("A date is not enough: the time of day and its zone are missing.")
        faults.add(f"{at}/{name}", "not_a_time", message)
        return None
    if moment.tzinfo is None:
        faults.add(f"{at}/{name}", "no_time_zone", _("The time zone is missing, such as Z."))
        return None
    if moment.year < OLDEST:
        faults.add(f"{at}/{name}", "too_old", _("The date is before PostgreSQL existed (1996)."))
        return None
    if moment.year > 9000 or moment > timezone.now() + MOST_AHEAD:
        faults.add(f"{at}/{name}", "in_the_future", _("More than a day ahead of this server."))
        return None
    return moment


def items(body: Object, name: str, at: str, faults: Faults, *, most: int) -> list[Any]:
    """A list with a maximal length."""
    value = body.get(name)
    if value is None:
        return []
    if type(value) is not list:
        faults.add(f"{at}/{name}", "not_a_list", _("Not a list."))
        return []
    if len(value) > most:
        message = _("%(number)d are too many; at most %(most)d are possible.")
        faults.add(f"{at}/{name}", "too_many", message % {"number": len(value), "most": most})
        return []
    return value


def mapping(body: Object, name: str, at: str, faults: Faults) -> Object | None:
    """An object; None where it is not given."""
    value = body.get(name)
    if value is None or is_object(value, f"{at}/{name}", faults):
        return value
    return None


def is_object(value: Any, pointer: str, faults: Faults, *, or_text: bool = False) -> bool:
    """Whether a value is an object; `or_text` where a text could have been in its place."""
    if type(value) is dict:
        return True
    message = _("Neither a text nor an object.") if or_text else _("Not an object.")
    faults.add(pointer or "/", "not_an_object", message)
    return False


def strings(
    body: Object, name: str, at: str, faults: Faults, *, most: int, most_characters: int
) -> Mapping[str, str]:
    """An object of strings by name; numbers and booleans count as their text."""
    found = _named(body, name, at, faults, most=most)
    made = {}
    for key, given in found.items():
        value = json.dumps(given) if type(given) in {bool, int, float} else given
        if type(value) is not str:
            faults.add(below(f"{at}/{name}", key), "not_a_string", _("Not a string."))
        elif (len(value) <= most_characters and _is_storable(value)) or is_storable(
            value, below(f"{at}/{name}", key), faults, most=most_characters
        ):
            made[key] = value
    return made


def levels(body: Object, name: str, at: str, faults: Faults) -> Object:
    """An object of numbers, strings and booleans by name: what was varied."""
    found = _named(body, name, at, faults, most=20)
    made = {}
    for key, value in found.items():
        pointer = below(f"{at}/{name}", key[:100])
        kind = type(value)
        _check_factor(key, pointer, faults)
        if key in COUNTED and kind in {int, float} and value <= 0:
            faults.add(pointer, "out_of_range", _("Must be above 0."))
        elif kind is str and value.strip():
            if is_storable(value, pointer, faults, most=100):
                made[key] = value
        elif kind is bool or ((kind is int or kind is float) and _is_level(value)):
            made[key] = value
        else:
            faults.add(pointer, "not_a_level", _("Not a finite number, a string or a boolean."))
    return made


def _check_factor(name: str, pointer: str, faults: Faults) -> None:
    if not name.strip():
        faults.add(pointer, "not_a_name", _("The factor has no name."))
    elif name.strip().lower() in RESERVED:
        message = _("BenchLab counts repeats itself: runs of the same levels are repeats.")
        faults.add(pointer, "reserved", message)


def _named(body: Object, name: str, at: str, faults: Faults, *, most: int) -> Object:
    found = mapping(body, name, at, faults) or {}
    if len(found) > most:
        message = _("%(number)d are too many; at most %(most)d are possible.")
        faults.add(f"{at}/{name}", "too_many", message % {"number": len(found), "most": most})
        return {}
    for key in found:
        if len(key) > 100 or not _is_storable(key):
            is_storable(key, below(f"{at}/{name}", key[:100]), faults, most=100)
    return found


def _is_level(value: float) -> bool:
    return abs(value) < 1 << 63


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
