"""The load of a run, which is in no plan: read and decrypted when the run begins."""

from cryptography.fernet import InvalidToken

from runs.access.services import host_secrets
from runs.execution.plan import RunPlan
from runs.models import Load
from runs.scenarios import statements
from runs.statements.content import LoadContent


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
        return LoadContent.of(load.slug, key, bytes(load.content))
    except (InvalidToken, host_secrets.NotShared):
        return None
