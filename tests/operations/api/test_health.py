"""Whether BenchLab is well: what it answers of itself, also when Redis is silent."""

import json
import logging
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import redis
import yaml
from cryptography.fernet import Fernet
from django.conf import settings
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from psycopg_pool import PoolTimeout

from benchlab import logs
from benchlab.celery import app
from benchlab.database import base
from benchlab.database.turns import Turns
from benchlab.embedded.embedded_server import free_port
from runs import celery_messages
from runs.access.services import encryption
from runs.models import AuditEntry, Campaign, CheckedServer, Run, ServerCheck, SSHKey
from runs.operations.selectors import health_checks, prometheus, readiness
from runs.operations.services import signs as shown
from runs.shared import signs
from runs.workloads.services import scenarios
from tests import factories
from tests.api.upload_bodies import run

# What monitoring asks: /healthz, /readyz and /metrics.


@pytest.fixture
def nothing_known():
    """No test knows what the one before found, or showed."""
    shown._shown.clear()
    signs.redis_client().delete(signs.KEY, signs.HTTP_ERRORS)
    readiness.forget()


@pytest.fixture
def alive():
    shown.show(kind=shown.WORKER)
    shown.show(kind=shown.CONTROL)


@pytest.fixture
def administrator(db):
    return User.objects.create_superuser("root")


def ready(client, **fields):
    readiness.forget()
    answer = client.get("/readyz", **fields)
    return answer.status_code, answer.json()


def aged(kind, seconds):
    """As if the last sign of that kind was shown so long ago."""
    client = signs.redis_client()
    for name, _score in client.zrange(signs.KEY, 0, -1, withscores=True):
        if name.decode().startswith(kind):
            client.zincrby(signs.KEY, -seconds, name)


@contextmanager
def database_at(port):
    """The database as the checks find it."""
    before = connection.settings_dict["PORT"]
    connection.settings_dict["PORT"] = port
    try:
        yield
    finally:
        connection.settings_dict["PORT"] = before


@pytest.mark.usefixtures("nothing_known", "alive")
def test_a_worker_that_crashed_and_was_replaced_is_counted_and_no_alarm():
    client, before = signs.redis_client(), signs.counted("restarts").get("worker", 0)
    dead = subprocess.Popen(["true"])
    dead.wait()
    client.zadd(
        signs.KEY,
        {f"worker|{socket.gethostname()}:{dead.pid}": signs.redis_time(client)},
    )
    aged(f"worker|{socket.gethostname()}:{dead.pid}", 120)
    assert health_checks.workers().status == "warning"

    shown._shown.clear()
    shown.show(kind=shown.WORKER)
    found = health_checks.workers()
    assert (found.status, signs.counted("restarts")["worker"]) == ("ok", before + 1)
    assert f"{before + 1} that crashed were replaced" in found.reason


@pytest.mark.usefixtures("nothing_known", "alive")
@pytest.mark.django_db(transaction=True)
def test_servers_that_hold_runs_up_or_do_not_answer_are_named(client, administrator):
    client.force_login(administrator)
    faulty, silent, idle = (
        factories.server(name) for name in ("faulty", "silent", "idle")
    )
    for server in (faulty, idle):
        server.state, server.problem_code = "refused", "base_dir_not_writable"
        server.save()
    factories.run(
        factories.cell(factories.campaign(repeats=0), {}, repeats=0), server=faulty
    )
    since = timezone.now() - timedelta(minutes=5)
    check = ServerCheck.objects.create(
        kind="inspection", server=silent, state="active", deadline=timezone.now()
    )
    ServerCheck.objects.filter(pk=check.pk).update(asked_at=since)
    CheckedServer.objects.create(server=silent, server_check=check)

    _status, body = ready(client)
    assert body["checks"]["targets"] == "warning"
    told = str(body)
    assert "faulty (base_dir_not_writable)" in told
    assert "silent (does not answer)" in told
    assert "idle" not in told


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_what_is_there_is_ready_and_what_is_missing_is_named(client, alive, settings):
    assert ready(client)[0] == 200
    failing = {}
    aged("worker", 25)
    failing["workers"] = ready(client)
    aged("worker", -25)
    aged("control", 60)
    failing["control"] = ready(client)
    aged("control", -60)
    SSHKey.objects.create(
        name="k", public_key="k", private_key_encrypted=encryption.encrypt("x")
    )
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    failing["encryption key"] = ready(client)

    for check, (status, body) in failing.items():
        assert status == 503, check
        assert [name for name, each in body["checks"].items() if each != "ok"] == [
            check
        ]


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_or_silent_is_told_in_time(
    client, alive, administrator
):
    client.force_login(administrator)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        with database_at(silent.getsockname()[1]):  # nobody listens
            assert ready(client)[1]["checks"]["database"] == "failed"
        silent.listen()
        began = time.monotonic()
        with database_at(
            silent.getsockname()[1]
        ):  # takes connections, and says nothing
            status, body = ready(client)
        assert "details" in body  # who asks was known by the connection that there was
        assert time.monotonic() - began < readiness.PATIENCE_SECONDS + 1
    assert status == 503
    assert body["checks"]["database"] == "failed"


def test_connections_that_nobody_gets_are_told_until_somebody_gets_one(
    client, alive, monkeypatch
):
    waited = Turns()
    monkeypatch.setattr(health_checks, "turns", waited)
    monkeypatch.setattr(base, "turns", waited)
    assert health_checks.pages().status == health_checks.OK

    def no_turn(_self, _parameters):
        raise PoolTimeout

    with monkeypatch.context() as held:
        held.setattr(base.base.DatabaseWrapper, "get_new_connection", no_turn)
        wrapper = base.DatabaseWrapper({**connection.settings_dict}, "default")
        held.setattr(base.DatabaseWrapper, "pool", True)
        with pytest.raises(PoolTimeout):
            wrapper.get_new_connection({})
    assert 0 < waited.refused_seconds() < health_checks.MOST_REFUSED_SECONDS
    waited._refused_since -= health_checks.MOST_REFUSED_SECONDS
    monkeypatch.setattr(connection, "ensure_connection", lambda: None)
    monkeypatch.setattr(connection, "close", lambda: None)
    outcome = health_checks.pages()
    assert (outcome.check, outcome.status) == ("pages", health_checks.FAILED)

    waited.taken()
    assert health_checks.pages().status == health_checks.OK


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_missing_migration_and_a_newer_database_are_told(client, alive):
    assert health_checks.database().status == "ok"
    rename = "UPDATE django_migrations SET name = %s WHERE app = 'runs' AND name = %s"
    add = "INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_x', now())"
    with connection.cursor() as cursor:
        cursor.execute(rename, ["0000_x", "0055_partitions"])
        try:
            missing = health_checks.database()
            cursor.execute(rename, ["0055_partitions", "0000_x"])
            cursor.execute(add)
            newer = health_checks.database()
        finally:
            cursor.execute(rename, ["0055_partitions", "0000_x"])
            cursor.execute("DELETE FROM django_migrations WHERE name = '9999_x'")
    assert "0055_partitions" in missing.reason
    assert missing.remedy == "Run manage.py migrate."
    assert newer.status == "failed"
    assert "9999_x" in newer.reason


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_only_who_operates_learns_why(client, alive, administrator, make_token):
    assert "details" not in ready(client)[1]
    bearer = {
        "Authorization": f"Bearer {make_token('read', by=User.objects.create_user('jiro'))}"
    }
    assert "details" not in ready(client, headers=bearer | {"Accept": "text/html"})[1]
    assert "details" not in ready(client, headers={"Authorization": "Bearer wrong"})[1]
    client.force_login(User.objects.create_user("ichiro"))
    assert "details" not in ready(client)[1]
    client.force_login(administrator)
    details = ready(client)[1]["details"]
    assert {each["check"] for each in details} == set(ready(client)[1]["checks"])
    assert all(each["reason"] for each in details)


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_many_who_ask_cost_one_look(client, alive, monkeypatch):
    asked = []
    monkeypatch.setattr(
        readiness, "CHECKS", (lambda: asked.append(1) or health_checks.disk(),)
    )
    readiness.forget()
    for _each in range(20):
        client.get("/readyz")
    assert len(asked) == 1


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_check_that_hangs_is_not_asked_again(monkeypatch):
    asked = []
    monkeypatch.setattr(readiness, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(
        readiness, "CHECKS", (lambda: asked.append(1) or time.sleep(1),)
    )
    for _each in range(3):
        readiness.forget()
        [outcome] = readiness.get().outcomes
        assert outcome.status == "unknown"
    assert len(asked) == 1


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_full_or_closed_disk_is_told(settings, monkeypatch, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "not" / "yet"
    assert health_checks.disk().status in {"ok", "warning"}
    monkeypatch.setattr(health_checks, "LEAST_FREE_BYTES", 2**60)
    assert "MB are free" in health_checks.disk().reason
    assert health_checks.disk().status == "failed"


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_alive_needs_nothing_and_both_spellings_are_known(client):
    with database_at(1):
        assert client.get("/healthz").status_code == 200
    assert client.get("/healthz/").status_code == 200
    assert client.get("/readyz/").status_code in {200, 503}


def families(client, header):
    answer = client.get("/metrics", headers=header)
    assert answer.status_code == 200, answer.content
    return {
        sample.name
        + "".join(f",{name}={value}" for name, value in sample.labels.items()): (
            sample.value
        )
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_the_numbers_are_those_of_the_database(
    client, alive, make_token, administrator
):
    header = {"Authorization": f"Bearer {make_token('monitor', by=administrator)}"}
    done = factories.campaign("done", on=factories.server("db1"))
    factories.finish_all(done)
    waiting = factories.campaign("waiting", on=factories.server("db2"))
    signs.redis_client().hset(signs.HTTP_ERRORS, "home", 3)

    found = families(client, header)

    assert (
        found["benchlab_queue_runs,state=queued"]
        == waiting.runs.filter(state="queued").count()
    )
    assert found["benchlab_runs_made_total"] >= done.runs.count() + waiting.runs.count()
    assert found["benchlab_servers,state=ready"] == 2
    assert found["benchlab_http_errors_total,address=home"] == 3
    assert found["benchlab_ready,check=database"] == 1
    assert found["benchlab_database_bytes"] > 2**20
    assert found["benchlab_disk_free_bytes"] > 2**20
    assert found["benchlab_lease_silent_seconds"] >= 0
    counted = (
        f"benchlab_http_request_seconds_count,kind=watch,process={os.getpid()},status=2"
    )
    assert families(client, header)[counted] > found.get(counted, 0)
    [worker] = [
        name
        for name in found
        if name.startswith("benchlab_last_seen_seconds,kind=worker")
    ]
    assert found[worker] < 60


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_scrape_asks_as_often_for_many_runs(client, django_assert_max_num_queries):
    def queries():
        with django_assert_max_num_queries(40) as captured:
            prometheus.exposition()
        return len(captured)

    few = queries()
    factories.finish_all(factories.campaign("more", on=factories.server("db1")))
    assert queries() == few


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_metrics_are_for_who_operates(client, administrator, make_token):
    assert client.get("/metrics").status_code == 401
    user = User.objects.create_user("ichiro")

    def status(path, *scopes, **owner):
        header = {"Authorization": f"Bearer {make_token(*scopes, **owner)}"}
        return client.get(path, headers=header).status_code

    # Without an owner, as `manage.py create_token` makes them, the scopes alone decide.
    for owner in ({}, {"by": administrator}):
        assert status("/metrics", "read", "upload", "queue", "server", **owner) == 403
        assert status("/metrics", "monitor", **owner) == 200
        assert status("/api/v1/runs/", "monitor", **owner) == 403
    assert status("/metrics", "read", by=user) == 403
    assert status("/metrics", "admin") == 200
    client.force_login(administrator)
    assert client.get("/metrics").status_code == 200


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_a_line_is_an_object_with_request_and_run(client, caplog):
    caplog.handler.addFilter(logs.Context())
    caplog.set_level("INFO", "benchlab.requests")
    answer = client.get("/healthz", headers={"X-Request-ID": "from-the-proxy"})
    other = client.get("/healthz", headers={"X-Request-ID": "two\nlines"})
    with logs.bind_run(7):
        try:
            raise OSError("full\ndisk")
        except OSError:
            logging.getLogger("runs").exception("cannot be stored")
    first, *_between, last = [
        json.loads(logs.JSONFormatter().format(record)) for record in caplog.records
    ]

    assert answer.headers["X-Request-ID"] == "from-the-proxy"
    assert len(other.headers["X-Request-ID"]) == 32
    assert (first["request_id"], first["address"], first["status"]) == (
        "from-the-proxy",
        "healthz",
        200,
    )
    assert last["run_id"] == 7
    assert "full\ndisk" in last["exception"]
    assert "request_id" not in last


class Exposed(BaseHTTPRequestHandler):
    """Answers with the text that Prometheus reads."""

    text = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_words):
        pass


@contextmanager
def scraping(text, folder):
    """A function that asks a real Prometheus, which has read the text three times by then."""
    handler = type("Handler", (Exposed,), {"text": text})
    port = free_port()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        targets = [{"targets": [f"127.0.0.1:{server.server_port}"]}]
        jobs = [{"job_name": "benchlab", "static_configs": targets}]
        whole = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(json.dumps(whole))
        command = ["prometheus", f"--config.file={folder}/prometheus.yml"]
        command += [
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)

        def ask(expression):
            query = urlencode({"query": expression})
            with urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}") as answer:
                return json.load(answer)["data"]["result"]

        try:
            while process.poll() is None:
                with suppress(OSError):
                    if ask("count_over_time(benchlab_ready[5m]) >= 3"):
                        break
                time.sleep(0.2)
            assert process.poll() is None, (folder / "log").read_text()
            yield ask
        finally:
            process.kill()
            process.wait()
            server.shutdown()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="no Prometheus here")
@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_prometheus_answers_each_query_of_the_dashboard(alive, tmp_path):
    factories.finish_all(factories.campaign("done", on=factories.server("db1")))
    factories.campaign("waiting", on=factories.server("db2"))
    signs.redis_client().hset(signs.HTTP_ERRORS, "home", 3)
    text = prometheus.exposition()
    samples = {
        sample.name
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    dashboard = json.loads(
        (Path(settings.BASE_DIR) / "deploy/grafana-dashboard.json").read_text()
    )
    expressions = [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]
    with scraping(text, tmp_path) as ask:
        empty = [
            expression
            for expression in expressions
            if not ask(expression)
            and samples & set(re.findall(r"benchlab_\w+", expression))
        ]
    assert len(expressions) >= 12
    assert empty == []


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_the_dashboard_draws_metrics_that_there_are(alive):
    """Families without a row now are known by their comment."""
    text = prometheus.exposition().decode()
    dashboard = json.loads(
        (Path(settings.BASE_DIR) / "deploy/grafana-dashboard.json").read_text()
    )
    drawn = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"benchlab_\w+", target["expr"])
    }
    assert len(drawn) >= 12
    assert [name for name in drawn if f"# HELP {name} " not in text] == []


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.django_db(transaction=True)
def test_alerts_ask_for_metrics_that_there_are(alive):
    text = prometheus.exposition().decode()
    rules = yaml.safe_load(
        (Path(settings.BASE_DIR) / "deploy/prometheus-rules.yml").read_text()
    )
    asked = {
        re.sub("_(total|bucket)$", "", name)
        for group in rules["groups"]
        for rule in group["rules"]
        for name in re.findall(r"benchlab_\w+", rule["expr"])
    }
    assert len(asked) > 6
    assert [name for name in asked if f"# HELP {name}" not in text] == []
    # A state that no rule or run has is a zero, and each state that a rule names is one.
    states = {
        state
        for group in re.findall(r'state=~"([^"]+)"', str(rules))
        for state in group.split("|")
    }
    assert [
        state
        for state in states
        if f'benchlab_queue_runs{{state="{state}"}} 0' not in text
    ] == []


@pytest.mark.django_db(transaction=True)
def test_a_backup_that_is_missing_or_old_is_a_warning():
    def told():
        found = health_checks.backup()
        return found.status, found.reason

    def at(hours, action="x"):
        moment = timezone.now() - timedelta(hours=hours)
        AuditEntry.objects.create(action=action, subject="y", at=moment)

    assert told() == ("ok", "Nothing had to be backed up yet.")
    at(40)
    assert told() == ("warning", "manage.py backup has made no backup yet.")
    at(39, "backup_made")
    assert told() == ("warning", "The newest backup is 39 hours old.")
    at(2, "backup_made")
    assert told() == ("ok", "The newest backup is 2 hours old.")
    assert "benchlab_backup_age_seconds 72" in prometheus.exposition().decode()


# A Redis that accepts and does not answer: requests end, and what they brought is stored.


DESIGN = {
    "title": "16 and 18",
    "scenario": "fixed-point-read",
    "server": "db1",
    "parameters": {"scale": 1, "duration": 2},
}
# The limit of requests waits for a second, the first message for two.
PATIENCE_S = 4.5


@pytest.fixture
def own_memory(monkeypatch):
    """No test knows what the one before found of Redis."""
    monkeypatch.setattr(celery_messages, "_silent", {"until": 0.0})
    monkeypatch.setattr(celery_messages, "_sent", {})


@contextmanager
def silenced():
    """The tests' own Redis, stopped: its kernel still takes connections and what is sent."""
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        process = int(client.info("server")["process_id"])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.fixture
def server(db):
    scenarios.sync()
    made = factories.server("db1")
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


@pytest.mark.usefixtures("own_memory")
@pytest.mark.django_db
def test_an_upload_and_a_campaign_are_stored_while_redis_is_silent(
    client, bearer, server, settings, django_capture_on_commit_callbacks
):
    settings.RATE_TOKEN = 1000
    answers, began = [], time.monotonic()
    with silenced():
        for path, body in (("uploads/", run()), ("campaigns/", DESIGN)):
            with django_capture_on_commit_callbacks(execute=True) as callbacks:
                answers.append(
                    client.post(
                        f"/api/v1/{path}", body, "application/json", headers=bearer
                    )
                )
            assert callbacks
    took = time.monotonic() - began

    assert [answer.status_code for answer in answers] == [201, 201]
    assert Run.objects.filter(origin="uploaded").count() == 1
    assert Campaign.objects.get(origin="executed").runs.filter(state="queued").exists()
    assert 2 < took < 2 * PATIENCE_S


@pytest.mark.usefixtures("own_memory")
@pytest.mark.django_db
def test_a_silent_redis_is_waited_for_once_and_then_used_again(monkeypatch):
    took = []
    with silenced():
        for _ in range(3):
            began = time.monotonic()
            celery_messages._send(celery_messages.SEND_MAILS)
            took.append(time.monotonic() - began)
    assert took[0] > 1
    assert max(took[1:]) < 0.1

    monkeypatch.setitem(celery_messages._silent, "until", 0.0)
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        before = client.llen("control")
        celery_messages._send(celery_messages.SEND_MAILS)
        assert client.llen("control") > before


@pytest.mark.usefixtures("own_memory")
@pytest.mark.django_db
def test_only_senders_are_impatient():
    """A worker waits for messages in BRPOP, as long as there are none."""
    with app.connection_for_read() as reading, app.connection_for_write() as writing:
        assert "socket_timeout" not in reading.transport_options
        assert writing.transport_options["socket_timeout"] == 2


@pytest.mark.usefixtures("nothing_known")
def test_what_cannot_be_asked_is_unknown_and_has_one_cause(
    client, alive, settings, monkeypatch
):
    """A frozen database: no other check is said to have failed, and monitoring still hears."""
    settings.MONITOR_TOKEN = "of the monitoring"
    header = {"Authorization": f"Bearer {settings.MONITOR_TOKEN}"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # The threads of checks have connections of their own, with the same settings.
        for name, value in zip(("HOST", "PORT"), silent.getsockname(), strict=True):
            monkeypatch.setitem(connection.settings_dict, name, value)
        readiness.forget()
        signs.redis_client().delete(signs.KEY)  # control waits for the database as well
        answer = client.get("/readyz", headers=header)
        assert answer.status_code == 503
        failed = {
            name
            for name, status in answer.json()["checks"].items()
            if status == "failed"
        }
        assert failed == {"database", "workers"}
        assert answer.json()["checks"]["encryption key"] == "unknown"
        assert "details" in answer.json()
        began = time.monotonic()
        found = families(client, header)
        assert time.monotonic() - began < 3
    assert found["benchlab_ready,check=database"] == 0
    assert math.isnan(found["benchlab_ready,check=encryption key"])
    assert not any(name.startswith("benchlab_queue_runs") for name in found)
    readiness.forget()


def test_the_token_of_monitoring_opens_nothing_else(client, settings):
    settings.MONITOR_TOKEN = ""
    assert (
        client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401
    )
    settings.MONITOR_TOKEN = "of the monitoring"
    header = {"Authorization": f"Bearer {settings.MONITOR_TOKEN}"}
    for address in ("/api/v1/audit/", "/api/v1/uploads/"):
        method = client.post if "uploads" in address else client.get
        assert method(address, headers=header).status_code == 403, address
