"""A real gunicorn that serves the test's database, for what takes several processes."""

import http.client
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

ROOT = Path(__file__).parents[2]


class WebServer:
    """gunicorn with two worker processes, on a free port unless one is given."""

    def __init__(self, folder: Path, port: int = 0, threads: int = 1):
        self.log = folder / "gunicorn.log"
        self.port = port
        self.threads = threads
        self.process: subprocess.Popen | None = None

    def __enter__(self):
        address = urlsplit(os.environ["DATABASE_URL"])
        database = urlunsplit(
            address._replace(path=f"/{connection.settings_dict['NAME']}")
        )
        argv = (
            sys.executable,
            "-m",
            "gunicorn",
            "benchlab.wsgi:application",
            "--bind",
            f"127.0.0.1:{self.port}",
            "--workers",
            "2",
            "--no-control-socket",
            "--threads",
            str(self.threads),
            "--preload",
        )
        environment = {
            **os.environ,
            "DATABASE_URL": database,
            "DATABASE_CONN_MAX_AGE": "0",
            "BENCHLAB_RATE_TOKEN": "0",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, cwd=ROOT, env=environment, stderr=log)
        self._wait()
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        # gunicorn gives its workers 30 s.
        self.process.wait(60)

    def workers(self) -> list[int]:
        """The processes that answer."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in self.log.read_text().splitlines():
                if "Listening at" in line:
                    self.port = int(line.rpartition(":")[2].split()[0])
            if self.port and self._answers():
                return
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def _answers(self) -> bool:
        connected = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connected.request("GET", "/healthz/", headers={"Host": "localhost"})
            return connected.getresponse().status == 200
        except OSError:
            return False
        finally:
            connected.close()
