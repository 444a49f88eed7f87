"""A worker for the checks of servers that pages and the API ask for."""

from runs.models import ServerCheck
from runs.servers.services import server_checks


def carry_out() -> None:
    """Make every check that waits for a worker."""
    waiting = ServerCheck.objects.filter(state=ServerCheck.State.WAITING)
    for check in waiting.order_by("asked_at"):
        server_checks.carry_out(check_id=str(check.pk))
