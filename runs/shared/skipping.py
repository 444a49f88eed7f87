"""How many rows an address leaves out: `?skip=100`."""

LONGEST_SKIP = 9  # digits


def skipped(text: str) -> int | None:
    """The number of commits or values that are left out; None if the text is no number."""
    return (
        int(text)
        if text.isascii() and text.isdigit() and len(text) <= LONGEST_SKIP
        else None
    )
