"""The load of a run, which is in no plan: read and decrypted when the run begins."""

from dataclasses import replace

from cryptography.fernet import InvalidToken

from benchlab.bucket import StoreError
from runs.access.services import host_secrets
from runs.execution.plan import RunPlan
from runs.models import Artifact, Load, Run
from runs.queue.services import artifacts
from runs.scenarios import statements
from runs.statements import content
from runs.statements.content import LoadContent
from runs.statements.found import Found


def of_plan(plan: RunPlan) -> LoadContent | None:
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
        found = LoadContent.of(load.slug, key, bytes(load.content))
    except (InvalidToken, host_secrets.NotShared):
        return None
    run = Run.objects.only("campaign", "repeat").filter(pk=plan.run_id).first()
    if run is None:
        return found
    return replace(found, round=run.repeat, failed=_failed_before(run, key))


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
                found = Found.from_json(content.opened(key, stored.read()))
        except (InvalidToken, FileNotFoundError, StoreError):
            continue
        failed |= found.failed
    return frozenset(failed)
