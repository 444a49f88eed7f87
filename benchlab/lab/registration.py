"""Making an instance know the lab: a running one at once, another one when it starts."""

import fcntl
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.places import Places
from benchlab.embedded.software import Software, software_for
from benchlab.lab.errors import LabError

SERVER = "this-machine"


def is_running(places: Places) -> bool:
    """Whether an instance holds its lock and has come far enough to know its addresses."""
    if not places.environment.exists() or not places.lock.exists():
        return False
    with places.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def register(places: Places, account: Account, bindirs: Sequence[Path]) -> None:
    """Add the folders to the running instance's server `this-machine` and inspect it.

    As the account of the service, which is not root.
    """
    software = software_for([account], places.services, is_in_use=True)
    with account.spawn(
        [software.python, software.root / "manage.py", "add_bindirs", SERVER, *bindirs],
        env=_environment(places, software, account),
        cwd=software.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        output = process.communicate()[0].decode(errors="replace")
    if process.returncode != 0:
        last = "\n".join(output.strip().splitlines()[-5:])
        raise LabError(f"the running instance did not take the versions:\n{last}")


def _environment(places: Places, software: Software, account: Account) -> dict[str, str]:
    """As the instance's own processes have it: the account cannot read the home of root."""
    lines = places.environment.read_text().splitlines()
    instance = dict(line.split("=", 1) for line in lines if "=" in line)
    settings = {"DJANGO_SETTINGS_MODULE": "benchlab.settings"}
    home = {"HOME": str(places.work)} if account.switch else {}
    return {**os.environ, **settings, **software.variables, **home, **instance}
