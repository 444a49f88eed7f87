"""Editing a registered server: its address, the way to it, and what is allowed there."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.execution.errors import TargetProblem
from runs.execution.machine import privileged
from runs.execution.steps.base_dir import BaseDir
from runs.models import PreparedCluster, Run, Server, ServerEvent, SSHKey
from runs.queue.selectors.runs import match_server
from runs.servers.services import logins, servers
from runs.shared.errors import ServiceError

_WAS = "was"
# Changing these changes how the server is reached; the host key stays pinned.
WAY = ("address", "port", "username", "jump", "ssh_key")


@dataclass(frozen=True)
class Edit:
    """Everything that can be changed about a server."""

    name: str
    address: str
    port: int
    username: str
    base_dir: str
    bindirs: list[str]
    ssh_key: SSHKey
    jump: Server | None
    privileges: list[str]
    site: str = ""


def stored(to: Edit, *, server: Server) -> dict[str, Any]:
    """An edit as JSON, with what the server is like when it is asked for; for `restored`."""
    return {**_describe(to), _WAS: _describe(_present(server))}


def restored(stored: dict[str, Any], *, server: Server) -> Edit:
    """An edit from its JSON, for the server as it is now. Two queries.

    What somebody has changed after it was asked for stays as they left it.
    """
    now = _describe(_present(server))
    wanted_fields = {name: value for name, value in stored.items() if name != _WAS}
    was = stored.get(_WAS, now)
    later = {name: now[name] for name in wanted_fields if now[name] != was[name]}
    merged = {**wanted_fields, **later}
    objects = {
        "ssh_key": SSHKey.objects.get(pk=merged["ssh_key"]),
        "jump": Server.objects.filter(pk=merged["jump"]).first(),
    }
    return Edit(**{**merged, **objects})


def _present(server: Server) -> Edit:
    return Edit(**{name: getattr(server, name) for name in Edit.__dataclass_fields__})


def _describe(edit: Edit) -> dict[str, Any]:
    keys = {"ssh_key": edit.ssh_key.pk, "jump": edit.jump.pk if edit.jump else None}
    return {**vars(edit), **keys}


def needs_the_machine(*, server: Server, to: Edit) -> bool:
    """Whether `edit` logs in to the machine: it leaves the old base directory there first."""
    before = Server.objects.get(pk=server.pk)
    is_ready = before.state == Server.State.READY
    return is_ready and bool(before.base_dir) and before.base_dir != to.base_dir


def edit(*, server: Server, to: Edit, by: object = None) -> Server:
    """Change a server; have it looked at afterwards. The pinned host key stays.

    Waiting runs go to the new address. Raises ServiceError as `check`, and when the machine must be
    asked but cannot be.
    """
    before, changed = check(server=server, to=to)
    if not before.host_key and any(
        getattr(before, field) != getattr(changed, field) for field in WAY
    ):
        changed.offered_host_key = ""
    if needs_the_machine(server=before, to=to):
        _release(before)
    return _store(before, changed, by)


def check(*, server: Server, to: Edit) -> tuple[Server, Server]:
    """The server as it is and as it would be, unsaved.

    Raises ServiceError as `servers.check`, `base_dir_in_use`, `server_busy`, `unknown_privilege`.
    """
    if unknown := set(to.privileges) - set(privileged.NAMES):
        message = _("There is no privileged action %(name)s.")
        message %= {"name": ", ".join(sorted(unknown))}
        raise ServiceError("unknown_privilege", message, field="privileges")
    before = Server.objects.select_related("ssh_key", "jump").get(pk=server.pk)
    changed = Server.objects.get(pk=server.pk)
    for name, value in vars(to).items():
        setattr(changed, name, value)
    servers.check(changed)
    _check_runs(before, changed)
    return before, changed


def _check_runs(before: Server, changed: Server) -> None:
    """What a run's plan has fixed must not change under it."""
    open_runs = Run.objects.filter(match_server(before.pk)).exclude(state__in=Run.ENDED)
    if before.base_dir != changed.base_dir and (
        open_runs.exists()
        or PreparedCluster.objects.filter(server=before, removed_at=None).exists()
    ):
        message = _("Runs of this server still need %(base_dir)s.") % {
            "base_dir": before.base_dir
        }
        remedy = _(
            "Let its campaigns end or cancel them, clean the server up (manage.py sweep), then "
            "change the folder."
        )
        raise ServiceError("base_dir_in_use", message, remedy=remedy, field="base_dir")
    if (
        before.username != changed.username
        and open_runs.exclude(state=Run.State.QUEUED).exists()
    ):
        message = _("A run is in progress as %(user)s.") % {"user": before.username}
        remedy = _("Let it end or cancel it, then change the user.")
        raise ServiceError("server_busy", message, remedy=remedy, field="username")


def _release(server: Server) -> None:
    try:
        logins.ask(
            _released(server.base_dir, logins.instance_name(), logins.way_to(server)),
            server,
        )
    except logins.KeyUnreadable:
        return  # The inspection that follows reports it.
    except TargetProblem as problem:
        raise logins.refused(problem, "base_dir") from problem


async def _released(base_dir: str, instance: str, login_way: logins.Way) -> None:
    async with await logins.connect_along(login_way) as host:
        await BaseDir(base_dir, instance).release(host)


@transaction.atomic
def _store(before: Server, changed: Server, by: object) -> Server:
    edit_fields = Edit.__dataclass_fields__
    names = [
        name for name in edit_fields if getattr(before, name) != getattr(changed, name)
    ]
    fields = [*names]
    if changed.offered_host_key != before.offered_host_key:
        fields.append("offered_host_key")
    if before.host_key and set(names) & {*WAY, "base_dir"}:
        changed.state = Server.State.UNREACHABLE
        fields.append("state")
    if names:
        changed.save(update_fields=fields)
        message = "; ".join(
            f"{name}: {_text(before, name)} → {_text(changed, name)}" for name in names
        )
        ServerEvent.objects.create(
            server=changed, code="edited", message=message, by=str(by or "")
        )
        was, now = servers.described(before), servers.described(changed)
        audit.record("server_changed", changed, before=was, after=now)
    return changed


def _text(server: Server, name: str) -> str:
    value = getattr(server, name)
    return ", ".join(value) if isinstance(value, list) else str(value or "–")
