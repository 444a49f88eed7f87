"""Clients that upload while something happens to the instance, and what became of their uploads.

They send as benchlab-upload does: each upload with a key, again after an error or a lost
connection, until it is stored or refused.
"""

import gzip
import http.client
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg

CLIENTS = 2
PAUSE_SECONDS = 0.05  # between two uploads of a client, so that the machine is not full
AGAIN_SECONDS = 0.5
# A client that has so many to send again begins no new ones, or an hour's outage would be followed
# by an hour of these.
MOST_WAITING = 20
# One upload of so many is of a new commit, and one of so many the first of a new campaign.
NEW_COMMIT, NEW_CAMPAIGN = 4, 40
STORED = frozenset({"200", "201"})
# What runs of all uploads of benchmarks say alike.
UPLOADED: dict[str, object] = {
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "hardware": {"cpu_model": "EPYC", "cores": 32, "memory_bytes": 2**37},
    "environment": {"os_name": "Debian 13", "kernel": "6.12"},
    "postgresql": {"version": "18.1"},
    "tool": {"name": "pgbench", "version": "18.1"},
}
TRY_AGAIN = frozenset({429, 500, 502, 503, 504})


@dataclass
class Uploads:
    """What the clients saw: step, seconds and answer of each request; names of what was stored.

    `step` is set by who makes something happen.
    """

    port: int
    token: str
    campaign: str
    step: str = "before"
    requests: list[tuple[str, float, str]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _stopped: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Let the clients begin."""
        self._threads = [
            threading.Thread(target=self._upload, args=(client,)) for client in range(CLIENTS)
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Begin no more uploads, and wait until those that were given are stored."""
        self._stopped = True
        for each in self._threads:
            each.join()

    def table(self) -> str:
        """The requests by step, as Markdown."""
        lines = ["| step | requests | answers | longest |", "|---|--:|---|--:|"]
        for step in dict.fromkeys(step for step, _seconds, _answer in self.requests):
            mine = [(took, answer) for at, took, answer in self.requests if at == step]
            counted = Counter(answer for _took, answer in mine)
            answers = ", ".join(f"{number} {each}" for each, number in counted.items())
            lines.append(f"| {step} | {len(mine)} | {answers} | {max(mine)[0]:.2f} s |")
        return "\n".join(lines)

    @property
    def longest(self) -> float:
        """Seconds of the longest request."""
        return max(took for _step, took, _answer in self.requests)

    def differences(self, url: str) -> Iterator[str]:
        """Uploads that the results database does not have exactly once."""
        with psycopg.connect(url) as database:
            labels = database.execute("SELECT labels ->> 'upload' FROM runs_run").fetchall()
        found = Counter(name for (name,) in labels if name)
        sent = Counter(self.stored)
        yield from self.refused
        yield from (f"{name} is lost" for name in sorted(sent.keys() - found.keys()))
        yield from (f"{name} is stored {n} times" for name, n in found.items() if n > 1)
        yield from (f"{name} was not acknowledged" for name in sorted(found.keys() - sent.keys()))

    def _upload(self, client: int) -> None:
        """Upload run after run; what was not stored is sent again between the others."""
        number, waiting, until = 0, deque[tuple[str, bytes]](), 0.0
        while not self._stopped or waiting:
            is_full = self._stopped or len(waiting) >= MOST_WAITING
            if waiting and (is_full or time.monotonic() > until):
                name, body = waiting.popleft()
                until = time.monotonic() + AGAIN_SECONDS
            else:
                number += 1
                name = f"{client}-{number}"
                body = gzip.compress(json.dumps(self._run(client, number, name)).encode())
            step, began = self.step, time.monotonic()
            answer = self._sent(name, body)
            self.requests.append((step, time.monotonic() - began, answer))
            if answer in STORED:
                self.stored.append(name)
            elif not answer.isdigit() or int(answer) in TRY_AGAIN:
                waiting.append((name, body))
            else:
                self.refused.append(f"{name}: {answer}")
            time.sleep(PAUSE_SECONDS)

    def _sent(self, key: str, body: bytes) -> str:
        """The status of the answer, or why there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "Idempotency-Key": f"{self.campaign}-{key}",
        }
        try:
            connection.request("POST", "/api/v1/uploads/", body, headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        else:
            return str(answer.status)
        finally:
            connection.close()

    def _run(self, client: int, number: int, name: str) -> dict[str, object]:
        campaign = f"new-{name}" if number % NEW_CAMPAIGN == 0 else self.campaign
        commit = number // NEW_COMMIT if number % NEW_COMMIT == 0 else 1
        return {
            **UPLOADED,
            "campaign": campaign,
            "scenario": "ci",
            "levels": {"clients": 8, "scale": 100},
            "revision": {"sha": f"{client + 1:08x}{commit:032x}", "ref": "main"},
            "labels": {"upload": name},
            "measurements": [{"metric": "tps", "value": 1000 + number % 10}],
        }
