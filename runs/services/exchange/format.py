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
from runs.selectors.exchange import exports

FORMAT = "benchlab-export"
FORMAT_VERSION = 1
FILE = "file"
END = "end"
# A compressed file's part in one line.
PART_BYTES = 512 * 2**10
# Imported topologies have no nodes, and must not be mistaken for a server's own.
IMPORTED = "imported-"


def _with(fields: tuple[str, ...], kind: str = "", *more: str) -> frozenset[str]:
    return frozenset({*fields, *exports.LINKS.get(kind, {}), *more})


FIELDS: Mapping[str, frozenset[str]] = {
    FORMAT: frozenset({"version", "project"}),
    "scenario": _with(exports.SCENARIO),
    "metric": _with(exports.METRIC),
    "hardware": _with(exports.HARDWARE),
    "environment": _with(exports.ENVIRONMENT),
    "settings": _with(exports.SETTINGS),
    "configuration": _with(exports.CONFIGURATION, "", "revisions"),
    "topology": _with(exports.TOPOLOGY),
    "revision": _with(exports.REVISION),
    FILE: frozenset({"sha256", "gzip", "last"}),
    "campaign": _with(exports.CAMPAIGN, "campaign", "configurations"),
    "campaign_configuration": frozenset({"configuration_slug", "revision_number"}),
    "cell": _with(exports.CELL, "cell"),
    "run": _with(exports.RUN, "run", "seal", "measurements", "artifacts", "events", "changes"),
    "measurement": _with(exports.MEASUREMENT, "measurement"),
    "artifact": _with(exports.ARTIFACT),
    "event": _with(exports.EVENT),
    "configuration_revision": _with(exports.CONFIGURATION_REVISION),
    "series": _with(exports.SERIES),
    "command": _with(exports.COMMAND),
    "annotation": _with(exports.ANNOTATION),
    "change": _with(exports.CHANGE, "change"),
    "seal": frozenset(exports.SEAL),
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
