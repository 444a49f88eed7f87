"""Runs a request once per `Idempotency-Key`: a repeated request gets the same answer again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Project, Upload
from runs.services.database import Statement, perform
from runs.services.errors import ServiceError

Answer = dict[str, Any]
# Plain SQL, as programs that upload send a key each time.
TAKE = (
    "INSERT INTO runs_upload (project_id, key, body_hash, status, answer, created_at)"
    " VALUES (%s, %s, %s, 201, '{}', now()) ON CONFLICT (project_id, key) DO NOTHING RETURNING id"
)
ANSWERED = "UPDATE runs_upload SET answer = %s WHERE id = %s"


class KeyReused(ServiceError):
    """The key was used for a different body."""

    def __init__(self, key: str) -> None:
        message = _("The key “%(key)s” was used for another upload.") % {"key": key}
        remedy = _("Send each upload with its own key.")
        super().__init__("idempotency_key_reused", message, remedy=remedy)


@dataclass(frozen=True)
class Stored:
    """The answer, and whether it was given before."""

    answer: Answer
    is_replay: bool


@transaction.atomic
def once(*, key: str, body_hash: str, project: Project, work: Callable[[], Answer]) -> Stored:
    """Do the work, unless the key is known: then return its answer again. Raises KeyReused.

    The key's row is inserted first. Another request with the same key waits for it until this
    transaction ends: after a commit it finds the answer, after a rollback it does the work itself.
    """
    (made,) = perform([Statement(TAKE, (project.pk, key, body_hash))])
    if not made:
        upload = Upload.objects.get(project=project, key=key)
        if upload.body_hash != body_hash:
            raise KeyReused(key)
        return Stored(upload.answer, is_replay=True)
    answer = work()
    perform([Statement(ANSWERED, (json.dumps(answer), made[0][0]))], commits=True)
    return Stored(answer, is_replay=False)
