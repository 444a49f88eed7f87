"""Answers about campaigns in Django's cache, by the versions of what they are made of.

PostgreSQL raises a version in the transaction that changes a row (`CacheVersion`), and a reader
waits for nobody: what was made of newer rows than its key says is asked for by nobody again. What a
reader may see is decided before; keys have the campaigns' own keys.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from redis.exceptions import RedisError

from runs.models import CacheVersion
from runs.shared import queries

T = TypeVar("T")

KEEP_SECONDS = 3600
# What control makes takes seconds. It is kept for a month, and made again at most so many times as
# seldom: a campaign of that size that is at work has a new version every few seconds.
KEEP_LATEST_SECONDS, SELDOM = 30 * 24 * 3600, 5
# Nobody else makes any meanwhile, and nobody asks for it again so soon.
MAKING_SECONDS, ASKING_SECONDS = 600, 10
# A silent Redis is not asked again for so long: each request would wait for it.
AWAY_SECONDS = 5.0
SHARED = ("machines", "shared")
LATEST, MAKING = "latest", "answer:making"
# What is kept of what control made: value, version, when, and in how many seconds.
_NOTHING_KEPT = (None, "", 0.0, 0.0)
MADE_BY = {".py", ".html", ".mo"}


@dataclass(frozen=True)
class Versions:
    """Of an answer about some campaigns: `results` as finished runs say, `whole` of all runs.

    None where it must be made each time: about uploads, and in a transaction, which sees changes
    that nobody else does.
    """

    results: str | None = None
    whole: str | None = None


NEVER = Versions()


def versions(campaigns: Iterable[int]) -> Versions:
    """The versions of these campaigns and of what all share. One query."""
    if connection.in_atomic_block:
        return NEVER
    subjects = [f"campaign {campaign}" for campaign in sorted(set(campaigns))]
    progress = [f"{subject} runs" for subject in subjects]
    cache_versions = CacheVersion.objects.filter(
        subject__in=[*subjects, *progress, *SHARED]
    )
    number_of = dict(cache_versions.values_list("subject", "number"))
    if any(subject not in number_of for subject in subjects):
        return NEVER
    results = " ".join(
        f"{subject}={number_of.get(subject, 0)}" for subject in (*subjects, *SHARED)
    )
    return Versions(
        results,
        " ".join([results, *(str(number_of.get(subject, 0)) for subject in progress)]),
    )


# A run of an upload only adds to what is there, so the number of its campaign's runs and the newest
# of them tell what was added; what else changes raises the campaign's version.
_OF_UPLOADS = """
SELECT concat_ws(' ',
    (SELECT string_agg(subject || '=' || number, ' ' ORDER BY subject) FROM runs_cacheversion
      WHERE subject IN ('uploads ' || campaign.id, 'shared')
     HAVING bool_or(subject LIKE 'uploads %%')),
    (SELECT max(id) FROM runs_run WHERE campaign_id = campaign.id),
    (SELECT sum(number) FROM runs_runcount WHERE campaign = campaign.id))
FROM (SELECT %s::bigint AS id) AS campaign
"""


def find_upload_version(campaign: int) -> str | None:
    """The version of all that an uploaded campaign has of its own. One query.

    It says nothing of other campaigns, by which verdicts may judge. None in a transaction, as of
    `versions`.
    """
    if connection.in_atomic_block:
        return None
    ((version,),) = queries.rows(_OF_UPLOADS, [campaign], of=CacheVersion)
    is_known = "uploads " in str(version)
    return str(version) if is_known else None


def answer(key: object, version: str | None, make: Callable[[], T]) -> T:
    """What this release made for this key, language and version, or is made now; always for None.

    `key` is told apart by its repr. The answer is text, or whatever else JSON has; lists come back
    as lists.
    """
    if version is None:
        return make()
    name = _name(key, version)
    cached: T | None = _cached(lambda: cache.get(name))
    if cached is not None:
        return cached
    value = make()
    _cached(lambda: cache.set(name, value, KEEP_SECONDS))
    return value


@dataclass(frozen=True)
class Latest:
    """What control made last for a key, when (seconds since 1970), and whether nothing is newer.

    `value` is None where nothing is kept.
    """

    value: Any = None
    made_at: float = 0.0
    is_current: bool = False


class _Kept(NamedTuple):
    """What is kept for `latest`: of which version, when it was made, and how long that took."""

    value: Any
    version: str
    made_at: float
    seconds: float


def latest(
    key: object, version: str, ask: Callable[[], object] = lambda: None
) -> Latest:
    """What control made last for this key; `ask` it where that is not of `version`."""
    name = _name(key, LATEST, "")
    entry = _cached(lambda: cache.get(name)) or _NOTHING_KEPT
    kept_entry = _Kept(*entry)
    latest_value = Latest(
        kept_entry.value, kept_entry.made_at, kept_entry.version == version
    )
    if not latest_value.is_current and _cached(
        lambda: cache.add(f"{name}:asked", 1, ASKING_SECONDS)
    ):
        ask()
    return latest_value


def make_latest(
    key: object, version: str, make: Callable[[], Mapping[Any, object]]
) -> None:
    """Make and keep what `latest` gives for a key, unless it is kept, or was made a moment ago.

    What is made has other keys too. One at a time of all that there are: meanwhile nothing is made,
    and has to be asked for again.
    """
    kept_entry = cache.get(_name(key, LATEST, "")) or _NOTHING_KEPT
    kept = _Kept(*kept_entry)
    is_too_soon = time.time() < kept.made_at + SELDOM * kept.seconds
    if (
        kept.version == version
        or is_too_soon
        or not cache.add(MAKING, 1, MAKING_SECONDS)
    ):
        return
    try:
        began = time.monotonic()
        value_of = make()
        entry = (version, time.time(), time.monotonic() - began)
        entries = {
            _name(key_made, LATEST, ""): (value, *entry)
            for key_made, value in value_of.items()
        }
        cache.set_many(entries, KEEP_LATEST_SECONDS)
    finally:
        cache.delete(MAKING)


def _name(key: object, version: str, language: str | None = None) -> str:
    question = repr(
        (key, get_language() if language is None else language, version, code())
    )
    return f"answer:{hashlib.sha256(question.encode()).hexdigest()}"


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the files that answers are made by: those of another release are asked by nobody.

    Of names and contents, which web and control share wherever they are; read once in a process.
    """
    digest = hashlib.sha256()
    for folder in ("runs", "templates", "locale"):
        for path in sorted((settings.BASE_DIR / folder).rglob("*")):
            if path.suffix in MADE_BY:
                digest.update(f"{path.relative_to(settings.BASE_DIR)}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def html(
    key: object, version: str | None, make: Callable[[], SafeString]
) -> SafeString:
    """As `answer`, for HTML that is safe."""
    return SafeString(answer(key, version, make))


class _Redis:
    """Until when this process does not ask."""

    away_until = 0.0


def _cached(ask: Callable[[], Any]) -> Any:
    """What the cache says; None where it is away, for pages are made without it."""
    if time.monotonic() < _Redis.away_until:
        return None
    try:
        return ask()
    except (RedisError, OSError, ValueError):
        _Redis.away_until = time.monotonic() + AWAY_SECONDS
        return None
