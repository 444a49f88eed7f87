"""Uploads: one run, or up to a thousand at once."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.access.authentication import reader
from runs.api.doors import Schema
from runs.api.queries import QueryDoor
from runs.api.uploads import body, description, runs
from runs.api.uploads.body import Body
from runs.api.uploads.fields import Faults
from runs.models import Project, Token
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right
from runs.services import uploads
from runs.services.access import projects
from runs.services.uploads import GivenRun, StoredRun
from runs.services.uploads.idempotency import Answer

KEY = "Idempotency-Key"
LONGEST_KEY = 200


class UploadSchema(Schema):
    """Adds the problems that only uploads have."""

    problems = ("400", "401", "403", "409", "413", "415", "422", "429")


class _Door(QueryDoor):
    schema = UploadSchema()

    def _answer(self, request: Request, sent: Body, store: Callable[[], Answer]) -> Response:
        key = request.headers.get(KEY)
        if key is None:
            return Response(store(), status=status.HTTP_201_CREATED)
        if not key.strip() or len(key) > LONGEST_KEY or not (key.isprintable() and key.isascii()):
            message = _("The key must have 1 to 200 printable characters of ASCII, such as a UUID.")
            raise ValidationError({KEY: [ErrorDetail(message, "not_a_key")]})
        done = uploads.once(
            key=key,
            body_hash=sent.digest,
            project=_project(request),
            work=store,
        )
        if not done.is_replay:
            return Response(done.answer, status=status.HTTP_201_CREATED)
        return Response(done.answer, headers={"Idempotent-Replayed": "true"})


class UploadDoor(_Door):
    """One run."""

    @extend_schema(**description.ONE)
    def post(self, request: Request) -> Response:
        """Store a run that was measured elsewhere, with figures or with the tool's raw output."""
        sent = body.read(request._request)

        def store() -> Answer:
            faults = Faults()
            run = runs.run(sent.content, "", faults, sent.files or None)
            faults.refuse_if_any()
            return _stored(request, [run] if run else [])[0]

        return self._answer(request, sent, store)


class BatchDoor(_Door):
    """Many runs."""

    @extend_schema(**description.BATCH)
    def post(self, request: Request) -> Response:
        """Store up to 1,000 runs, all of them or none."""
        sent = body.read(request._request, takes_files=False)

        def store() -> Answer:
            faults = Faults()
            found = runs.batch(sent.content, faults)
            faults.refuse_if_any()
            return {"runs": _stored(request, found)}

        return self._answer(request, sent, store)


def _project(request: Request) -> Project:
    """The token's; of a person the default one, or one of theirs."""
    if isinstance(request.auth, Token):
        return request.auth.project
    user = cast(User, request.user)
    return permissions.project_for(user, Right.UPLOAD) or projects.default()


def _stored(request: Request, given: Sequence[GivenRun]) -> list[dict[str, Any]]:
    project = _project(request)
    if any(run.server for run in given):
        permissions.require(reader(request), Right.UPLOAD_FOR_SERVER, project)
    stored = uploads.store(runs=given, project=project)
    site = request.build_absolute_uri("/").removesuffix("/")
    page, address = (f"{site}{path}" for path in _paths())
    return [_described(run, page, address) for run in stored]


@cache
def _paths() -> tuple[str, str]:
    """Where runs have their pages, and where the API has them; the number follows."""
    page, address = (
        reverse(name, args=[0]).removesuffix("0/") for name in ("run-detail", "api:run-detail")
    )
    return page, address


def _described(run: StoredRun, page: str, address: str) -> dict[str, Any]:
    return {
        "id": run.id,
        "url": f"{page}{run.id}/",
        "api_url": f"{address}{run.id}/",
        "campaign": run.campaign,
        "state": run.state,
        "code": run.code,
        "message": run.message,
        "repeat": run.repeat,
    }
