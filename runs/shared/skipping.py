"""How many rows an address leaves out: `?skip=100`."""

from runs.shared.whole_numbers import whole_number

LONGEST_SKIP = 9  # digits


def skipped(text: str) -> int | None:
    """The number of commits or values that are left out; None if the text is no number."""
    return whole_number(text, most_digits=LONGEST_SKIP)
