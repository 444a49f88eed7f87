"""The side of the host that joins: it asks the first one, and keeps what it gets."""

import json
import os
import secrets
import socket
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from benchlab.embedded.places import write_private
from benchlab.release import own_release
from runs import foreign_json
from runs.operations.services import hosts
from runs.shared.errors import ServiceError

SECONDS = 30
MOST_BYTES = 1_000_000
# Where the first host is; read by the command by which a host leaves.
FIRST_HOST = "BENCHLAB_FIRST_HOST"
CERTIFICATE = "BENCHLAB_FIRST_HOST_CERTIFICATE"
CHECKED_BY_US = "benchlab-certificate.pem"


def join(
    *, url: str, token: str, name: str = "", certificate: str = "", is_trusted: bool
) -> dict[str, Any]:
    """Join the BenchLab at an address, and keep the environment; what it answered.

    `certificate`: the file of the certificate that the first host must show, where no authority of
    this machine vouches for it. Raises ServiceError.
    """
    if settings.WORKER_HOST:
        message = _("This host has joined already, as %(name)s.")
        remedy = _("Let it leave before: script/worker --leave.")
        raise ServiceError(
            "joined_host", message % {"name": settings.HOST_NAME}, remedy=remedy
        )
    if environment_file().exists():
        message = _("%(file)s is that of another BenchLab.")
        remedy = _("Name another folder by BENCHLAB_VAR.")
        raise ServiceError(
            "other_instance", message % {"file": environment_file()}, remedy=remedy
        )
    require_protected(url, is_trusted=is_trusted)
    request = {
        "token": token,
        "name": name or socket.gethostname(),
        "release": own_release(),
        "at": time.time(),
    }
    # Before the token is used: what is got for it must find its place.
    settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
    if not os.access(settings.VAR_DIR, os.W_OK):
        message = _("%(folder)s cannot be written to.") % {"folder": settings.VAR_DIR}
        raise ServiceError("not_writable", message)
    answer: dict[str, Any] = _asked(url, "hosts/join/", request, certificate)
    environment = {
        "SECRET_KEY": secrets.token_urlsafe(48),
        **answer["environment"],
        FIRST_HOST: url,
    }
    if certificate:
        checked_file = settings.VAR_DIR / CHECKED_BY_US
        write_private(checked_file, Path(certificate).read_text())
        environment[CERTIFICATE] = str(checked_file)
    lines = (f"{name}={value}\n" for name, value in environment.items())
    write_private(environment_file(), "".join(lines))
    return answer


def leave() -> None:
    """Tell the first host that this one leaves, and forget what it gave. Raises ServiceError."""
    if not settings.WORKER_HOST:
        raise ServiceError("not_joined", _("This host has joined no other one."))
    proof = {"host": settings.WORKER_HOST, "proof": hosts.proof_of_leaving()}
    try:
        _asked(
            os.environ.get(FIRST_HOST, ""),
            "hosts/leave/",
            proof,
            os.environ.get(CERTIFICATE, ""),
        )
    finally:
        environment_file().unlink(missing_ok=True)
        (settings.VAR_DIR / CHECKED_BY_US).unlink(missing_ok=True)


def environment_file() -> Path:
    """What this host has of the first one."""
    return Path(settings.VAR_DIR) / "environment"


def require_protected(url: str, *, is_trusted: bool) -> None:
    """Raise ServiceError `not_protected` before a token is sent where others could read it."""
    place = urlsplit(url)
    if place.scheme == "https" and place.hostname:
        return
    is_here = hosts.LOOPBACK.fullmatch(place.hostname or "-") is not None
    if place.scheme == "http" and (is_here or (is_trusted and place.hostname)):
        return
    message = _("The token is sent to an address with https only.")
    remedy = _(
        "Use https, or say that nobody else is in that network: --trusted-network, here and for "
        "manage.py join_token."
    )
    raise ServiceError("not_protected", message, remedy=remedy)


def _asked(url: str, path: str, body: dict[str, Any], certificate: str) -> Any:
    """What the first host answers to a POST. Raises ServiceError in its words."""
    request = urllib.request.Request(  # noqa: S310 - `require_protected` has looked at the scheme
        f"{url.rstrip('/')}/api/v1/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=certificate or None)
    # Without a handler of redirects: one would carry the token to another place.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            return foreign_json.loads(answer.read(MOST_BYTES).decode() or "null")
    except urllib.error.HTTPError as error:
        raise _refusal(error) from None
    except (OSError, ValueError) as error:
        message = _("%(url)s does not answer as a BenchLab does: %(why)s")
        why = " ".join(str(error).split())[:300]
        remedy = _(
            "Correct the address. For a certificate of its own making: --certificate FILE."
        )
        raise ServiceError(
            "first_host_silent", message % {"url": url, "why": why}, remedy=remedy
        ) from None


def _refusal(error: urllib.error.HTTPError) -> ServiceError:
    try:
        problem = foreign_json.loads(error.read(MOST_BYTES).decode())
        message = str(problem.get("detail") or problem.get("title"))
        code, remedy = str(problem["code"]), str(problem.get("remedy", ""))
    except (OSError, ValueError, KeyError, AttributeError):
        return ServiceError("refused", f"HTTP {error.code}")
    return ServiceError(code, message, remedy=remedy)
