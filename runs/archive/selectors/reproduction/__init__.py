"""A published design on the reader's own servers, and what differs from the publication."""

from runs.archive.selectors.reproduction.changes import Change, list_changes, stored
from runs.archive.selectors.reproduction.design import (
    Reproduction,
    reproduction,
    scenario_of,
)
from runs.archive.selectors.reproduction.question import (
    OF_SIZE,
    Asked,
    LostFactor,
    lost_factors,
)
