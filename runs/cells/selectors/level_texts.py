"""How the levels of a run are written on pages."""

from typing import Any

from runs.cells.selectors.factor_names import choice_title, known_title, says_itself
from runs.shared.formats import format_level


def level(value: Any, name: str) -> str:
    """A factor and its level: "Clients 8", "Scale factor 10", "one table"."""
    title = "PostgreSQL" if name == "version" else known_title(name)
    choice = choice_title(name, value) if isinstance(value, str) else ""
    return (
        choice
        if says_itself(name, value)
        else f"{title} {choice or format_level(value)}"
    )


def choice(value: Any, name: str) -> str:
    """A level that a scenario has a title for, as `level`; empty for all others."""
    return (
        level(value, name)
        if isinstance(value, str) and choice_title(name, value)
        else ""
    )
