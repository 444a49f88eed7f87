"""Conbench (https://github.com/conbench/conbench), by the address that its clients use."""

import http.client
import json
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import psycopg

from benchmarks import services
from benchmarks.peers.service import (
    CASES,
    GUNICORN,
    JSON,
    Peer,
    Request,
    Result,
    connection_variables,
)

USER = {
    "email": "peers@example.org",
    "password": "peers",
    "name": "peers",
    "secret": "conbench",
}
# It asks GitHub for each new commit; here a server of this process answers, whose CPU is nobody's.
# What it is built from stands in a file at the root of its image, and its version in an installed
# package: it has neither here. Its periodic jobs are not started.
APPLICATION = """
import logging
from conbench import buildinfo

buildinfo.BUILD_INFO = buildinfo.Buildinfo("", "", "", "", "")
from conbench import create_application
from conbench.config import Config
from conbench.entities import commit

commit.GITHUB = "http://127.0.0.1:{port}"
application = create_application(Config)
for name in (None, "conbench"):
    logging.getLogger(name).setLevel(logging.WARNING)
"""
# A history has the address of one of its results.
NEWEST = (
    "SELECT benchmark_result.id FROM benchmark_result"
    ' JOIN "case" ON "case".id = benchmark_result.case_id'
    " WHERE \"case\".tags ->> 'clients' = %s ORDER BY benchmark_result.id DESC LIMIT 1"
)
PACKAGE = "Metadata-Version: 2.1\nName: conbench\nVersion: 0\n"
MACHINE = {
    "architecture_name": "x86_64",
    "cpu_l1d_cache_bytes": "32768",
    "cpu_l1i_cache_bytes": "32768",
    "cpu_l2_cache_bytes": "524288",
    "cpu_l3_cache_bytes": "33554432",
    "cpu_core_count": "32",
    "cpu_frequency_max_hz": "0",
    "cpu_model_name": "EPYC",
    "cpu_thread_count": "64",
    "gpu_count": "0",
    "gpu_product_names": [],
    "kernel_name": "6.12",
    "memory_bytes": str(2**37),
    "name": "server",
    "os_name": "Debian",
    "os_version": "13",
}


class GitHub(BaseHTTPRequestHandler):
    """Every commit is on the default branch, and as late as its number says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A repository, a commit, where it left the default branch, or no commits between."""
        path = urlsplit(self.path).path
        sha = path.rpartition("/")[2].rpartition("...")[2].rpartition(":")[2]
        answer: object
        if "/compare/" in path:
            answer = {"merge_base_commit": {"sha": sha}}
        elif path.endswith("/commits"):
            answer = []
        elif "/commits/" in path:
            answer = _commit(sha)
        else:
            answer = {
                "fork": False,
                "owner": {"login": "acme"},
                "default_branch": "main",
            }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def _commit(sha: str) -> dict[str, object]:
    number = int(sha, 16)
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    author = {"name": "author", "date": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {
        "sha": sha,
        "commit": {"author": author, "message": "message"},
        "author": {"login": "author", "avatar_url": "avatar"},
        "parents": [{"sha": f"{number - 1:040x}"}],
    }


@dataclass
class Conbench(Peer):
    """Its web application, without the jobs that refresh its memory every few minutes."""

    name = "Conbench"
    source = "https://github.com/conbench/conbench"
    landmark = "conbench/entities/benchmark_result.py"
    packages = '-r requirements-webapp.txt "SQLAlchemy<2.1" "pandas<3" "marshmallow<4"'

    @contextmanager
    def run(self) -> Iterator[None]:
        """Let it answer, to a user who is logged in."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder = self.logs / "conbench"
        package = folder / "conbench-0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text(PACKAGE)
        (folder / "conbench_peer.py").write_text(
            APPLICATION.format(port=server.server_port)
        )
        variables = connection_variables(self.database)
        environment = {
            **os.environ,
            "DB_HOST": variables["PGHOST"],
            "DB_PORT": variables["PGPORT"],
            "DB_USERNAME": variables["PGUSER"],
            "DB_PASSWORD": variables["PGPASSWORD"],
            "DB_NAME": variables["PGDATABASE"],
            "CONBENCH_INTENDED_BASE_URL": "http://127.0.0.1/",
            # What gunicorn and its libraries leave there ends with this.
            "HOME": str(folder),
            "GITHUB_API_TOKEN": "x" * 40,
            "PROMETHEUS_MULTIPROC_DIR": str(folder),
            "PYTHONPATH": f"{self.checkout.resolve()}:{folder}",
        }
        with services.gunicorn(
            self.logs,
            "conbench_peer:application",
            # What it cannot load ends it at once.
            [*GUNICORN, "--preload"],
            python=self.python,
            environment=environment,
            folder_of_program=folder,
        ) as (self.port, self.pid):
            self._log_in()
            yield
        server.shutdown()

    def _log_in(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        for path in ("register", "login"):
            fields = ("email", "password") if path == "login" else tuple(USER)
            body = json.dumps({name: USER[name] for name in fields})
            connection.request("POST", f"/api/{path}/", body, {"Content-Type": JSON})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= http.client.MULTIPLE_CHOICES:
                raise SystemExit(f"{self.name}: {path}: {content.decode()}")
        cookie = answer.getheader("Set-Cookie") or ""
        self.headers = {"Cookie": cookie.partition(";")[0]}
        connection.close()

    def upload(self, result: Result) -> Request:
        """Store a result with one figure."""
        document = {
            "run_id": f"run-{result.sha}",
            "run_name": "commit",
            "run_reason": "commit",
            "batch_id": uuid.uuid4().hex,
            "timestamp": "2026-01-31T02:00:00Z",
            "context": {"compiler": "gcc"},
            "info": {"version": "18.1"},
            "github": {
                "repository": "https://github.com/acme/project",
                "commit": result.sha,
                "branch": None,
                "pr_number": None,
            },
            "machine_info": MACHINE,
            "stats": {
                "data": [result.value],
                "times": [1],
                "unit": "i/s",
                "time_unit": "s",
                "iterations": 1,
            },
            "tags": {"name": "pgbench", "clients": str(result.case + 1)},
        }
        return Request("/api/benchmark-results/", json.dumps(document).encode())

    def batch(self, results: Sequence[Result]) -> None:
        """It takes one result at a time."""

    def page(self, sha: str) -> Request:
        """The newest results."""
        return Request(f"/api/benchmark-results/?page_size={CASES}")

    def history(self, case: int) -> Request:
        """All results that are comparable with the newest one of the case."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute(NEWEST, (str(case + 1),)).fetchone()
        assert row
        return Request(f"/api/history/{row[0]}/")
