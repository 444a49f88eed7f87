"""What uploads cost, through gunicorn.

    .venv/bin/python -m benchmarks.ingest [--singles 500] [--batches 20]

Starts an embedded PostgreSQL and Redis, and gunicorn as the composition does (`WEB_CONCURRENCY=2`
for two processes). Prints p50 and p95 of single uploads one after another, and their CPU, that of
the application and of PostgreSQL, for runs of a new commit, as every upload of CI is. Then runs a
second and CPU of batches of 1,000, by one client and by two.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchlab.embedded.places import REPOSITORY
from benchmarks import services

# What runs of all uploads say alike.
UPLOADED: dict[str, object] = {
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "hardware": {"cpu_model": "EPYC", "cores": 32, "memory_bytes": 2**37},
    "environment": {"os_name": "Debian 13", "kernel": "6.12"},
    "postgresql": {"version": "18.1"},
    "tool": {"name": "pgbench", "version": "18.1"},
}
BATCH, MEASUREMENTS = 1000, 10
CELLS = 100  # of each revision, so with ten repeats each


def main() -> None:
    """Measure and print."""
    options = _options()
    with services.instance(None) as postgresql, tempfile.TemporaryDirectory() as logs:
        services.migrate()
        token = _token()
        with services.gunicorn(Path(logs)) as (port, pid):
            client = Client(port, token)
            pids = [pid, postgresql.pid or 0]
            bodies = [
                _body(_run(0) | {"revision": {"sha": f"{2:08x}{number:032x}"}})
                for number in range(options.singles)
            ]
            _singles(client, bodies, pids)
            _batches(client, options.batches, pids)


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


def _singles(client: Client, bodies: list[bytes], pids: list[int]) -> None:
    """Print what an upload takes; the first tenth is not counted."""
    for body in bodies[: len(bodies) // 10]:
        client.post("uploads/", body)
    counted = bodies[len(bodies) // 10 :]
    before, seconds = services.cpu(pids), []
    for body in counted:
        began = time.perf_counter()
        client.post("uploads/", body)
        seconds.append(time.perf_counter() - began)
    spent = [after - then for after, then in zip(services.cpu(pids), before, strict=True)]
    each = [1000 * cpu / len(counted) for cpu in spent]
    twentieths = statistics.quantiles(seconds, n=20)
    print(
        f"single uploads of new commits: p50 {1000 * statistics.median(seconds):.1f} ms, "
        f"p95 {1000 * twentieths[18]:.1f} ms; CPU {sum(each):.2f} ms "
        f"(application {each[0]:.2f}, PostgreSQL {each[1]:.2f})",
        flush=True,
    )


def _batches(client: Client, number: int, pids: list[int]) -> None:
    bodies = [
        _body({"runs": [_run(BATCH * batch + place) for place in range(BATCH)]})
        for batch in range(2 * number + 1)
    ]
    # A separate connection: the server may have closed the other one by now.
    client.again().post("uploads/batch/", bodies.pop())
    for clients in (1, 2):
        sent = [bodies.pop() for _ in range(number)]
        before, began = services.cpu(pids), time.perf_counter()
        _send([client.again() for _ in range(clients)], sent)
        wall = time.perf_counter() - began
        runs = BATCH * len(sent)
        spent = [after - then for after, then in zip(services.cpu(pids), before, strict=True)]
        print(
            f"batches of {BATCH}, {clients} at a time: {runs / wall:,.0f} runs/s, "
            f"{runs * MEASUREMENTS / wall:,.0f} measurements/s; "
            f"CPU a run {1000 * sum(spent) / runs:.3f} ms "
            f"(application {1000 * spent[0] / runs:.3f}, PostgreSQL {1000 * spent[1] / runs:.3f})"
        )


def _send(clients: list[Client], bodies: list[bytes]) -> None:
    def send(client: Client, share: list[bytes]) -> None:
        for body in share:
            client.post("uploads/batch/", body)

    with ThreadPoolExecutor(len(clients)) as threads:
        shares = [bodies[place :: len(clients)] for place in range(len(clients))]
        list(threads.map(send, clients, shares))


def _run(number: int) -> dict[str, object]:
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
            for each in range(MEASUREMENTS)
        ],
    }


def _body(given: object) -> bytes:
    return json.dumps(given).encode()


def _token() -> str:
    """One that may upload."""
    command = [sys.executable, str(REPOSITORY / "manage.py"), "create_token", "ingest"]
    command += ["--scopes", "upload"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--singles", type=int, default=500)
    parser.add_argument("--batches", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    main()
