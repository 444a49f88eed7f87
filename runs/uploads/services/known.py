"""What the database has of an upload: the answer to its one question, as values with names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runs.models import Project
from runs.uploads.services.uploaded_run import GivenRun
from runs.wording import Wording

# The slug of a campaign and the key of a cell.
Place = tuple[str, str]


@dataclass(frozen=True)
class StoredRun:
    """The outcome for a run."""

    id: int
    campaign: str
    state: str
    code: str
    message: str
    wording: Wording
    repeat: int
    is_again: bool = False


class KnownCampaign(NamedTuple):
    """A campaign with the name that a run has."""

    slug: str
    pk: int
    origin: str
    project_id: int
    scenario: str
    configuration: str


class KnownCell(NamedTuple):
    """The cell of a place, or the key that a new one will have.

    `has_levels` says of a new one whether other cells of the campaign have its levels.
    """

    pk: int
    is_new: bool
    has_levels: bool


class KnownRevision(NamedTuple):
    """A commit and what is known about it, or the key that a new one will have."""

    sha: str
    pk: int
    is_new: bool
    # Whether a new one may be stored by more or fewer digits.
    has_spellings: bool
    ref: str
    has_url: bool
    has_date: bool
    has_parents: bool
    has_subject: bool
    has_author: bool
    has_merge_base: bool


class KnownServer(NamedTuple):
    """A registered server, with the hardware and environment that it had last."""

    slug: str
    pk: int
    hardware_id: int | None
    environment_id: int | None


class KnownMetric(NamedTuple):
    """A metric that is shared, or the project's own of the same name."""

    name: str
    pk: int
    unit: str
    direction: str


@dataclass(frozen=True, kw_only=True)
class Known:
    """The answer to `question.ask`.

    `runs` are those to store, under the names by which the database has their campaigns and
    commits; `stored_before` are the others, by their place in the upload. `run_ids` are keys for
    new rows, at least as many as there are runs. `cells` has all places of the runs.
    """

    project: Project
    runs: Sequence[GivenRun]
    stored_before: Mapping[int, StoredRun]
    run_ids: Sequence[int]
    campaigns: Mapping[str, KnownCampaign]
    # Keys by slug, of those that a new campaign may have.
    configurations: Mapping[str, int]
    cells: Mapping[Place, KnownCell]
    revisions: Mapping[str, KnownRevision]
    # What several stored commits begin with, or continue.
    ambiguous_shas: frozenset[str]
    servers: Mapping[str, KnownServer]
    # Keys by slug and by fingerprint of the content.
    hardware: Mapping[str, int]
    environments: Mapping[str, int]
    # Keys by fingerprint.
    settings: Mapping[str, int]
    metrics: Mapping[str, KnownMetric]
    # Names of stored metrics, by themselves in lower case; asked where a metric is new.
    metric_names: Mapping[str, str]
    # Pairs of a campaign's slug and an external id that one of its runs has.
    external_ids: frozenset[tuple[str, str]]
