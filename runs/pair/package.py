"""What a notebook imports: `from benchlab_pair import frame`. It is the installed package's own."""

from importlib import import_module
from typing import Any

OFFERED = {"frame": "frame", "ReadError": "reads"}


def __getattr__(name: str) -> Any:
    """What is offered, from the modules beside this one."""
    if name not in OFFERED:
        raise AttributeError(name)
    return getattr(import_module(f".runs.pair.{OFFERED[name]}", __name__), name)
