"""Small disks in place of a base directory, and somebody else who fills them."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh.openssh import OpenSSH


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int, sshd: OpenSSH) -> Iterator[Path]:
    """The folder on a disk of this many MB, as the sshd sees it."""
    if os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    owner = folder.stat()
    options = f"size={megabytes}m,uid={owner.st_uid},gid={owner.st_gid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    sshd.stop()  # its mount namespace was made before the disk
    sshd.start()
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, *, leave: int = 0) -> None:
    """Take all free space except this many bytes, even while others write there."""
    with (disk / "filler").open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while shutil.disk_usage(disk).free > leave or not leave:
            filler.write(bytes(2**20))
