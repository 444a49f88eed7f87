"""A worker whose own host is at fault takes no runs for a while, and says why."""

import logging
import time
from contextlib import suppress
from typing import cast

from redis.exceptions import RedisError

from runs.shared import signs

KEY = "benchlab:unfit-workers"
# Then it tries again.
PAUSE_SECONDS = 60.0

logger = logging.getLogger(__name__)
_state = {"until": 0.0}


def note(reason: str) -> None:
    """Take no runs and no checks for a minute. Raises nothing."""
    _state["until"] = time.monotonic() + PAUSE_SECONDS
    logger.error("this worker takes nothing for %.0f s: %s", PAUSE_SECONDS, reason)
    with suppress(RedisError, OSError, ValueError):
        client = signs.redis_client()
        client.hset(
            KEY, signs.host_name(), f"{signs.redis_time(client):.0f}|{reason[:300]}"
        )


def count_put_back(server: str) -> None:
    """Count a claim that this worker put back for a server. Raises nothing."""
    with suppress(RedisError, OSError, ValueError):
        signs.count_put_back(server=server)


def is_unfit() -> bool:
    """Whether this process takes nothing now."""
    return time.monotonic() < _state["until"]


def reasons() -> dict[str, str]:
    """Why workers take nothing now, by their host. Raises RedisError, OSError."""
    client = signs.redis_client()
    now, reason_of_host = signs.redis_time(client), {}
    rows = cast(dict[bytes, bytes], client.hgetall(KEY))
    for host, value in rows.items():
        at, _mark, reason = value.decode().partition("|")
        if at.isdecimal() and now - int(at) < PAUSE_SECONDS * 2:
            reason_of_host[host.decode()] = reason
    return reason_of_host
