"""Codespeed (https://github.com/tobami/codespeed), by the addresses that its own client uses."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import psycopg

from benchmarks import services
from benchmarks.peers.service import (
    FORM,
    GUNICORN,
    Peer,
    Request,
    Result,
    connection_variables,
)

PROJECT, ENVIRONMENT, EXECUTABLE = "project", "server", "pgbench"
# Its sample project with PostgreSQL.
SETTINGS = """
from sample_project.settings import *

DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "sample_project.urls"
WSGI_APPLICATION = None
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "%s"}}
LOGGING_CONFIG = None
"""
APPLICATION = """
from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
"""
# Its client cannot make them; an administrator does.
OBJECTS = """
import django

django.setup()
from codespeed.models import Environment, Project

Environment.objects.create(name="{environment}")
Project.objects.create(name="{project}", repo_type="N", track=True, default_branch="default")
"""


@dataclass
class Codespeed(Peer):
    """Its sample project."""

    name = "Codespeed"
    source = "https://github.com/tobami/codespeed"
    landmark = "codespeed/results.py"
    packages = '"Django<2.2" isodate matplotlib psycopg2-binary gunicorn'

    @contextmanager
    def run(self) -> Iterator[None]:
        """Make its tables and let it answer; everybody may upload, as it is by default."""
        folder = self.logs / "codespeed"
        folder.mkdir()
        variables = connection_variables(self.database)
        (folder / "codespeed_settings.py").write_text(
            SETTINGS % variables["PGDATABASE"]
        )
        (folder / "codespeed_peer.py").write_text(APPLICATION)
        environment = {
            **os.environ,
            **variables,
            # What gunicorn and its libraries leave there ends with this.
            "HOME": str(folder),
            "DJANGO_SETTINGS_MODULE": "codespeed_settings",
            "PYTHONPATH": f"{self.checkout.resolve()}:{folder}",
            # Of Python's versions after its own.
            "PYTHONWARNINGS": "ignore",
        }
        objects = OBJECTS.format(environment=ENVIRONMENT, project=PROJECT)
        for arguments in (["-m", "django", "migrate", "-v", "0"], ["-c", objects]):
            subprocess.run(
                [self.python.absolute(), *arguments],
                cwd=folder,
                env=environment,
                check=True,
            )
        with services.gunicorn(
            self.logs,
            "codespeed_peer:application",
            # What it cannot load ends it at once.
            [*GUNICORN, "--preload"],
            python=self.python,
            environment=environment,
            folder_of_program=folder,
        ) as (self.port, self.pid):
            yield

    def upload(self, result: Result) -> Request:
        """Store a figure; of a known commit and case it takes the place of the one before."""
        body = urlencode(_result(result)).encode()
        return Request("/result/add/", body, FORM)

    def batch(self, results: Sequence[Result]) -> Request:
        """Store figures at once."""
        document = json.dumps([_result(result) for result in results])
        body = urlencode({"json": document}).encode()
        return Request("/result/add/json/", body, FORM)

    def page(self, sha: str) -> Request:
        """The table of a commit, a result a case."""
        return Request(
            f"/changes/table/?exe={self._id('executable')}&env={self._id('environment')}"
            f"&rev={sha}&tre=10"
        )

    def history(self, case: int) -> Request:
        """The line of a case over all its commits."""
        return Request(
            f"/timeline/json/?exe={self._id('executable')}&env={self._id('environment')}"
            f"&ben={_case(case)}&revs=1000&base=none"
        )

    def _id(self, table: str) -> int:
        """The only row's."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute(f"SELECT id FROM codespeed_{table}").fetchone()
        assert row
        return int(row[0])


def _case(case: int) -> str:
    return f"clients-{case + 1}"


def _result(result: Result) -> dict[str, object]:
    return {
        "commitid": result.sha,
        "branch": "default",
        "project": PROJECT,
        "executable": EXECUTABLE,
        "benchmark": _case(result.case),
        "environment": ENVIRONMENT,
        "result_value": result.value,
        "revision_date": result.committed_at.strftime("%Y-%m-%d %H:%M:%S"),
    }
