"""A request ends: with its process, when it works for longer than any may."""

import http.client
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from benchlab import request_time
from benchlab.request_time import Requests

ROOT = Path(__file__).parents[2]


class Clock:
    """A clock that runs on when it is told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


class Body:
    """A body that takes a while to come."""

    def __init__(self, clock):
        self.clock = clock

    def read(self, *_arguments):
        self.clock.now += 1000
        return b""


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(request_time, "time", clock)
    return clock


def environment(clock, path="/", query=""):
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "wsgi.input": Body(clock),
    }


def test_only_the_applications_own_work_counts(clock):
    seen = []

    def application(environment, _start):
        environment["wsgi.input"].read()
        seen.append(requests.overdue())
        for part in (b"a", b"b"):
            clock.now += 50
            seen.append(requests.overdue())
            yield part

    requests = Requests(application)
    parts = requests(environment(clock), None)
    for _part in parts:
        clock.now += 1000  # the client reads slowly
        seen.append(requests.overdue())
    clock.now += 1000
    assert seen == [None] * 5
    parts.close()


def test_a_request_that_works_for_too_long_is_named(clock):
    def application(_environment, _start):
        clock.now += request_time.SECONDS + 1
        found.append(requests.overdue())
        return []

    found = []
    requests = Requests(application)
    requests(environment(clock, "/invitations/secret/"), None).close()
    assert found[0].seconds(clock.now) > request_time.SECONDS
    said = request_time.described(found[0])
    assert "GET" in said
    assert "secret" not in said
    assert requests.overdue() is None
    # An export reads it all.
    found.clear()
    requests(environment(clock, query="format=csv"), None).close()
    assert found == [None]


def test_a_request_that_fails_is_forgotten(clock):
    def application(_environment, _start):
        return 1 / 0

    requests = Requests(application)
    with pytest.raises(ZeroDivisionError):
        requests(environment(clock), None)
    clock.now += 1000
    assert requests.overdue() is None


def test_the_process_of_a_stuck_request_is_replaced_and_the_request_logged(tmp_path):
    log = tmp_path / "log"
    argv = [sys.executable, "-m", "gunicorn", "tests.stuck_application:application"]
    argv += [
        "--config",
        "python:benchlab.gunicorn",
        "--bind",
        "127.0.0.1:0",
        "--workers",
        "1",
    ]
    with log.open("wb") as stderr:
        server = subprocess.Popen(argv, cwd=ROOT, env=dict(os.environ), stderr=stderr)
    try:
        port = port_of(log)
        first = answer(port)
        stuck = threading.Thread(target=ask_in_vain, args=(port,), daemon=True)
        stuck.start()
        while (other := answer(port)) == first:
            assert server.poll() is None
            time.sleep(0.1)
        assert other.isdigit()
        stuck.join()
        assert "A request is ended with its process: GET ?" in log.read_text()
        assert "stuck_application.py" in log.read_text()
    finally:
        server.terminate()
        server.wait()


def port_of(log):
    while "Listening at" not in log.read_text():
        time.sleep(0.05)
    line = next(line for line in log.read_text().splitlines() if "Listening at" in line)
    return int(line.rpartition(":")[2].split()[0])


def answer(port):
    """What the application says; while its process is replaced nobody says anything."""
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/") as response:
                return response.read().decode()
        except (URLError, OSError):
            time.sleep(0.1)


def ask_in_vain(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/stuck")
    try:
        connection.getresponse()
    except OSError:
        connection.close()
