"""Shell scripts run as a person would: by hand, as an unprivileged account, in a folder."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import Account


@dataclass(frozen=True)
class Done:
    """How a script ended, and what it said."""

    status: int
    stdout: str
    stderr: str


def run_by_hand(
    script: str, folder: Path, account: Account, *, shell: str = "sh", **variables: str
) -> Done:
    """Run the script; its base folder is `base` in the folder, unless `variables` say otherwise."""
    account.own(folder)
    path = folder / "script.sh"
    path.write_text(script)
    path.chmod(0o644)
    base = {"BENCHLAB_BASE": str(folder / "base")}
    with account.spawn(
        [shell, path],
        env=account.environment(folder) | base | variables,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        out, err = process.communicate(timeout=120)
    return Done(process.returncode, out.decode(), err.decode())
