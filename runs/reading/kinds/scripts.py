"""Scripts of pgbench: `{"scripts": [...], "variables": {...}, "allows_shell": false}`."""

from runs.reading.readers import Request, stateless
from runs.tools.pgbench.script_check import check
from runs.tools.pgbench.scripts import Fault, GivenScript


def _read(request: Request) -> list[Fault]:
    scripts = [GivenScript(**script) for script in request["scripts"]]
    return check(scripts, request["variables"], allows_shell=request["allows_shell"])


READER = stateless(_read, list[Fault])
