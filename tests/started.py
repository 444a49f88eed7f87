"""What takes long to make and is made once for all tests: what a first start of an instance makes,
and the lab's versions.

That the product makes these itself is tested by those that are about it.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from benchlab.embedded.accounts import Accounts
from benchlab.embedded.software import software_for
from tests.migrated import ROOT, copy_cluster


def prepare(var: Path, test_folder: Path, *, is_migrated: bool) -> None:
    """Make the folder of an instance, with software, and with a migrated database if asked."""
    services = var / "services"
    for folder in (var, services):
        folder.mkdir()
        folder.chmod(0o711)
    for name in ("software", "binaries"):
        (services / name).mkdir()
        (services / name).chmod(0o755)
    for made in _made(test_folder):
        (services / made.relative_to(test_folder)).symlink_to(made)
    if is_migrated:
        copy_cluster(services / "postgresql")


def wait_for_lab() -> None:
    """Until script/lab has made what it can: in the background of all tests, else now."""
    if lock := os.environ.get("BENCHLAB_TEST_LAB"):
        with Path(lock).open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
        return
    environment = {**os.environ, "BENCHLAB_VAR": str(ROOT / "var")}
    # What is there already stays, and one waits for another.
    subprocess.run(
        [sys.executable, "-m", "benchlab.lab", "--no-register"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )


def _made(test_folder: Path) -> list[Path]:
    """Copies that the accounts of an instance need where they cannot read ours; all of them do."""
    accounts = Accounts.from_environment()
    with (test_folder / "software.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        software_for((accounts.web, accounts.target), test_folder)
    return [*test_folder.glob("software/python-*"), *test_folder.glob("binaries/*")]
