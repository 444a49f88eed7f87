"""How many requests web has answered, and how long they took: /metrics adds it to its numbers.

Each process counts its own (WEB_CONCURRENCY), under its number.
"""

import os

from prometheus_client import CollectorRegistry, Histogram

REGISTRY = CollectorRegistry()
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
WATCHING = frozenset({"/healthz", "/readyz", "/metrics"})
_SECONDS = Histogram(
    "benchlab_http_request_seconds",
    "Duration of requests by kind (api, page, watch) and status (2 for 200 to 299).",
    ["process", "kind", "status"],
    buckets=BOUNDS,
    registry=REGISTRY,
)


def note(path: str, status: int, seconds: float) -> None:
    """Count an answer to a request for `path`."""
    kind = "api" if path.startswith("/api/") else "page"
    kind = "watch" if path.rstrip("/") in WATCHING else kind
    _SECONDS.labels(os.getpid(), kind, status // 100).observe(seconds)
