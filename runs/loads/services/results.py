"""What runs of a load found, opened by the load's key, as an answer."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import InvalidToken

from runs.access.selectors.projects import Reader
from runs.access.services import host_secrets
from runs.analysis.why.proof import A
from runs.campaigns.selectors.campaigns import find_measured_load
from runs.loads.selectors import judging, loads
from runs.loads.selectors.answers import LoadAnswer
from runs.loads.selectors.causes import FoundTrial
from runs.loads.selectors.judging import Measured
from runs.models import Artifact, Campaign, Load, Run
from runs.queue.services import artifacts
from runs.scenarios import statements
from runs.statements import content, trial
from runs.statements.content import LoadData, data_of, units_of
from runs.statements.drawing import DRAWS
from runs.statements.found import Found
from runs.statements.load import LeftOut, Unit
from runs.statements.trial import TrialTimes


@dataclass(frozen=True)
class Opened:
    """A load as its members see it."""

    units: tuple[Unit, ...]
    left_out: tuple[LeftOut, ...]
    data: LoadData

    @property
    def cold_seconds(self) -> float:
        """What a run of cold executions takes for its restarts alone, about: of a pass, and of
        EXPLAIN."""
        samples = sum(DRAWS if unit.drawn else len(unit.samples) for unit in self.units)
        return (samples + len(self.units)) * statements.RESTART_MS / 1000


def opened(load: Load) -> Opened:
    """What a load has. Raises InvalidToken without the instance's key."""
    stored = content.opened(key_of(load), bytes(load.content))
    left_out = tuple(LeftOut(**row) for row in stored["left_out"])
    return Opened(units_of(stored), left_out, data_of(stored["data"]))


def key_of(load: Load) -> str:
    """The load's own key."""
    return host_secrets.decrypt_load_key(load)


def answer(
    load: Load, campaign: Campaign, *, base: str = "", head: str = ""
) -> LoadAnswer | None:
    """The answer of a campaign of the load. Five queries, and a file for each run."""
    key, parts = key_of(load), opened(load)
    return judging.answer(
        load.name,
        parts.units,
        parts.left_out,
        _measured(key, campaign),
        trials=_find_trials(key, campaign),
        is_cold=bool(campaign.parameters.get(statements.COLD)),
        base=base,
        head=head,
    )


def answer_of(campaign: Campaign, *, to: Reader) -> LoadAnswer | None:
    """The answer of the load that a campaign measured; None for whoever may not see that load."""
    measured_load = find_measured_load(campaign, to=to)
    # A trial has no answer of its own.
    if measured_load is None or measured_load.campaign != campaign:
        return None
    return answer(measured_load.load, campaign)


def _measured(key: str, campaign: Campaign) -> list[Measured]:
    # Whether the round of an invalid run counts is for the answer to say.
    runs = Run.objects.filter(Run.MEASURED, campaign=campaign)
    files = Artifact.objects.filter(run__in=runs, name=content.ARTIFACT)
    measured = []
    for file in files.select_related("run__cell"):
        stored = _stored(key, file)
        if stored is None:
            continue
        run = file.run
        is_invalid = run.validity == Run.Validity.INVALID
        found = Found.from_json(stored)
        measured.append(
            Measured(run.cell.version, run.repeat, found, is_invalid=is_invalid)
        )
    return measured


def _stored(key: str, file: Artifact) -> dict[str, Any] | None:
    """What a run has kept; None without its file, or of another key."""
    try:
        with artifacts.open_artifact(file) as opened_file:
            return content.opened(key, opened_file.read())
    except (InvalidToken, FileNotFoundError):
        return None


def find_trials(load: Load, campaign: Campaign) -> list[FoundTrial]:
    """The trials of statements of a load's campaign, the newest first.

    Three queries, and a file for each run.
    """
    return _find_trials(key_of(load), campaign)


def _find_trials(key: str, campaign: Campaign) -> list[FoundTrial]:
    campaigns = list(loads.trials_of(campaign).prefetch_related("cells"))
    files = Artifact.objects.filter(
        run__campaign__in=campaigns, name=trial.ARTIFACT
    ).select_related("run")
    times: dict[int, list[TrialTimes]] = defaultdict(list)
    for file in files:
        if (stored := _stored(key, file)) is not None:
            times[file.run.campaign_id].append(TrialTimes.from_json(stored))
    return [_trial(tried, times[tried.pk]) for tried in campaigns]


def _trial(campaign: Campaign, times: Sequence[TrialTimes]) -> FoundTrial:
    cells = {str(cell.levels[trial.LEVEL]): cell for cell in campaign.cells.all()}
    base = cells.pop(A)
    ((level, head),) = cells.items()
    return FoundTrial(
        slug=campaign.slug,
        statement=campaign.parameters[trial.STATEMENT],
        base=base.version,
        head=head.version,
        has_ended=campaign.state not in Campaign.LIVE,
        put_back=trial.put_back(level),
        arms=trial.together(times),
    )
