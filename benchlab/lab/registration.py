"""Making an instance know the lab: a running one at once, another one when it starts."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchlab.embedded.places import REPOSITORY, Places
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


def register(places: Places, bindirs: Sequence[Path]) -> None:
    """Add the folders to the running instance's server `this-machine` and inspect it."""
    command = [sys.executable, str(REPOSITORY / "manage.py"), "add_bindirs", SERVER]
    done = subprocess.run(
        [*command, *map(str, bindirs)],
        env=_environment(places),
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise LabError(f"the running instance did not take the versions:\n{said}")


def _environment(places: Places) -> dict[str, str]:
    lines = places.environment.read_text().splitlines()
    instance = dict(line.split("=", 1) for line in lines if "=" in line)
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "benchlab.settings", **instance}
