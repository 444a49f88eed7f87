"""How the installed programs start: their modules lie in a folder of their own beside this file."""

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    """Run `benchlab-pair`."""
    return _run("runs.pair.command")


def versions() -> int:
    """Run `benchlab-versions`."""
    return _run("runs.pair.versions")


def mcp() -> int:
    """Run `benchlab-mcp`."""
    return _run("runs.pair.mcp_server")


def _run(name: str) -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    status: int = import_module(name).main()
    return status
