"""A PostgreSQL and a Redis of a measurement's own, without the rest of an instance."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries, redis_server
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchlab.embedded.redis import EmbeddedRedis


@contextmanager
def own_services(folder: Path) -> Iterator[tuple[EmbeddedPostgreSQL, EmbeddedRedis]]:
    """Both, running, with their data in `folder`, which stays; its user can enter it."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    account = service_account()
    binaries = postgresql_binaries(folder, account)
    postgresql = EmbeddedPostgreSQL(binaries.postgresql18, folder / "pg", account=account)
    redis = EmbeddedRedis(redis_server(folder, account), folder / "redis", account=account)
    try:
        postgresql.start()
        redis.start()
        yield postgresql, redis
    finally:
        redis.stop()
        postgresql.stop()
