"""Signs of life of BenchLab's own processes, and counted failures; kept in Redis.

A sorted set of names `kind|process`, or `kind|process|sites`, by the time of their last sign. The
time is that of Redis, so the clocks of several hosts need not agree. A process
that stops normally removes its name.
"""

import json
import logging
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from benchlab.release import own_release
from runs.shared import signs

WORKER, CONTROL = "worker", "control"
SECONDS_BETWEEN = 5.0
SILENT_SECONDS = 60.0
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
        with client.pipeline(transaction=False) as pipeline:
            pipeline.zadd(signs.KEY, {_name(kind): seconds})
            pipeline.hset(signs.RELEASES, signs.process_name(), own_release())
            pipeline.zremrangebyscore(signs.KEY, 0, seconds - FORGOTTEN_AFTER_SECONDS)
            pipeline.execute()
        _touch(kind)
    except (RedisError, OSError) as error:
        logger.warning("no sign of life can be shown: %s", error)


def _replace_the_dead(client: Redis, kind: str) -> None:
    """Miss nobody whose place this process has taken.

    Those of this host that are gone, else one of another host that serves the same sites and has
    been silent for long: a container that crashed comes back under another name.
    """
    mine = f"{kind}|{signs.host_name()}:".encode()
    now = signs.redis_time(client)
    rows = cast(
        list[tuple[bytes, float]], client.zrange(signs.KEY, 0, -1, withscores=True)
    )
    dead = []
    for name, _at in rows:
        pid = name.removeprefix(mine).partition(b"|")[0]
        if name.startswith(mine) and pid.isdigit() and _is_gone(int(pid)):
            dead.append(name)
    if not dead:
        own_parts = _name(kind).split("|")[2:]
        silent = (
            name for name, reported_at in rows if now - reported_at > SILENT_SECONDS
        )
        names_and_parts = ((name, name.decode().split("|")) for name in silent)
        dead = [
            name
            for name, name_parts in names_and_parts
            if [name_parts[0], *name_parts[2:]] == [kind, *own_parts]
        ][:1]
    for name in dead:
        client.zrem(signs.KEY, name)
        client.hdel(signs.RELEASES, name.decode().split("|")[1])
        client.hincrby(signs.RESTARTS, kind, 1)
    _forget_the_absent(client)


def _forget_the_absent(client: Redis) -> None:
    """Keep nothing of processes that have no sign of life any more."""
    signing_processes = {sign.process for sign in signs.signs()}
    gone = [
        name for name in signs.releases_of_processes() if name not in signing_processes
    ]
    if gone:
        client.hdel(signs.RELEASES, *gone)
    rows = [
        json.dumps([process, server])
        for process, server, _number in signs.put_back()
        if process not in signing_processes
    ]
    if rows:
        client.hdel(signs.PUT_BACK, *rows)


def _is_gone(pid: int) -> bool:
    """Whether no process has this number, or only what its parent has not yet waited for."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]


def take_away(*, kind: str) -> None:
    """Record that this process ends because it was asked to. Raises nothing."""
    _shown.pop(kind, None)
    try:
        signs.redis_client().zrem(signs.KEY, _name(kind))
        signs.redis_client().hdel(signs.RELEASES, signs.process_name())
    except (RedisError, OSError) as error:
        logger.warning("the sign of life cannot be taken away: %s", error)


def _touch(kind: str) -> None:
    """Leave a file as new as the sign: what checks the health of a container need not ask Redis.

    Outside of containers the file may be another account's, and nobody asks for it.
    """
    path = Path(tempfile.gettempdir()) / f"benchlab-{kind}"
    with suppress(PermissionError):
        opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        try:
            os.utime(opened)
        finally:
            os.close(opened)


def _name(kind: str) -> str:
    served = ",".join(settings.SITES) if kind == WORKER else ""
    return "|".join([kind, signs.process_name(), *([served] if served else [])])


def count_http_error(*, address: str) -> None:
    """Count one. Raises nothing, since the cause may be that Redis is away."""
    try:
        signs.redis_client().hincrby(signs.HTTP_ERRORS, address, 1)
    except (RedisError, OSError) as error:
        logger.warning("an error is not counted: %s", error)
