"""The levels that a campaign's cells have, by the names of its factors."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


def note(factors: dict[str, Any], levels: Mapping[str, Any]) -> bool:
    """Add levels to factors: numbers sorted, names in order of arrival; whether any is new."""
    is_new = False
    for name, level in levels.items():
        is_new |= name not in factors
        known_levels = factors.setdefault(name, [])
        if level not in known_levels:
            is_new = True
            known_levels.append(level)
            if all(
                isinstance(known_level, int | float) for known_level in known_levels
            ):
                known_levels.sort()
    return is_new


def twin_of(level: Any, known_levels: Sequence[Any]) -> Any:
    """The known level that is written in another way: "4" and 4 are one. None if there is none."""
    return next(
        (known_level for known_level in known_levels if _is_twin(known_level, level)),
        None,
    )


def _is_twin(stored_level: Any, new_level: Any) -> bool:
    """Whether two levels of different types read the same: "4" and 4, 4.0 and 4."""
    if type(stored_level) is type(new_level):
        return False
    texts = [
        level if isinstance(level, str) else json.dumps(level)
        for level in (stored_level, new_level)
    ]
    if texts[0] == texts[1]:
        return True
    numbers = [float(text) if NUMBER.fullmatch(text) else None for text in texts]
    return numbers[0] is not None and numbers[0] == numbers[1]
