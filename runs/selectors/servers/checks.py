"""Checks of servers that somebody asked for: the last of a server, and who may read which."""

from uuid import UUID

from runs.models import Server, ServerCheck


def last_of(server: Server) -> ServerCheck | None:
    """The newest check of what the server is, while its page has to show it. One query.

    Preflights have pages of their own, and a failed inspection is no news after a later one.
    """
    kinds = (ServerCheck.Kind.HOST_KEY, ServerCheck.Kind.EDIT, ServerCheck.Kind.INSPECTION)
    check = server.checks.filter(kind__in=kinds).first()
    if check is None or check.state == ServerCheck.State.DONE:
        return None
    if check.kind == ServerCheck.Kind.INSPECTION and _looked_at_since(server, check):
        return None
    return check


def _looked_at_since(server: Server, check: ServerCheck) -> bool:
    at, ended = server.checked_at, check.ended_at
    return at is not None and ended is not None and at > ended


def readable(check_id: UUID, *, name: str, by_way_of: str) -> ServerCheck | None:
    """A check, for somebody who may ask for one; that of a campaign only for who asked. One query.

    Servers belong to the instance, so what is found out about one is no secret among those who use
    it; drafts and scripts are their author's.
    """
    check = ServerCheck.objects.select_related("server").filter(pk=check_id).first()
    if check is None or check.kind not in {ServerCheck.Kind.CAMPAIGN, ServerCheck.Kind.TRIAL}:
        return check
    return check if (check.asked_by, check.by_way_of) == (name, by_way_of) else None
