"""The body of an upload: its size, its encoding, and the JSON or the files in it."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFilesSent
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, UnsupportedMediaType

from runs.api.parsing import MOST_BYTES, TooLarge, read_json
from runs.api.uploads.fields import Object
from runs.api.uploads.raw import Files
from runs.services.errors import Fault, Refused

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
    if _length(request) > MOST_BYTES:
        raise TooLarge
    if request.content_type == "multipart/form-data" and takes_files:
        return _multipart(request)
    if request.content_type != "application/json":
        raise UnsupportedMediaType(request.content_type or "?")
    if (request.content_params or {}).get("charset", "utf-8").lower() not in {"utf-8", "utf8"}:
        raise ParseError(_("The body must be in UTF-8."), "not_utf_8")
    content = _unpacked(request, _received(request))
    return Body(_object(content), hashlib.sha256(content).hexdigest())


def _length(request: HttpRequest) -> int:
    text = request.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _received(request: HttpRequest) -> bytes:
    try:
        content = request.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParseError(_("The body broke off."), "broken_off") from error
    if len(content) > MOST_BYTES:
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
        raise UnsupportedMediaType(encoding, _("Only gzip is taken as Content-Encoding."))
    unpacking = zlib.decompressobj(GZIP)
    try:
        unpacked = unpacking.decompress(content, MOST_BYTES + 1)
    except zlib.error as error:
        raise ParseError(_("The body is not gzip."), "not_gzip") from error
    if len(unpacked) > MOST_BYTES:
        raise TooLarge
    if not unpacking.eof or unpacking.unused_data:
        raise ParseError(_("The body is not one whole gzip file."), "not_gzip")
    return unpacked


def _object(content: bytes) -> Object:
    found = read_json(content)
    if type(found) is not dict:
        message = _('The body is not a JSON object, such as {"campaign": "nightly", ...}.')
        raise ParseError(message, "not_an_object")
    return found


def _multipart(request: HttpRequest) -> Body:
    """A part `run` with the JSON of the other fields, and the output as files."""
    if "Content-Length" not in request.headers or "Content-Encoding" in request.headers:
        raise UnsupportedMediaType("multipart/form-data", _("Send the files as they are."))
    try:
        parts, sent = request.POST, request.FILES
    except (RequestDataTooBig, TooManyFilesSent) as error:
        raise TooLarge from error
    except (MultiPartParserError, SuspiciousOperation, OSError) as error:
        raise ParseError(_("The body is not multipart/form-data."), "not_multipart") from error
    if not parts and not sent:
        raise ParseError(_("The body is not multipart/form-data."), "not_multipart")
    _refuse_doubled({name: [*parts.getlist(name), *sent.getlist(name)] for name in {*parts, *sent}})
    files: dict[str, bytes | str] = {name: parts[name] for name in parts if name != RUN_PART}
    for name in sent:
        for file in sent.getlist(name):
            files[_free_name(name, str(file.name), files)] = file.read()
    run = files.pop(RUN_PART, None) or parts.get(RUN_PART) or b"{}"
    content = run.encode() if isinstance(run, str) else run
    return Body(_object(content), _digest(content, files), files)


def _refuse_doubled(parts: Mapping[str, Sequence[object]]) -> None:
    """Of these there is one: of two nobody knows which is meant. Logs are as many as threads."""
    faults = [
        Fault(f"/{name}", "repeated", _("The form has this part more than once."))
        for name in ONCE & parts.keys()
        if len(parts[name]) > 1
    ]
    if faults:
        raise Refused("invalid", faults)


def _free_name(part: str, file: str, taken: Files) -> str:
    """The part's name; of several files in one part (logs of threads) the file's."""
    if part not in taken:
        return part[:100]
    name, number = file[:100] or part, 1
    while name in taken:
        number += 1
        name = f"{part[:90]}-{number}"
    return name


def _digest(content: bytes, files: Files) -> str:
    """Of what was sent, and not of the boundary, which is another each time."""
    found = hashlib.sha256(content)
    for name, file in sorted(files.items()):
        data: Any = file.encode() if isinstance(file, str) else file
        found.update(json.dumps([name, len(data)]).encode() + data)
    return found.hexdigest()
