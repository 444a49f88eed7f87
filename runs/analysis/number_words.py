"""The numbers of an answer, with as many digits as say something."""


def percent(share: float) -> str:
    """Two digits are enough for the end of an interval; what is not nothing does not become it."""
    number = 100 * share
    if number >= 9.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 0.05 or number == 0 else f"{number:.1g}"


def times(ratio: float) -> str:
    """Three digits, and no exponent from a millionth to a million: 0.169, 12,300, 1/68,000."""
    if 1e-6 < ratio < 0.001:
        return fraction(ratio)
    rounded = float(f"{ratio:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e6 else f"{rounded:.3g}"


def fraction(ratio: float) -> str:
    """A small ratio by what it is a part of, with three digits: 1/68,000."""
    return f"1/{float(f'{1 / ratio:.3g}'):,.0f}"
