"""BenchLab's web process, and the bare handler on the same tables."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import psycopg

from benchmarks import services
from benchmarks.ingest import UPLOADED
from benchmarks.peers.service import CASES, GUNICORN, Request, Result, Service

CAMPAIGN = "peers"


def _run(result: Result) -> dict[str, object]:
    return {
        **UPLOADED,
        "campaign": CAMPAIGN,
        "scenario": CAMPAIGN,
        "levels": {"clients": result.case + 1, "scale": 100},
        "revision": {
            "sha": result.sha,
            "committed_at": result.committed_at.isoformat(),
        },
        "labels": {"job": str(result.number)},
        "measurements": [
            {
                "metric": "throughput",
                "value": result.value,
                "unit": "tps",
                "direction": "higher",
            }
        ],
    }


class BenchLab(Service):
    """Its web process as it is started in an instance."""

    name = "BenchLab"

    @contextmanager
    def run(self) -> Iterator[None]:
        """Let it answer, with a token that may upload and read."""
        if not self.headers:
            self.headers = {
                "Authorization": f"Bearer {services.create_token(CAMPAIGN, 'upload,read')}"
            }
        with services.gunicorn(self.logs) as (self.port, self.pid):
            yield

    def upload(self, result: Result) -> Request:
        """Store a run of one measurement."""
        return Request("/api/v1/uploads/", json.dumps(_run(result)).encode())

    def batch(self, results: Sequence[Result]) -> Request:
        """Store runs at once."""
        runs = [_run(result) for result in results]
        return Request("/api/v1/uploads/batch/", json.dumps({"runs": runs}).encode())

    def page(self, sha: str) -> Request:
        """The newest measurements of the campaign."""
        return Request(f"/api/v1/measurements/?campaign={CAMPAIGN}&page_size={CASES}")

    def history(self, case: int) -> Request:
        """One series of the campaign."""
        return Request(f"/api/v1/history/?campaign={CAMPAIGN}&level=clients={case + 1}")


class BareHandler(BenchLab):
    """The least that it can cost: nothing is checked, nobody is known."""

    name = "bare handler"
    requests_factor = 10

    @contextmanager
    def run(self) -> Iterator[None]:
        """Let it answer on a copy of BenchLab's database that is filled already."""
        with psycopg.connect(self.database) as connection:
            campaign = connection.execute(
                "SELECT id FROM runs_campaign WHERE slug = %s", (CAMPAIGN,)
            ).fetchone()
            assert campaign
            self._series: dict[int, str] = dict(
                connection.execute(
                    "SELECT DISTINCT (levels ->> 'clients')::int, series_key FROM runs_cell"
                    " WHERE campaign_id = %s",
                    campaign,
                ).fetchall()
            )
        environment = {
            **os.environ,
            "DATABASE_URL": self.database,
            "BARE_CAMPAIGN": str(campaign[0]),
        }
        with services.gunicorn(
            self.logs,
            "benchmarks.bare_handler:application",
            [*GUNICORN, "--no-control-socket"],
            environment=environment,
        ) as (self.port, self.pid):
            yield

    def page(self, sha: str) -> Request:
        """The newest figures."""
        return Request(f"/page?{CASES}")

    def history(self, case: int) -> Request:
        """The medians of a series."""
        return Request(f"/history?{quote(self._series[case + 1])}")
