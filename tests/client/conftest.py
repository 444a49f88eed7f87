"""The upload client as a program, a real server for it, and the PostgreSQL that it measures."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from runs.access.services import projects, tokens
from tests.api.web_server import ROOT, WebServer

CLIENT = ROOT / "script" / "benchlab-upload"
# pyenv finds out at each start which Python is meant, by forty programs: its choice comes first.
PATH = f"{Path(sys.base_prefix, 'bin')}:{os.environ['PATH']}"
# Of the CI that runs these tests, which must not find its way into them.
NOT_OURS = (
    "GITHUB",
    "GITLAB",
    "CI",
    "BUILDKITE",
    "JENKINS",
    "GIT_",
    "PG",
    "BENCHLAB",
    "XDG",
)


@dataclass(frozen=True)
class Done:
    """What a program has left."""

    status: int
    out: str
    err: str


@pytest.fixture
def bindir() -> Path:
    """Where psql and pgbench of the tests' PostgreSQL are."""
    folder = Path(os.environ["BENCHLAB_TEST_FOLDER"])
    return postgresql_binaries(folder, service_account()).postgresql18


@pytest.fixture
def connected(bindir) -> dict[str, str]:
    """The environment in which psql and pgbench find the tests' PostgreSQL."""
    address = urlsplit(os.environ["DATABASE_URL"])
    return {
        "PATH": f"{bindir}:{PATH}",
        "PGHOST": address.hostname,
        "PGPORT": str(address.port),
        "PGUSER": address.username,
        "PGPASSWORD": address.password,
        "PGDATABASE": address.path.strip("/"),
    }


@pytest.fixture
def plain(tmp_path) -> dict[str, str]:
    """An environment without CI, PostgreSQL and BenchLab."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(NOT_OURS)
    }
    return kept | {
        "PATH": PATH,
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def upload(plain, tmp_path):
    """Run the client in an empty folder and give what it left."""
    return _runs([str(CLIENT)], plain, tmp_path)


@pytest.fixture
def pair(plain, tmp_path):
    """The same of `benchlab-pair`."""
    environment = plain | {"PYTHONPATH": str(ROOT)}
    return _runs(["-m", "runs.pair.command"], environment, tmp_path)


def _runs(program: list[str], own: dict[str, str], folder: Path):
    def ran(*argv, stdin="", **environment) -> Done:
        done = subprocess.run(
            [sys.executable, "-W", "error", *program, *map(str, argv)],
            cwd=folder,
            env=own | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return ran


@pytest.fixture
def token(transactional_db) -> str:
    call_command("sync_scenarios", verbosity=0)
    return tokens.create(
        name="ci", scopes=["read", "upload"], project=projects.default()
    ).text


@pytest.fixture(scope="package")
def running(django_db_setup, tmp_path_factory):
    """A server for all tests of this folder, over whatever its database holds at the moment.

    One process runs them: tests/conftest.py.
    """
    with WebServer(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture
def web(transactional_db, running):
    """A server that answers."""
    return running


@pytest.fixture
def reach(web, token) -> dict[str, str]:
    """The environment in which the client finds the server."""
    return {"BENCHLAB_URL": f"http://127.0.0.1:{web.port}", "BENCHLAB_TOKEN": token}
