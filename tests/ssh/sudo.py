"""What tests of privileged actions need to know of this very machine."""

import os
from pathlib import Path

import pytest


def sysctl(name: str) -> str:
    """What the kernel is set to."""
    return Path("/proc/sys", *name.split(".")).read_text().strip()


def needs_writable(path: str) -> None:
    """Skip where the kernel's settings are read-only, as in most containers."""
    if not os.access(path, os.W_OK):
        pytest.skip("the kernel's settings are read-only here")
