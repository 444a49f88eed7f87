"""What BenchLab's processes share in Redis; `runs.operations.services.signs` writes it."""

import json
import os
import socket
from dataclasses import dataclass
from functools import cache
from typing import cast

from django.conf import settings
from redis import Redis

KEY = "benchlab:signs-of-life"
# Of which release each process is, by its name.
RELEASES = "benchlab:releases"
# How often a worker put a claim back because a server could not be used, by both.
PUT_BACK = "benchlab:put-back"
HTTP_ERRORS = "benchlab:http-errors"
# How often a process took the place of one that had not said that it ends, by kind.
RESTARTS = "benchlab:restarts"


@dataclass(frozen=True)
class Sign:
    """One process, the seconds since its last sign of life, and the sites that it serves."""

    kind: str
    process: str
    age: float
    sites: tuple[str, ...] = ()


@cache
def redis_client() -> Redis:
    """This process's connections to Redis, with a timeout of one second."""
    return Redis.from_url(
        settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
    )


def redis_time(client: Redis) -> float:
    """The time of Redis, in seconds since 1970."""
    seconds, microseconds = client.time()
    return seconds + microseconds / 1e6


def host_name() -> str:
    """The name of this host: a joined one has a name that no other has."""
    return settings.HOST_NAME or socket.gethostname()


def process_name() -> str:
    """The name of this process in signs of life, and as holder of leases."""
    return f"{host_name()}:{os.getpid()}"


def signs() -> list[Sign]:
    """All signs of the last day, by kind and process. Raises RedisError, OSError."""
    client = redis_client()
    now = redis_time(client)
    signs_found = []
    rows = cast(list[tuple[bytes, float]], client.zrange(KEY, 0, -1, withscores=True))
    for name, reported_at in rows:
        kind, process, *sites = name.decode().split("|")
        served = tuple(sites[0].split(",")) if sites else ()
        signs_found.append(Sign(kind, process, max(0.0, now - reported_at), served))
    return sorted(signs_found, key=lambda sign: (sign.kind, sign.process))


def releases_of_processes() -> dict[str, str]:
    """The release of each process by its name. Raises RedisError, OSError."""
    rows = cast(dict[bytes, bytes], redis_client().hgetall(RELEASES))
    return {process.decode(): release.decode() for process, release in rows.items()}


def count_put_back(*, server: str) -> None:
    """Count a claim that this worker put back. Raises RedisError, OSError."""
    field = json.dumps([process_name(), server])
    redis_client().hincrby(PUT_BACK, field, 1)


def put_back() -> list[tuple[str, str, int]]:
    """Claims put back: process, server and how many. Raises RedisError, OSError."""
    rows = cast(dict[bytes, bytes], redis_client().hgetall(PUT_BACK))
    counts = [(*json.loads(field), int(number)) for field, number in rows.items()]
    return [(str(process), str(server), number) for process, server, number in counts]


def counted(name: str) -> dict[str, int]:
    """`restarts` by kind of process, `http_errors` by address. Raises RedisError, OSError."""
    counts = cast(
        dict[bytes, bytes], redis_client().hgetall(f"benchlab:{name.replace('_', '-')}")
    )
    return {label.decode(): int(number) for label, number in counts.items()}
