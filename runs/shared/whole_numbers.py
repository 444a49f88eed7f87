"""Whole numbers in addresses and forms."""

# Every key has fewer, and Python makes no number of thousands.
MOST_DIGITS = 18


def whole_number(text: str, *, most_digits: int = MOST_DIGITS) -> int | None:
    """The number that these digits of ASCII make; None for other text, and for more digits."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= most_digits
    return int(text) if is_number else None
