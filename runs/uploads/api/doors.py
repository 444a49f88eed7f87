"""Uploads: one run, or up to a thousand at once, and how their bodies are read."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import (
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFilesSent,
)
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import (
    ErrorDetail,
    ParseError,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import project_of, reader
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.services import projects
from runs.models import Project
from runs.shared import reading
from runs.shared.api import upload_limits
from runs.shared.api.doors import QueryDoor, Schema
from runs.shared.api.parsing import TooLarge, read_bytes, read_json
from runs.shared.errors import Fault, Refused
from runs.uploads import services
from runs.uploads.api import description, runs
from runs.uploads.api.fields import Faults, FieldReader, Object
from runs.uploads.api.raw import Files
from runs.uploads.services import GivenRun, StoredRun
from runs.uploads.services.idempotency import Answer
from runs.wording import say_stored

GZIP = 16 + zlib.MAX_WBITS
RUN_PART = "run"
ONCE = frozenset({RUN_PART, "stdout", "stderr", "raw", "exit_status"})


@dataclass(frozen=True)
class Body:
    """What was sent. `digest` is of its content, and the same for the same content."""

    content: Object
    digest: str
    files: Files = field(default_factory=dict)


def read(request: HttpRequest, *, takes_files: bool = True) -> Body:
    """Read a body. Raises TooLarge, ParseError, UnsupportedMediaType, Refused."""
    if _length(request) > upload_limits.MOST_BYTES:
        raise TooLarge
    if request.content_type == "multipart/form-data" and takes_files:
        return _multipart(request)
    if request.content_type != "application/json":
        raise UnsupportedMediaType(request.content_type or "?")
    if (request.content_params or {}).get("charset", "utf-8").lower() not in {
        "utf-8",
        "utf8",
    }:
        raise ParseError(_("The body must be in UTF-8."), "not_utf_8")
    content = _unpacked(request, _received(request))
    return Body(_object(content), hashlib.sha256(content).hexdigest())


def _length(request: HttpRequest) -> int:
    text = request.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _received(request: HttpRequest) -> bytes:
    content = read_bytes(request, upload_limits.MOST_BYTES + 1)
    if len(content) > upload_limits.MOST_BYTES:
        raise TooLarge
    if len(content) < _length(request):
        raise ParseError(_("The body broke off."), "broken_off")
    return content


def _unpacked(request: HttpRequest, content: bytes) -> bytes:
    """The body unpacked, but never more of it than is taken: a small body can be a huge one."""
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        return content
    if encoding != "gzip":
        raise UnsupportedMediaType(
            encoding, _("Only gzip is taken as Content-Encoding.")
        )
    unpacking = zlib.decompressobj(GZIP)
    try:
        unpacked = unpacking.decompress(content, upload_limits.MOST_BYTES + 1)
    except zlib.error as error:
        raise ParseError(_("The body is not gzip."), "not_gzip") from error
    if len(unpacked) > upload_limits.MOST_BYTES:
        raise TooLarge
    if not unpacking.eof or unpacking.unused_data:
        raise ParseError(_("The body is not one whole gzip file."), "not_gzip")
    return unpacked


def _object(content: bytes) -> Object:
    document = read_json(content)
    if type(document) is not dict:
        message = _(
            'The body is not a JSON object, such as {"campaign": "nightly", ...}.'
        )
        raise ParseError(message, "not_an_object")
    return document


def _multipart(request: HttpRequest) -> Body:
    """A part `run` with the JSON of the other fields, and the output as files."""
    if "Content-Length" not in request.headers or "Content-Encoding" in request.headers:
        raise UnsupportedMediaType(
            "multipart/form-data", _("Send the files as they are.")
        )
    try:
        fields, sent = request.POST, request.FILES
    except (RequestDataTooBig, TooManyFilesSent) as error:
        raise TooLarge from error
    except (MultiPartParserError, SuspiciousOperation, OSError) as error:
        raise ParseError(
            _("The body is not multipart/form-data."), "not_multipart"
        ) from error
    if not fields and not sent:
        raise ParseError(_("The body is not multipart/form-data."), "not_multipart")
    _refuse_doubled(
        {
            name: [*fields.getlist(name), *sent.getlist(name)]
            for name in {*fields, *sent}
        }
    )
    files: dict[str, bytes | str] = {
        name: fields[name] for name in fields if name != RUN_PART
    }
    for name in sent:
        for file in sent.getlist(name):
            files[_free_name(name, str(file.name), files)] = file.read()
    run = files.pop(RUN_PART, None) or fields.get(RUN_PART) or b"{}"
    content = run.encode() if isinstance(run, str) else run
    return Body(_object(content), _digest(content, files), files)


def _refuse_doubled(parts_by_name: Mapping[str, Sequence[object]]) -> None:
    """Of these there is one: of two nobody knows which is meant. Logs are as many as threads."""
    faults = [
        Fault(f"/{name}", "repeated", _("The form has this part more than once."))
        for name in ONCE & parts_by_name.keys()
        if len(parts_by_name[name]) > 1
    ]
    if faults:
        raise Refused("invalid", faults)


def _free_name(part_name: str, file: str, files: Files) -> str:
    """The part's name; of several files in one part (logs of threads) the file's."""
    if part_name not in files:
        return part_name[:100]
    name, number = file[:100] or part_name, 1
    while name in files:
        number += 1
        name = f"{part_name[:90]}-{number}"
    return name


def _digest(content: bytes, files: Files) -> str:
    """Of what was sent, and not of the boundary, which is another each time."""
    digest = hashlib.sha256(content)
    for name, file in sorted(files.items()):
        data: Any = file.encode() if isinstance(file, str) else file
        digest.update(json.dumps([name, len(data)]).encode() + data)
    return digest.hexdigest()


KEY = "Idempotency-Key"


class UploadSchema(Schema):
    """Adds the problems that only uploads have."""

    problems = ("400", "401", "403", "409", "413", "415", "422", "429")


class _Door(QueryDoor):
    schema = UploadSchema()

    def _answer(
        self, request: Request, sent: Body, store: Callable[[], Answer]
    ) -> Response:
        key = request.headers.get(KEY)
        if key is None:
            return _respond(store())
        if (
            not key.strip()
            or len(key) > upload_limits.LONGEST_IDEMPOTENCY_KEY
            or not (key.isprintable() and key.isascii())
        ):
            message = _(
                "The key must have 1 to 200 printable characters of ASCII, such as a UUID."
            )
            raise ValidationError({KEY: [ErrorDetail(message, "not_a_key")]})
        answer_body, is_replay = services.once(
            key=key,
            body_hash=sent.digest,
            project=_project(request),
            work=store,
        )
        if not is_replay:
            return _respond(answer_body)
        return Response(answer_body, headers={"Idempotent-Replayed": "true"})


@addresses.door(
    {
        "upload": addresses.acting(post=Right.UPLOAD),
    }
)
class UploadDoor(_Door):
    """One run."""

    @extend_schema(**description.ONE)
    def post(self, request: Request) -> Response:
        """Store a run that was measured elsewhere, with figures or with the tool's raw output."""
        sent = read(request._request)
        faults = Faults()
        # Before the transaction of a key: reading may wait, and then holds no connection.
        with reading.reader() as outputs:
            run = runs.run(
                FieldReader(sent.content, "", faults), outputs, sent.files or None
            )

        def store() -> Answer:
            faults.refuse_if_any()
            return _stored(request, [run] if run else [])[0]

        return self._answer(request, sent, store)


@addresses.door(
    {
        "upload-batch": addresses.acting(post=Right.UPLOAD),
    }
)
class BatchDoor(_Door):
    """Many runs."""

    @extend_schema(**description.BATCH)
    def post(self, request: Request) -> Response:
        """Store up to 1,000 runs, all of them or none."""
        sent = read(request._request, takes_files=False)
        faults = Faults()
        with reading.reader() as outputs:
            uploaded_runs = runs.batch(sent.content, faults, outputs)

        def store() -> Answer:
            faults.refuse_if_any()
            return {"runs": _stored(request, uploaded_runs)}

        return self._answer(request, sent, store)


def _respond(answer_body: Answer) -> Response:
    """201, or 200 where nothing is new."""
    runs = answer_body.get("runs", [answer_body])
    is_new = any(not run["stored_before"] for run in runs)
    return Response(
        answer_body, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
    )


def _project(request: Request) -> Project:
    return project_of(request, Right.UPLOAD) or projects.default()


def _stored(request: Request, given_runs: Sequence[GivenRun]) -> list[dict[str, Any]]:
    project = _project(request)
    if any(run.server for run in given_runs):
        permissions.require(reader(request), Right.UPLOAD_FOR_SERVER, project)
    stored = services.store(runs=given_runs, project=project)
    # Looked up once: Django takes long of hundreds. The number follows.
    page, address = (
        request.build_absolute_uri(reverse(name, args=[0])).removesuffix("0/")
        for name in ("run-detail", "api:run-detail")
    )
    return [_described(run, page, address) for run in stored]


def _described(run: StoredRun, page: str, address: str) -> dict[str, Any]:
    return {
        "id": run.id,
        "url": f"{page}{run.id}/",
        "api_url": f"{address}{run.id}/",
        "campaign": run.campaign,
        "state": run.state,
        "code": run.code,
        "message": say_stored(run.wording, run.message, _),
        "repeat": run.repeat,
        "stored_before": run.is_again,
    }
