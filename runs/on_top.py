"""The subjects that stand on top: no other imports them, and each can be taken out.

Each has addresses; what it adds to subjects below, it adds to their hooks in `joining.py`, which
every process loads at its start. `script/lift SUBJECT` removes the folder and its line here.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

SUBJECTS = (
    "bisections",
    "documents",
    "exchange",
    "home",
    "observations",
    "why",
)


def join() -> None:
    """Let each add to the hooks of subjects below."""
    for subject in SUBJECTS:
        if find_spec(f"runs.{subject}.joining"):
            import_module(f"runs.{subject}.joining")


def urls() -> list[ModuleType]:
    """The addresses of each."""
    return [import_module(f"runs.{subject}.urls") for subject in SUBJECTS]
