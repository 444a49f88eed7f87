"""Uploads at the same time, from real processes to real processes."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from random import Random

import psycopg
import pytest
from django.db import connection, transaction

from runs.access.services import projects, tokens
from runs.models import Campaign, Cell, CellSummary, Metric, Run, Upload
from tests.api.upload_bodies import run, text
from tests.api.web_server import ROOT, WebServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

TIMES = 60


@pytest.fixture(scope="module")
def web(django_db_setup, tmp_path_factory):
    with WebServer(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture
def token(db):
    return tokens.create(
        name="test", scopes=["upload"], project=projects.default()
    ).text


def posters(web, token, bodies, *, key, times):
    """Start a process for each body, and give what they all got: statuses and ids."""
    argv = [
        sys.executable,
        "-m",
        "tests.api.poster",
        str(web.port),
        token,
        key,
        str(times),
    ]
    started = [
        subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in bodies
    ]
    for process, body in zip(started, bodies, strict=True):
        process.stdin.write(text(body))
        process.stdin.close()
    statuses, ids = Counter(), []
    for process in started:
        found = json.loads(process.stdout.read())
        process.stdout.close()
        assert process.wait() == 0
        statuses.update(found["statuses"])
        ids += found["ids"]
    return statuses, ids


def test_two_processes_with_one_key_store_one_run(web, token):
    statuses, ids = posters(web, token, 2 * [run()], key="night-1", times=TIMES)

    assert statuses == {"201": 1, "200": 2 * TIMES - 1}
    assert Run.objects.count() == Upload.objects.count() == 1
    assert set(ids) == {Run.objects.get().pk}


def test_two_processes_without_a_key_store_repeats(web, token):
    statuses, _ids = posters(web, token, 2 * [run()], key="-", times=20)

    assert statuses == {"201": 40}
    repeats = Run.objects.order_by("repeat").values_list("repeat", flat=True)
    assert list(repeats) == list(range(1, 41))
    assert Cell.objects.count() == Campaign.objects.count() == 1
    assert set(CellSummary.objects.values_list("n", flat=True)) == {40}


def test_processes_that_make_cells_of_one_campaign_do_not_lock_each_other_out(
    web, token
):
    revisions = [f"{number:07x}" for number in range(1, 5)]
    bodies = [run(revision={"sha": sha}, labels={"of": sha}) for sha in revisions]

    statuses, _ids = posters(web, token, bodies, key="-", times=15)

    assert statuses == {"201": 60}
    assert Cell.objects.count() == 4
    assert set(Cell.objects.values_list("ordinal", flat=True)) <= {1, 2, 3, 4}
    assert set(CellSummary.objects.values_list("n", flat=True)) == {15}


def send_batch(web, token, number, *, key=None):
    """Start to send a batch from a thread, which ends when the answer or the end comes."""

    def send():
        connected = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }
        if key is not None:
            headers["Idempotency-Key"] = key
        body = text(
            {"runs": [run(levels={"clients": each + 1}) for each in range(number)]}
        )
        try:
            connected.request("POST", "/api/v1/uploads/batch/", body, headers)
            answers.append(connected.getresponse().status)
        except (OSError, http.client.HTTPException):
            answers.append(None)
        finally:
            connected.close()

    answers = []
    thread = threading.Thread(target=send)
    thread.start()
    return thread, answers


def wait_until_one_waits_for(table):
    """Until a connection waits for a lock on the table, in the midst of its transaction."""
    deadline = time.monotonic() + 30
    with psycopg.connect(
        **connection.get_connection_params(), autocommit=True
    ) as looking:
        while time.monotonic() < deadline:
            waiting = looking.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass",
                [table],
            ).fetchone()
            if waiting and waiting[0]:
                return
            time.sleep(0.05)
    raise AssertionError("nobody waits")


def test_a_worker_killed_in_the_middle_of_a_batch_leaves_nothing_of_it(web, token):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE runs_measurement IN SHARE MODE")
        thread, answers = send_batch(web, token, 300)
        wait_until_one_waits_for(
            "runs_measurement"
        )  # its runs are written, not committed
        for pid in web.workers():
            os.kill(pid, signal.SIGKILL)
        thread.join(60)

    assert answers == [None]
    deadline = time.monotonic() + 30
    while open_transactions() and time.monotonic() < deadline:
        time.sleep(0.1)
    for model in (Run, Cell, Campaign, Metric, CellSummary):
        assert not model.objects.exists(), model

    thread, answers = send_batch(web, token, 300)  # gunicorn has new workers by now
    thread.join(60)
    assert answers == [201]
    assert Run.objects.count() == 300


@pytest.mark.slow
def test_fifty_batches_at_once_are_stored_whole_and_each_key_once(web, token):
    senders = [
        send_batch(web, token, 20, key=f"night-{each % 25}") for each in range(50)
    ]
    for thread, _answers in senders:
        thread.join(120)

    assert Counter(answer for _thread, [answer] in senders) == {201: 25, 200: 25}
    assert Run.objects.count() == 25 * 20
    assert set(CellSummary.objects.values_list("n", flat=True)) == {25}


@pytest.mark.slow
def test_workers_killed_during_each_of_twenty_uploads_lose_and_double_nothing(
    web, token
):
    moments = Random(20)
    cut = 0
    for upload in range(20):
        status = None
        while status not in {200, 201}:
            thread, answers = send_batch(web, token, 100, key=f"job-{upload}")
            if status is None:
                time.sleep(moments.uniform(0, 0.5))
                for pid in web.workers():
                    os.kill(pid, signal.SIGKILL)
                status = 0
            thread.join(60)
            cut += answers == [None]
            status = answers[0] or 0

    assert cut >= 5
    assert Run.objects.count() == 20 * 100
    assert set(CellSummary.objects.values_list("n", flat=True)) == {20}


def open_transactions():
    """How many other connections to this database are within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]


def test_chunks_and_a_missing_slash_lose_nothing(web, token):
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Transfer-Encoding": "chunked",
    }
    body = text(run()).encode()
    half = len(body) // 2

    def sent(path, *parts):
        connected = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
        connected.request("POST", path, iter(parts), headers, encode_chunked=True)
        answer = connected.getresponse()
        found = (answer.status, json.loads(answer.read())["code"])
        connected.close()
        return found

    assert sent("/api/v1/uploads/", body[:half], body[half:]) == (201, "")
    assert sent("/api/v1/uploads", body) == (201, "")
    assert sent("/api/v1/uploads/", *[bytes(2**20)] * 11) == (413, "too_large")
    assert Run.objects.count() == 2
