"""Runs a request once per `Idempotency-Key`: a repeated request gets the same answer again."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Project, Upload
from runs.services.errors import ServiceError

Answer = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """The answer, and whether it was given before."""

    answer: Answer
    is_replay: bool


@transaction.atomic
def once(*, key: str, body_hash: str, project: Project, work: Callable[[], Answer]) -> Stored:
    """Do the work, unless the key is known: then return its answer again. Raises ServiceError
    `idempotency_key_reused` where that was of another body.

    The key's row is inserted first. Another request with the same key waits for it until this
    transaction ends: after a commit it finds the answer, after a rollback it does the work itself.
    """
    upload, is_new = Upload.objects.get_or_create(
        project=project,
        key=key,
        defaults={"body_hash": body_hash, "status": HTTPStatus.CREATED, "answer": {}},
    )
    if not is_new:
        if upload.body_hash != body_hash:
            message = _("The key “%(key)s” was used for another upload.") % {"key": key}
            remedy = _("Send each upload with its own key.")
            raise ServiceError("idempotency_key_reused", message, remedy=remedy)
        return Stored(upload.answer, is_replay=True)
    upload.answer = work()
    upload.save(update_fields=["answer"])
    return Stored(upload.answer, is_replay=False)
