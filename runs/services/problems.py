"""Why something cannot be queued."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Why a draft cannot be queued, and what to do. `field` names the input at fault."""

    code: str
    message: str
    remedy: str
    field: str
