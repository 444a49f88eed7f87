"""The form of an export: the kinds of lines, and the fields of each."""

from collections.abc import Mapping

from runs.models import (
    Annotation,
    Campaign,
    Change,
    Configuration,
    Metric,
    Run,
    Seal,
    Topology,
)
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.selectors import exchange

FORMAT = "benchlab-export"
FORMAT_VERSION = 1
FILE = "file"
END = "end"
# A compressed file's part in one line.
PART_BYTES = 512 * 2**10
# Imported topologies have no nodes, and must not be mistaken for a server's own.
IMPORTED = "imported-"


def _with(fields: tuple[str, ...], kind: str = "", *more: str) -> frozenset[str]:
    return frozenset({*fields, *exchange.LINKS.get(kind, {}), *more})


FIELDS: Mapping[str, frozenset[str]] = {
    FORMAT: frozenset({"version", "project"}),
    "scenario": _with(exchange.SCENARIO),
    "metric": _with(exchange.METRIC),
    "hardware": _with(exchange.HARDWARE),
    "environment": _with(exchange.ENVIRONMENT),
    "settings": _with(exchange.SETTINGS),
    "configuration": _with(exchange.CONFIGURATION, "", "revisions"),
    "topology": _with(exchange.TOPOLOGY),
    "revision": _with(exchange.REVISION),
    FILE: frozenset({"sha256", "gzip", "last"}),
    "campaign": _with(exchange.CAMPAIGN, "campaign", "configurations"),
    "campaign_configuration": frozenset({"configuration_slug", "revision_number"}),
    "cell": _with(exchange.CELL, "cell"),
    "run": _with(exchange.RUN, "run", "seal", "measurements", "artifacts", "events", "changes"),
    "measurement": _with(exchange.MEASUREMENT, "measurement"),
    "artifact": _with(exchange.ARTIFACT),
    "event": _with(exchange.EVENT),
    "configuration_revision": _with(exchange.CONFIGURATION_REVISION),
    "series": _with(exchange.SERIES),
    "command": _with(exchange.COMMAND),
    "annotation": _with(exchange.ANNOTATION),
    "change": _with(exchange.CHANGE, "change"),
    "seal": frozenset(exchange.SEAL),
    END: frozenset({"lines"}),
}
# Fields that older files of this form lack, with what their absence means.
LATER: Mapping[str, Mapping[str, object]] = {
    "campaign": {"treatment": {}, "reproduces": "", "configurations": [], "looks": []},
    "run": {"round": None, "seal": None},
}
TIMES = frozenset(
    {
        *("at", "created_at", "queued_at", "started_at", "finished_at", "committed_at"),
        *("found_at", "decided_at"),
    }
)
# Kinds that are nested in the line of another kind.
NESTED: Mapping[str, Mapping[str, str]] = {
    "run": {
        "measurements": "measurement",
        "artifacts": "artifact",
        "events": "event",
        "changes": "change",
    },
    "configuration": {"revisions": "configuration_revision"},
    "campaign": {"configurations": "campaign_configuration"},
}
ORIGINS = frozenset({Origin.EXECUTED.value, Origin.UPLOADED.value})
CAMPAIGN_ENDED = frozenset(
    state.value
    for state in (Campaign.State.FINISHED, Campaign.State.INCOMPLETE, Campaign.State.CANCELLED)
)
ENDED = frozenset(state.value for state in Run.ENDED)
CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("metric", "direction"): frozenset(Metric.Direction.values),
    ("configuration", "origin"): frozenset(Configuration.Origin.values),
    ("topology", "kind"): frozenset(Topology.Kind.values),
    ("campaign", "origin"): ORIGINS,
    ("campaign", "state"): CAMPAIGN_ENDED,
    ("run", "origin"): ORIGINS,
    ("run", "state"): ENDED,
    ("measurement", "statistic"): frozenset(Statistic.values),
    ("annotation", "kind"): frozenset(Annotation.Kind.values),
    ("change", "kind"): frozenset(Change.Kind.values),
    ("change", "decision"): frozenset(Change.Decision.values),
    ("seal", "kind"): frozenset(Seal.Kind.values),
}
