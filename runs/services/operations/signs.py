"""Signs of life of BenchLab's own processes, and counted failures; kept in Redis.

A sorted set of names `kind|process`, or `kind|process|sites`, by the time of their last sign. The
time is that of Redis, so the clocks of several hosts need not agree. A process
that stops normally removes its name.
"""

import logging
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import cast

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from runs.selectors.operations import signs

WORKER, CONTROL = "worker", "control"
SECONDS_BETWEEN = 5.0
# A process that was silent for this long is no longer missed.
FORGOTTEN_AFTER_SECONDS = 24 * 3600

logger = logging.getLogger(__name__)
_shown: dict[str, float] = {}


def show(*, kind: str) -> None:
    """Record that this process is alive, at most once in five seconds. Raises nothing."""
    now = time.monotonic()
    if now - _shown.get(kind, -SECONDS_BETWEEN) < SECONDS_BETWEEN:
        return
    is_first = kind not in _shown
    _shown[kind] = now
    try:
        client = signs.redis_client()
        if is_first:
            _replace_the_dead(client, kind)
        seconds = signs.redis_time(client)
        client.zadd(signs.KEY, {_name(kind): seconds})
        client.zremrangebyscore(signs.KEY, 0, seconds - FORGOTTEN_AFTER_SECONDS)
        _touch(kind)
    except (RedisError, OSError) as error:
        logger.warning("no sign of life can be shown: %s", error)


def _replace_the_dead(client: Redis, kind: str) -> None:
    """Miss nobody whose place this process has taken: one of this host that is gone."""
    mine = f"{kind}|{socket.gethostname()}:".encode()
    for name in cast(list[bytes], client.zrange(signs.KEY, 0, -1)):
        pid = name.removeprefix(mine).partition(b"|")[0]
        if name.startswith(mine) and pid.isdigit() and _is_gone(int(pid)):
            client.zrem(signs.KEY, name)
            client.hincrby(signs.RESTARTS, kind, 1)


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def take_away(*, kind: str) -> None:
    """Record that this process ends because it was asked to. Raises nothing."""
    _shown.pop(kind, None)
    try:
        signs.redis_client().zrem(signs.KEY, _name(kind))
    except (RedisError, OSError) as error:
        logger.warning("the sign of life cannot be taken away: %s", error)


def _touch(kind: str) -> None:
    """Leave a file as new as the sign: what checks the health of a container need not ask Redis."""
    path = Path(tempfile.gettempdir()) / f"benchlab-{kind}"
    opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(opened)
    finally:
        os.close(opened)


def _name(kind: str) -> str:
    served = ",".join(settings.SITES) if kind == WORKER else ""
    return "|".join([kind, process_name(), *([served] if served else [])])


def process_name() -> str:
    """The name of this process in signs of life, and as holder of leases."""
    return f"{socket.gethostname()}:{os.getpid()}"


def count_http_error(*, address: str) -> None:
    """Count one. Raises nothing, since the cause may be that Redis is away."""
    try:
        signs.redis_client().hincrby(signs.HTTP_ERRORS, address, 1)
    except (RedisError, OSError) as error:
        logger.warning("an error is not counted: %s", error)
