"""What runs of a load found, opened by the load's key, as an answer."""

from dataclasses import dataclass

from cryptography.fernet import InvalidToken
from django.db.models import Q

from runs.access.services import host_secrets
from runs.loads.selectors import answers
from runs.loads.selectors.answers import LoadAnswer, Measured
from runs.models import Artifact, Campaign, Load, Run
from runs.queue.services import artifacts
from runs.statements import content
from runs.statements.content import LoadData, data_of, units_of
from runs.statements.found import Found
from runs.statements.load import LeftOut, Unit


@dataclass(frozen=True)
class Opened:
    """A load as its members see it."""

    units: tuple[Unit, ...]
    left_out: tuple[LeftOut, ...]
    data: LoadData


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
    """The answer of a campaign of the load. Two queries, and a file for each run."""
    key, parts = key_of(load), opened(load)
    return answers.answer(
        load.name,
        parts.units,
        parts.left_out,
        _measured(key, campaign),
        base=base,
        head=head,
    )


def _measured(key: str, campaign: Campaign) -> list[Measured]:
    # An invalid run is withdrawn by itself: whether its round counts is for the answer to say.
    counts = Q(run__state=Run.State.FINISHED)
    counts |= Q(run__state=Run.State.WITHDRAWN, run__validity=Run.Validity.INVALID)
    files = Artifact.objects.filter(
        counts, run__campaign=campaign, name=content.ARTIFACT
    )
    measured = []
    for file in files.select_related("run__cell"):
        try:
            with artifacts.open_artifact(file) as opened_file:
                found = Found.from_json(content.opened(key, opened_file.read()))
        except (InvalidToken, FileNotFoundError):
            continue
        run = file.run
        is_invalid = run.validity == Run.Validity.INVALID
        measured.append(
            Measured(run.cell.version, run.repeat, found, is_invalid=is_invalid)
        )
    return measured
