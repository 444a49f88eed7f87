"""How the installed program starts: its modules lie in a folder of their own beside this file."""

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    """Run the command."""
    sys.path.insert(0, str(Path(__file__).parent))
    status: int = import_module("runs.pair.command").main()
    return status
