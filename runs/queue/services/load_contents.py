"""The load of a run, which is in no plan: read and decrypted when the run begins."""

from dataclasses import replace

from asgiref.sync import sync_to_async
from cryptography.fernet import InvalidToken

from benchlab.bucket import StoreError
from runs.access.services import host_secrets
from runs.execution.plan import RunPlan
from runs.models import Artifact, Load, LoadPart, Run
from runs.queue.services import artifacts, reporting
from runs.scenarios import statements
from runs.statements import content
from runs.statements.content import LoadContent, ReadPart
from runs.statements.found import Found


def find_content(plan: RunPlan) -> LoadContent | None:
    """The load of a plan of the scenario `statements`.

    None if the plan has none, or the load is gone: the run then says so.
    """
    if plan.scenario != statements.SCENARIO.slug:
        return None
    load = Load.objects.kept().filter(slug=plan.levels.get(statements.FACTOR)).first()
    if load is None:
        return None
    try:
        key = host_secrets.decrypt_load_key(load)
        load_content = LoadContent.of(
            load.slug, key, bytes(load.content), _parts_of(load.pk, key)
        )
    except (InvalidToken, host_secrets.NotShared):
        return None
    run = Run.objects.only("campaign", "repeat").filter(pk=plan.run_id).first()
    if run is None:
        return load_content
    return replace(load_content, round=run.repeat, failed=_failed_before(run, key))


def _failed_before(run: Run, key: str) -> frozenset[int]:
    """The statements that failed on any version in the round before: a query, a file a version.

    Each of its runs has those of earlier rounds, too.
    """
    files = Artifact.objects.filter(
        run__campaign=run.campaign_id,
        run__repeat=run.repeat - 1,
        name=content.ARTIFACT,
    )
    failed: set[int] = set()
    for file in files:
        try:
            with artifacts.open_artifact(file) as stored:
                found_units = Found.from_json(content.opened(key, stored.read()))
        except (InvalidToken, FileNotFoundError, StoreError):
            continue
        failed |= found_units.failed
    return frozenset(failed)


def _parts_of(load_id: int, key: str) -> ReadPart:
    """What reads a part of its dump when the run needs it. It raises KeyError if it is gone."""

    async def read(number: int) -> bytes:
        part = await sync_to_async(
            lambda: reporting.retrying(
                lambda: LoadPart.objects.filter(load=load_id, number=number).first()
            )
        )()
        if part is None:
            raise KeyError(number)
        return content.opened_part(key, bytes(part.content))

    return read
