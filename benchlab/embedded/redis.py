"""The embedded Redis: Celery's messages, which may be lost without loss of results."""

import re
import secrets
from functools import cached_property
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from benchlab.embedded.embedded_server import EmbeddedServer
from benchlab.embedded.places import kept_secret
from benchlab.embedded.processes import Program

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{data}"
appendonly no
save 60 1
stop-writes-on-bgsave-error no
daemonize no
# It looks for what has expired once a second, not ten times.
hz 1
# Messages have no time to live; answers of the cache have, and make room.
maxmemory 256mb
maxmemory-policy volatile-lru
{without}
"""

# What reaches the engines of scripts. Those of the wheels are old and have known holes.
SCRIPTS = ("EVAL", "EVALSHA", "SCRIPT")
SCRIPTS_SINCE_7 = ("EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "FUNCTION")
_VERSION = re.compile(r"\bv=(\d+)\.")


class EmbeddedRedis(EmbeddedServer):
    """A Redis with a password; `folder` keeps it and the data."""

    name = "redis"

    def __init__(self, binary: Path, folder: Path, **options: Any):
        super().__init__(folder, **options)
        self.binary = binary
        self.data = self.folder / "data"

    @property
    def url(self) -> str:
        """For REDIS_URL; carries the password."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    @cached_property
    def _password(self) -> str:
        # Kept in memory: a caller with the server's account must not read the file.
        return kept_secret(self.folder / "password", lambda: secrets.token_urlsafe(24))

    def prepare(self) -> None:
        """Make the folders."""
        super().prepare()
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.account.take_over(self.data)

    def program(self) -> Program:
        """The server. It takes its settings from standard input: no password in argv."""
        without = "\n".join(
            f'rename-command {script_command} ""'
            for script_command in self._script_commands()
        )
        settings = CONFIGURATION.format(
            port=self.port, password=self._password, data=self.data, without=without
        )
        return self.build_program([self.binary, "-"], stdin=settings.encode())

    def _script_commands(self) -> tuple[str, ...]:
        """Those that this version has: it does not start if told to rename others."""
        version_match = _VERSION.search(
            self.account.printed(self.binary, "--version")[1]
        )
        return (
            SCRIPTS
            if version_match is None or int(version_match[1]) < 7
            else SCRIPTS + SCRIPTS_SINCE_7
        )

    def is_heard(self) -> bool:
        """Whether it answers with our password."""
        # the client's own retries would make a stop wait
        once = Retry(NoBackoff(), 0)
        with redis.Redis.from_url(
            self.url, socket_connect_timeout=5, retry=once
        ) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False
