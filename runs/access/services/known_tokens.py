"""Tokens that a process has read from the database a moment ago, so that each upload reads none.

What BenchLab changes about tokens, people and projects raises a version in Redis, and ends all that
was read before: a revoked token is refused by the next request, in all processes. Whatever is
changed past that, by SQL or while Redis is away, holds after at most KEPT_SECONDS. Without Redis
each request reads its token.
"""

import logging
import time
from dataclasses import dataclass

from django.db import transaction
from redis.exceptions import RedisError

from runs.models import Token
from runs.shared.signs import redis_client

logger = logging.getLogger(__name__)

VERSION = "benchlab:access-version"
KEPT_SECONDS = 2.0
MOST_TOKENS = 1_000
# A Redis that does not answer is not asked again for so long.
AWAY_SECONDS = 10.0


@dataclass(frozen=True)
class _Reading:
    """A token with its project and owner, the version before it was read, and when that was."""

    token: Token
    version: bytes
    at: float


class _Process:
    """What this process knows. Prefixes are those of stored tokens only: nobody can fill it."""

    readings: dict[str, _Reading] = {}
    away_until = 0.0


def find_token(prefix: str) -> Token | None:
    """The token with this prefix, with its project and owner; whether it is valid is not said.

    At most one query, and one command of Redis.
    """
    now = time.monotonic()
    # Before the query: what changes after this is seen by the next request.
    version = _version(now)
    reading = _Process.readings.get(prefix)
    if reading and reading.version == version and now - reading.at < KEPT_SECONDS:
        return reading.token
    token = (
        Token.objects.select_related("project", "created_by")
        .filter(prefix=prefix)
        .first()
    )
    if token is None or version is None:
        _Process.readings.pop(prefix, None)
        return token
    if len(_Process.readings) >= MOST_TOKENS:
        _Process.readings.clear()
    _Process.readings[prefix] = _Reading(token, version, now)
    return token


def forget_once_committed() -> None:
    """End what all processes have read, once this transaction is committed.

    Call it with each change of what a token may do: of itself, its owner, or its project.
    """
    transaction.on_commit(_forget, robust=True)


def _forget() -> None:
    _Process.readings.clear()
    try:
        redis_client().incr(VERSION)
    except (RedisError, OSError):
        logger.warning(
            "tokens that were read hold for %s s more", KEPT_SECONDS, exc_info=True
        )


def _version(now: float) -> bytes | None:
    """The version of what decides about tokens; None where Redis does not answer."""
    if now < _Process.away_until:
        return None
    try:
        return redis_client().get(VERSION) or b"0"  # type: ignore[return-value]  # not awaited
    except (RedisError, OSError):
        logger.warning("tokens are read with each request now", exc_info=True)
        _Process.away_until = now + AWAY_SECONDS
        return None
