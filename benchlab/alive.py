"""`python -m benchlab.alive worker`: 0 while this container's worker or control lives."""

import os
import socket
import sys
from pathlib import Path
from typing import cast

import environ
import redis

from runs.selectors.operations import signs

PATIENCE_SECONDS = 30.0


def main() -> int:
    """Ask Redis for the last sign of life of a process of this kind on this host."""
    kept = Path(os.environ.get("BENCHLAB_VAR", "var")) / "environment"
    if "REDIS_URL" not in os.environ and kept.exists():
        environ.Env.read_env(kept)
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    client = redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)
    try:
        now = signs.redis_time(client)
        found = cast(list[tuple[bytes, float]], client.zrange(signs.KEY, 0, -1, withscores=True))
    except (redis.RedisError, OSError) as error:
        print(f"BenchLab: Redis does not answer: {error}", file=sys.stderr)
        return 1
    mine = f"{sys.argv[1]}|{socket.gethostname()}:".encode()
    ages = [now - at for name, at in found if name.startswith(mine)]
    if min(ages, default=PATIENCE_SECONDS) < PATIENCE_SECONDS:
        return 0
    print(f"BenchLab: no sign of life of {sys.argv[1]} on this host", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
