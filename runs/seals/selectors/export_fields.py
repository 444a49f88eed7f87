"""The fields of an export's lines, which are those that are sealed: `docs/export-format.md`."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F

Row = dict[str, Any]
# Servers are not exported: the name of a run's server becomes this label elsewhere.
ELSEWHERE = "benchlab:server"
# Addresses and users of servers, and the key that the run had.
SECRET_IN_PLAN = frozenset({"host", "port", "username", "run_id"})

SCENARIO = ("slug", "title", "description")
METRIC = ("name", "unit", "direction", "title", "title_ja")
HARDWARE = (
    "fingerprint",
    "slug",
    "name",
    "cpu_model",
    "sockets",
    "cores",
    "threads",
    "memory_bytes",
    "virtualization",
    "facts",
)
ENVIRONMENT = ("fingerprint", "slug", "os_name", "kernel", "architecture", "facts")
SETTINGS = ("content_hash", "settings")
CONTENT = ("written_for", "settings", "initdb_options", "content_hash")
CONFIGURATION = ("slug", "name", "description", "origin", *CONTENT)
CONFIGURATION_REVISION = ("number", *CONTENT, "created_at")
TOPOLOGY = ("slug", "name", "kind")
REVISION = (
    "sha",
    "ref",
    "url",
    "committed_at",
    "parents",
    "subject",
    "author",
    "merge_base",
    "merge_base_at",
    "created_at",
)
CAMPAIGN = (
    "slug",
    "title",
    "title_ja",
    "question",
    "question_ja",
    "origin",
    "state",
    "factors",
    "parameters",
    "treatment",
    "repeats",
    "seed",
    "wanted_half_width",
    "most_repeats",
    "slice_seconds",
    "priority",
    "most_attempts",
    "year",
    "expected_every",
    "tracked_ref",
    "created_at",
    "reproduces",
    "changes",
    "looks",
)
CELL = ("ordinal", "levels", "key", "series_key", "version", "version_num")
RUN = (
    "repeat",
    "position",
    "origin",
    "state",
    "code",
    "message",
    "remedy",
    "attempt",
    "plan",
    "server_version",
    "tool_name",
    "tool_version",
    "quality",
    "external_id",
    "round",
    "labels",
    "wording",
    "queued_at",
    "started_at",
    "finished_at",
    "validity",
    "speed",
)
# Where an imported run came from.
IMPORTED = ("instance", "key", "is_verified", "at")
MEASUREMENT = ("value", "n", "statistic")
SERIES = ("name", "unit", "start", "interval", "values")
ARTIFACT = ("name", "media_type", "size", "sha256", "created_at")
EVENT = ("at", "from_state", "to_state", "code", "message", "wording", "attempt")
COMMAND = (
    "attempt",
    "ordinal",
    "step",
    "argv",
    "stdin",
    "exit_status",
    "started_at",
    "finished_at",
    "stdout",
    "stderr",
    "truncated",
)
ANNOTATION = ("kind", "text", "created_at")
CHANGE = (
    "kind",
    "ratio",
    "before",
    "after",
    "p_value",
    "found_at",
    "decision",
    "note",
    "decided_at",
)
SEAL = ("number", "kind", "run", "at", "reason", "content", "hash", "key", "signature")
# What identifies a thing elsewhere, besides its own fields.
LINKS: Mapping[str, Mapping[str, str]] = {
    "campaign": {
        "scenario": "scenario__slug",
        "topology": "topology__slug",
        "configuration": "configuration__slug",
        "configuration_revision": "configuration_revision__number",
    },
    "cell": {"revision": "revision__sha"},
    "run": {
        "server": "server__slug",
        "hardware": "hardware__fingerprint",
        "environment": "environment__fingerprint",
        "settings": "settings__content_hash",
    },
    "measurement": {"metric": "metric__name"},
    "change": {"metric": "metric__name"},
}


def named(kind: str) -> dict[str, F]:
    """What a row of this kind refers to, by its name elsewhere."""
    # A field and its link share their name: the link has another one until it is written.
    return {f"link_{name}": F(path) for name, path in LINKS.get(kind, {}).items()}
