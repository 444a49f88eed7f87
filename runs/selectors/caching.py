"""Answers about campaigns in Django's cache, by the versions of what they are made of.

PostgreSQL raises a version in the transaction that changes a row (`CacheVersion`), and a reader
waits for nobody: what was made of newer rows than its key says is asked for by nobody again. What a
reader may see is decided before; keys have the campaigns' own keys.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from redis.exceptions import RedisError

from runs.models import CacheVersion

T = TypeVar("T")

KEEP_SECONDS = 3600
# An answer that takes a processor for so long, as the verdicts of tens of thousands of cells do, is
# kept for longer, and made again at most so many times as seldom: a campaign of that size that is
# at work has a new version every few seconds.
DEAR_SECONDS, KEEP_DEAR_SECONDS, SELDOM = 2.0, 30 * 24 * 3600, 20
# A silent Redis is not asked again for so long: each request would wait for it.
AWAY_SECONDS = 5.0
SHARED = ("machines", "shared")
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
    own = [f"campaign {each}" for each in sorted(set(campaigns))]
    progress = [f"{each} runs" for each in own]
    listed = CacheVersion.objects.filter(subject__in=[*own, *progress, *SHARED])
    found = dict(listed.values_list("subject", "number"))
    if any(each not in found for each in own):
        return NEVER
    results = " ".join(f"{each}={found.get(each, 0)}" for each in (*own, *SHARED))
    return Versions(results, " ".join([results, *(str(found.get(each, 0)) for each in progress)]))


def answer(key: object, version: str | None, make: Callable[[], T]) -> T:
    """What this release made for this key, language and version, or is made now; always for None.

    One that is dear may be that of a version before, for a minute or two. `key` is told apart by
    its repr. The answer is text, or whatever else JSON has; lists come back as lists.
    """
    if version is None:
        return make()
    name, any_version = _name(key, version), _name(key, "any")
    known: T | None = _cached(lambda: cache.get(name))
    if known is not None:
        return known
    before: tuple[T, float] | None = _cached(lambda: cache.get(any_version))
    if before is not None and time.time() < before[1]:
        return before[0]
    found, seconds = _made(make)
    is_dear = seconds > DEAR_SECONDS
    keep = KEEP_DEAR_SECONDS if is_dear else KEEP_SECONDS
    _cached(lambda: cache.set(name, found, keep))
    if is_dear:
        until = time.time() + SELDOM * seconds
        _cached(lambda: cache.set(any_version, (found, until), keep))
    return found


def _name(key: object, version: str) -> str:
    asked = repr((key, get_language(), version, code()))
    return f"answer:{hashlib.sha256(asked.encode()).hexdigest()}"


def _made(make: Callable[[], T]) -> tuple[T, float]:
    """With the seconds of a processor that it took this thread."""
    began = time.thread_time()
    return make(), time.thread_time() - began


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the files that answers are made by: those of another release are asked by nobody.

    Of names, sizes and times of change, read once in a process.
    """
    digest = hashlib.sha256()
    for folder in ("runs", "templates", "locale"):
        for path in sorted((settings.BASE_DIR / folder).rglob("*")):
            if path.suffix in MADE_BY:
                found = path.stat()
                digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def html(key: object, version: str | None, make: Callable[[], SafeString]) -> SafeString:
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
