"""Uploads through gunicorn, compared with a bare handler, and with COPY into the same tables.

    .venv/bin/python -m benchmarks.ingest [--singles 500] [--batches 20] [--pairs 3]

Starts an embedded PostgreSQL and Redis, and gunicorn as the composition does (`WEB_CONCURRENCY=2`
for two processes). Prints p50 and p95 of single uploads one after another, and their CPU, that of
the application and of PostgreSQL: for runs of known cells, and for those of a new commit, which
every upload of CI is. The latter are sent in turns to `benchmarks.bare_handler`, which stores the
same rows. Then runs a second and CPU of batches of 1,000, sent by one client and by two at a time;
and how fast PostgreSQL by itself takes the same rows.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from cryptography.fernet import Fernet

from benchmarks.own_services import own_services

# What runs of all uploads say alike.
UPLOADED: dict[str, object] = {
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "hardware": {"cpu_model": "EPYC", "cores": 32, "memory_bytes": 2**37},
    "environment": {"os_name": "Debian 13", "kernel": "6.12"},
    "postgresql": {"version": "18.1"},
    "tool": {"name": "pgbench", "version": "18.1"},
}
ROOT = Path(__file__).parents[1]
BATCH = 1000
CELLS = 100  # of each revision, so with ten repeats each
TICK = os.sysconf("SC_CLK_TCK")
RUN = (
    "id, campaign_id, cell_id, repeat, position, origin, state, code, message, remedy, attempt,"
    " server_version, tool_name, tool_version, quality, external_id, labels, queued_at, started_at"
)
COPIED = (("runs_run", RUN), ("runs_measurement", "run_id, metric_id, value, n, statistic"))


def main() -> None:
    """Measure and print."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    try:
        with own_services(folder) as (postgresql, redis):
            environment = _environment(postgresql.url, redis.url, folder)
            token = _prepare(environment)
            with _gunicorn(environment, folder) as (port, pid):
                client = Client(port, token)
                pids = [pid, postgresql.pid or 0]
                bodies = [_body(_run(number, options)) for number in range(options.singles)]
                _singles("of known cells", client, bodies, pids)
                client.post("uploads/", _body(_run(0, options) | {"campaign": "bare"}))
                with _bare(environment, postgresql.url, folder) as (bare_port, bare_pid):
                    bare = (Client(bare_port, ""), [bare_pid, postgresql.pid or 0])
                    _pairs((client.again(), pids), bare, options)
                _batches(client, options, pids)
            _copy(postgresql.url, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Client:
    """Uploads over one connection that stays open."""

    def __init__(self, port: int, token: str):
        self.port, self.token = port, token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def again(self) -> "Client":
        """Another client of the same server."""
        return Client(self.port, self.token)

    def post(self, path: str, body: bytes) -> None:
        """Upload. Ends the benchmark when it is refused."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self._connection.request("POST", f"/api/v1/{path}", body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != http.client.CREATED:
            raise SystemExit(f"{answer.status}: {content.decode()}")


def _pairs(
    ours: tuple[Client, list[int]], bare: tuple[Client, list[int]], options: argparse.Namespace
) -> None:
    """Runs of new commits, sent in turns to BenchLab and to the bare handler."""
    ratios = []
    for pair in range(options.pairs):
        bodies, others = (_of_new_commits(2 * pair + place, options) for place in (1, 2))
        spent = _singles("of new commits", ours[0].again(), bodies, ours[1])
        least = _singles("of new commits, bare handler", bare[0].again(), others, bare[1])
        ratios.append(spent / least)
    print(f"CPU against the bare handler: {', '.join(f'{each:.1f}' for each in ratios)} times")


def _of_new_commits(series: int, options: argparse.Namespace) -> list[bytes]:
    return [
        _body(_run(0, options) | {"revision": {"sha": f"{series + 1:08x}{number:032x}"}})
        for number in range(options.singles)
    ]


def _singles(what: str, client: Client, bodies: list[bytes], pids: list[int]) -> float:
    """The CPU of an upload, in ms, printed with p50 and p95; the first tenth is not counted."""
    for body in bodies[: len(bodies) // 10]:
        client.post("uploads/", body)
    counted = bodies[len(bodies) // 10 :]
    before, seconds = _cpu(pids), []
    for body in counted:
        began = time.perf_counter()
        client.post("uploads/", body)
        seconds.append(time.perf_counter() - began)
    spent = [after - then for after, then in zip(_cpu(pids), before, strict=True)]
    each = [1000 * cpu / len(counted) for cpu in spent]
    twentieths = statistics.quantiles(seconds, n=20)
    print(
        f"single uploads {what}: p50 {1000 * statistics.median(seconds):.1f} ms, "
        f"p95 {1000 * twentieths[18]:.1f} ms; CPU {sum(each):.2f} ms "
        f"(application {each[0]:.2f}, PostgreSQL {each[1]:.2f})",
        flush=True,
    )
    return sum(each)


def _batches(client: Client, options: argparse.Namespace, pids: list[int]) -> None:
    bodies = [
        _body({"runs": [_run(BATCH * batch + number, options) for number in range(BATCH)]})
        for batch in range(2 * options.batches + 1)
    ]
    # A separate connection: the server may have closed the other one by now.
    client.again().post("uploads/batch/", bodies.pop())
    for clients in (1, 2):
        sent = [bodies.pop() for _ in range(options.batches)]
        before, began = _cpu(pids), time.perf_counter()
        _send([client.again() for _ in range(clients)], sent)
        wall = time.perf_counter() - began
        runs = BATCH * len(sent)
        spent = [after - then for after, then in zip(_cpu(pids), before, strict=True)]
        print(
            f"batches of {BATCH}, {clients} at a time: {runs / wall:,.0f} runs/s, "
            f"{runs * options.measurements / wall:,.0f} measurements/s; "
            f"CPU a run {1000 * sum(spent) / runs:.3f} ms "
            f"(application {1000 * spent[0] / runs:.3f}, PostgreSQL {1000 * spent[1] / runs:.3f})"
        )


def _send(clients: list[Client], bodies: list[bytes]) -> None:
    def send(client: Client, share: list[bytes]) -> None:
        for body in share:
            client.post("uploads/batch/", body)

    threads = [
        threading.Thread(target=send, args=(client, bodies[place :: len(clients)]))
        for place, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _copy(url: str, options: argparse.Namespace) -> None:
    """The limit: the rows of the uploads taken out, and brought back by COPY in one go each."""
    with psycopg.connect(url) as connection:
        rows = {}
        for table, columns in COPIED:
            with connection.cursor().copy(f"COPY (SELECT {columns} FROM {table}) TO STDOUT") as out:
                rows[table] = b"".join(out)
        connection.execute("TRUNCATE runs_run CASCADE")
        connection.commit()
        began = time.perf_counter()
        for table, columns in COPIED:
            with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as into:
                into.write(rows[table])
        connection.commit()
        wall = time.perf_counter() - began
    runs, measurements = (rows[table].count(b"\n") for table, _columns in COPIED)
    print(
        f"COPY of the same {runs:,} runs and {measurements:,} measurements: "
        f"{runs / wall:,.0f} runs/s, indexes and foreign keys as they are"
    )


def _run(number: int, options: argparse.Namespace) -> dict[str, object]:
    return {
        **UPLOADED,
        "campaign": "ingest",
        "scenario": "ingest",
        "levels": {"clients": number % CELLS + 1, "scale": 100},
        "revision": {"sha": f"{number // BATCH + 1:040x}"},
        "labels": {"job": str(number)},
        "measurements": [
            {
                "metric": f"metric_{each}",
                "value": 1000 + (number * 7919 + each) % 1013 / 10,
                "unit": "tps",
                "direction": "higher",
            }
            for each in range(options.measurements)
        ],
    }


def _body(given: object) -> bytes:
    return json.dumps(given).encode()


def _environment(database: str, redis: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database,
        "REDIS_URL": redis,
        "SECRET_KEY": "only for the benchmark",
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "BENCHLAB_VAR": str(folder / "var"),
        "BENCHLAB_RATE_TOKEN": "1000000",  # counted, and never reached
        "LOG_LEVEL": "WARNING",
    }


def _prepare(environment: dict[str, str]) -> str:
    """Make the tables and a token."""
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "migrate", "--verbosity", "0"], env=environment, check=True)
    command = [*manage, "create_token", "ingest", "--scopes", "upload"]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def _bare(environment: dict[str, str], url: str, folder: Path) -> Iterator[tuple[int, int]]:
    """The bare handler, for the campaign `bare`, which is there."""
    with psycopg.connect(url) as connection:
        asked = "SELECT id FROM runs_campaign WHERE slug = 'bare'"
        (campaign,) = connection.execute(asked).fetchone() or (0,)
    own = {**environment, "BARE_CAMPAIGN": str(campaign)}
    with _gunicorn(own, folder, "benchmarks.bare_handler:application") as started:
        yield started


@contextmanager
def _gunicorn(
    environment: dict[str, str], folder: Path, application: str = "benchlab.wsgi:application"
) -> Iterator[tuple[int, int]]:
    """The port and the process of gunicorn, as BenchLab is started; a bare handler alike."""
    argv = [sys.executable, "-m", "gunicorn", application, "--bind", "127.0.0.1:0"]
    if application.startswith("benchlab."):
        argv += ["--config", "python:benchlab.gunicorn"]
    else:
        argv += ["--worker-class", "gthread", "--threads", "24", "--no-control-socket"]
    log = folder / f"{application.partition(':')[0]}.log"
    with (
        log.open("wb") as err,
        subprocess.Popen(argv, cwd=ROOT, env=environment, stderr=err) as process,
    ):
        try:
            while "Listening at" not in log.read_text():
                time.sleep(0.1)
            line = next(line for line in log.read_text().splitlines() if "Listening at" in line)
            time.sleep(2)  # the workers load the application
            yield int(line.rpartition(":")[2].split()[0]), process.pid
        finally:
            process.terminate()


def _cpu(pids: list[int]) -> list[float]:
    """Seconds of CPU of each process with all that descends from it, living and ended."""
    children: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended by now
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        times[pid] = sum(map(int, fields[11:15])) / TICK

    def whole(pid: int) -> float:
        return times.get(pid, 0.0) + sum(whole(child) for child in children.get(pid, ()))

    return [whole(pid) for pid in pids]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--singles", type=int, default=500)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3, help="of us and the bare handler")
    parser.add_argument("--measurements", type=int, default=10, help="of each run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
