"""Runs a request once per `Idempotency-Key`: a repeated request gets the same answer again."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Project, Upload
from runs.shared.errors import ServiceError

Answer = dict[str, Any]


@transaction.atomic
def once(
    *, key: str, body_hash: str, project: Project, work: Callable[[], Answer]
) -> tuple[Answer, bool]:
    """Do the work, unless the key is known; the answer, and whether it was given before.

    Raises ServiceError `idempotency_key_reused` where that was of another body.

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
        return upload.answer, True
    upload.answer = work()
    upload.save(update_fields=["answer"])
    return upload.answer, False
