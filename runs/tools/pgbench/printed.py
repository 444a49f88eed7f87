"""Numbers as pgbench prints them. Their length is bounded, so that none can overflow."""

import math

COUNT = "[0-9]{1,18}"

# C libraries print "not a number" differently: glibc, then two generations of Windows.
_NO_NUMBER = r"-?(?:nan(?:\(ind\))?|NaN|inf|1\.#[A-Z]{2,5}[0-9]{0,6})"

DECIMAL = rf"(?:-?[0-9]{{1,15}}\.[0-9]{{1,6}}|{_NO_NUMBER})"
THREE_PLACES = rf"(?:-?[0-9]{{1,15}}\.[0-9]{{3}}|{_NO_NUMBER})"
PERCENTAGE = rf"\({DECIMAL} ?%\)"


def count(text: str | None) -> int | None:
    """Read a whole number; None stays None."""
    return None if text is None else int(text)


def decimal(text: str | None) -> float | None:
    """Read a number; None for None and for anything but a finite number."""
    if text is None or "#" in text or "n" in text.lower():
        return None
    number = float(text)
    return number if math.isfinite(number) else None
