"""Real workers: what belongs to a site is taken by the worker that names it, and by no other."""

import os
import subprocess
import sys
import time

import pytest
from django.db import connection

from benchlab.celery import app
from runs.models import ServerCheck
from runs.selectors.operations import checks as readiness
from runs.selectors.operations import signs
from runs.services.servers import checks
from tests import factories
from tests.migrated import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# Where nobody listens: the worker that takes a check says so at once.
NOBODY = {"address": "127.0.0.1", "port": 9}


@pytest.fixture
def start(tmp_path):
    """A function that starts a worker of runs with these sites; all end with the test."""
    started = []

    def worker(site):
        where = connection.settings_dict
        url = f"{where['USER']}:{where['PASSWORD']}@{where['HOST']}:{where['PORT']}/{where['NAME']}"
        environment = os.environ | {
            "DATABASE_URL": f"postgresql://{url}",
            "BENCHLAB_SITES": site,
            "BENCHLAB_VAR": str(tmp_path),
        }
        argv = ["-m", "celery", "-A", "benchlab", "worker", "--queues", "runs", "--pool", "threads"]
        argv += ["--concurrency", "2", "--loglevel", "info", "--hostname", f"of-{site}@%h"]
        with (tmp_path / f"{site}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *argv], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        started.append(process)
        wait(lambda: any(site in each for each in readiness.sites_of_workers()))

    signs.redis_client().delete(signs.KEY)
    yield worker
    for process in started:
        process.terminate()
    for process in started:
        process.wait(30)
    signs.redis_client().delete(signs.KEY)
    app.control.purge()


def wait(is_so, seconds=60):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.2)


def state(check):
    return ServerCheck.objects.get(pk=check.pk).state


def test_only_the_worker_of_its_site_looks_at_a_server(start):
    here = checks.look_at(server=factories.server("here", **NOBODY))
    start("berlin")
    wait(lambda: state(here) == "failed")

    far = checks.look_at(server=factories.server("far", site="tokyo", **NOBODY))
    time.sleep(3)
    assert state(far) == "waiting"
    assert readiness.sites().status == readiness.WARNING

    start("tokyo")
    wait(lambda: state(far) == "failed")
    assert readiness.sites().status == readiness.OK
