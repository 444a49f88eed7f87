"""Requests a minute: 429 with `Retry-After` beyond BENCHLAB_RATE_… of benchlab/settings.py."""

import logging
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from runs.models import Token
from runs.shared.signs import redis_client

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
AWAY_SECONDS = 10


class RateLimit(BaseThrottle):
    """Counts requests in whole minutes, by token, user or address. A limit of 0 is none.

    Without Redis nothing is counted and nothing is refused: results are worth more than limits.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count the request, and say whether it may go on."""
        return _is_within(*self._who(request))

    def allow_page(self, request: HttpRequest) -> bool:
        """The same of a page: counted apart from the API, by user or address."""
        if (
            settings.SESSION_COOKIE_NAME in request.COOKIES
            and request.user.is_authenticated
        ):
            return _is_within(f"pages:user:{request.user.pk}", settings.RATE_TOKEN)
        who = f"pages:address:{self.get_ident(request)}"  # type: ignore[arg-type]
        return _is_within(who, settings.RATE_ANONYMOUS)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return max(1.0, WINDOW_SECONDS - time.time() % WINDOW_SECONDS)

    def _who(self, request: Request) -> tuple[str, int]:
        if isinstance(request.auth, Token):
            return f"token:{request.auth.pk}", settings.RATE_TOKEN
        if request.user is not None and request.user.is_authenticated:
            return f"user:{request.user.pk}", settings.RATE_TOKEN
        return f"address:{self.get_ident(request)}", settings.RATE_ANONYMOUS


def _is_within(who: str, limit: int) -> bool:
    if limit <= 0:
        return True
    minute = int(time.time() // WINDOW_SECONDS)
    return _counted(f"requests:{who}:{minute}") <= limit


def _counted(key: str) -> int:
    if time.monotonic() < _Redis.away_until:
        return 0
    try:
        return _incremented(key)
    except (RedisError, OSError):
        logger.warning("requests are not counted now", exc_info=True)
        _Redis.away_until = time.monotonic() + AWAY_SECONDS
        return 0


class _Redis:
    """Until when this process does not ask: each request would wait for a Redis that is silent."""

    away_until = 0.0


def _incremented(key: str) -> int:
    # Redis makes the counter with the first request of a minute. The cache's own incr() asks in a
    # message of its own whether it is there, and makes a client for each request.
    name = cache.make_and_validate_key(key)
    client = redis_client()
    count = client.incr(name)
    if count == 1:
        client.expire(name, 2 * WINDOW_SECONDS)
    return count
