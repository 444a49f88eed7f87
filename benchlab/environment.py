"""Reads settings from the environment: what is malformed ends the program with one line.

The line names the variable, what it holds and what it takes. An empty value of a number, a switch
or a URL is as none, for a composition passes those on as well.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ

from benchlab.bucket import Address, address

T = TypeVar("T")

YES, NO = (
    frozenset({"1", "true", "yes", "on", "y", "ok"}),
    frozenset({"0", "false", "no", "off"}),
)
DATABASES = frozenset({"postgres", "postgresql", "pgsql"})
REDIS = frozenset({"redis", "rediss", "unix"})
MAIL = re.compile(
    r"(smtp|smtps|smtp\+tls|smtp\+ssl|consolemail|filemail|memorymail|dummymail)://"
)

SLUG = re.compile(r"[a-z0-9][a-z0-9-]*")
ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# What may be removed when it is old; `runs.operations.services.retention` removes it.
Days: TypeAlias = dict[str, int]
RETAINED = ("files", "failures", "uploads", "logins")


class Environment(environ.Env):  # type: ignore[misc]
    """As environ.Env, strict. Each reader raises SystemExit with the line for a wrong value.

    `names` are those that were asked for.
    """

    names: set[str]

    def __init__(self) -> None:
        super().__init__()
        self.names = set()

    def get_value(self, var: str, *args: Any, **options: Any) -> Any:
        """What the readers of environ.Env call."""
        self.names.add(var)
        return super().get_value(var, *args, **options)

    def amount(self, name: str, default: float) -> float:
        """A number of which 0 means none."""
        return self._read(name, default, _amount, "a number from 0")

    def int(self, name: str, default: int) -> int:
        """A whole number."""
        return self._read(name, default, int, "a whole number")

    def float(self, name: str, default: float) -> float:
        """A number above 0."""
        return self._read(name, default, _positive_number, "a number above 0")

    def bool(self, name: str, default: bool) -> bool:
        """A switch."""
        return self._read(name, default, _switch, "1 or 0")

    def one_of(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of some words."""

        def chosen(text: str) -> str:
            if text not in choices:
                raise ValueError
            return text

        return self._read(name, default, chosen, f"one of {', '.join(choices)}")

    def db(self, name: str, default: str) -> dict[str, Any]:
        """The results database, as Django's settings have it; empty for none."""
        url = self._read(
            name, default, _database, "postgresql://user:password@host:5432/database"
        )
        database: dict[str, Any] = self.db_url_config(url) if url else {}
        return database

    def redis(self, name: str, default: str) -> str:
        """The address of Redis."""
        return self._read(name, default, _redis, "redis://host:6379/0")

    def mail(self, name: str, default: str) -> str:
        """The way of mails; empty for none."""
        return self._read(name, default, _mail, "smtp+tls://user:password@host:587")

    def slugs(self, name: str) -> tuple[str, ...]:
        """Short names between commas; none by default."""
        return self._read(
            name, (), _slugs, "short names between commas, as in tokyo,berlin"
        )

    def origins(self, name: str) -> tuple[str, ...]:
        """Origins of web sites between commas, or * for all; none by default."""
        return self._read(
            name, (), _origins, "origins, as in https://wiki.example,https://a.example"
        )

    def days(self, name: str) -> Days:
        """For kinds of RETAINED how many days they are kept; none by default."""
        expected = f"days by kind ({', '.join(RETAINED)}), as in files=365,failures=90"
        return self._read(name, {}, _days, expected)

    def bucket(self, name: str) -> Address | None:
        """The S3-compatible store of files; None for the folder."""
        expected = (
            "s3://bucket/prefix, with ?endpoint=https://host&region=name "
            "where it is not Amazon's"
        )
        return self._read(name, None, address, expected)

    def time_zone(self, name: str, default: str) -> str:
        """A name of the IANA database."""
        return self._read(
            name,
            default,
            lambda text: ZoneInfo(text).key,
            "a time zone such as Asia/Tokyo",
        )

    def _read(
        self, name: str, default: T, parse: Callable[[str], T], expected: str
    ) -> T:
        self.names.add(name)
        text = str(self.ENVIRON.get(name, "")).strip()
        if not text:
            return default
        try:
            return parse(text)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            held = "holds a URL that" if "://" in text else f"is {text!r}, which"
            raise SystemExit(
                f"BenchLab: {name} {held} is not {expected}. Correct it."
            ) from None


def _positive_number(text: str) -> float:
    number = _amount(text)
    if number == 0:
        raise ValueError
    return number


def _amount(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


def _switch(text: str) -> bool:
    if text.lower() not in YES | NO:
        raise ValueError
    return text.lower() in YES


def _database(text: str) -> str:
    url = urlsplit(text)
    # The port is read to raise ValueError where it is none.
    if url.scheme not in DATABASES or not url.path.strip("/") or url.port == 0:
        raise ValueError
    return text


def _redis(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in REDIS or not (url.hostname or url.path) or url.port == 0:
        raise ValueError
    return text


def _mail(text: str) -> str:
    if not MAIL.match(text) or urlsplit(text).port == 0:
        raise ValueError
    return text


def _slugs(text: str) -> tuple[str, ...]:
    slugs = tuple(
        dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    )
    if not all(SLUG.fullmatch(slug) for slug in slugs):
        raise ValueError
    return slugs


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(filter(None, map(str.strip, text.split(","))))
    if origins != ("*",) and not all(ORIGIN.fullmatch(origin) for origin in origins):
        raise ValueError
    return origins


def _days(text: str) -> Days:
    days_by_kind: Days = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        kind, is_named, days = (field.strip() for field in entry.partition("="))
        if (
            kind not in RETAINED
            or kind in days_by_kind
            or not is_named
            or not days.isdecimal()
        ):
            raise ValueError
        days_by_kind[kind] = int(days)
    return days_by_kind
