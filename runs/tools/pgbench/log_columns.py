"""The columns of a transaction log (`pgbench -l`), read from complete blocks of bytes.

A line is `client transaction time script epoch microseconds [lag] [retries]`, with one blank
between two columns. Source: the manual's pgbench page, "Per-Transaction Logging", 9.2 to 18.
Eight digits are turned into a number by three multiplications on a 64-bit word, for all lines of a
block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]

WIDTHS = (6, 7, 8)
# In the place of the time, what became of a transaction that has none.
OUTCOMES = ("skipped", "failed", "serialization", "deadlock", "other")
_WORD = 8
_BLANK, _NEWLINE, _ZERO = 32, 10, 48
_MOST_DIGITS = 15
_LATEST_SECOND, _LAST_MICROSECOND = 10**11, 999_999


@dataclass(frozen=True)
class Columns:
    """The lines of a block that ran: latency and end (since the epoch), both in microseconds.

    `outcomes` counts the lines of transactions that have no time.
    """

    latency: Numbers
    end: Numbers
    outcomes: dict[str, int]


def read_columns(block: bytes | memoryview) -> Columns | None:
    """Read complete lines. None if any of them is not from a transaction log."""
    # Eight bytes in front, so that a word can end anywhere.
    data = np.frombuffer(b"0" * _WORD + bytes(block), np.uint8)
    ends = _column_ends(data)
    if ends is None:
        return None
    digits = np.count_nonzero((data - _ZERO) < 10) - _WORD
    seconds, whole_seconds = _numbers(data, ends[:, 3] + 1, ends[:, 4])
    microseconds, whole_microseconds = _numbers(data, ends[:, 4] + 1, ends[:, 5])
    latency, timed = _numbers(data, ends[:, 1] + 1, ends[:, 2])
    outcomes, letters = _outcomes(data, ends[~timed, 1:3])
    known = sum(outcomes.values()) == np.count_nonzero(~timed)
    other_bytes = len(data) - _WORD - ends.size - letters
    if not (known and digits == other_bytes and whole_seconds.all() and whole_microseconds.all()):
        return None
    if seconds.max() > _LATEST_SECOND or microseconds.max() > _LAST_MICROSECOND:
        return None
    end = seconds * 1_000_000 + microseconds
    return Columns(latency[timed], end[timed], outcomes)


def _column_ends(data: Bytes) -> Places | None:
    """Return where each column of each line ends; None unless all lines have the same columns."""
    separators = np.flatnonzero(data <= _BLANK)
    kinds = data[separators]
    newlines = np.flatnonzero(kinds == _NEWLINE)
    width = int(newlines[0]) + 1 if newlines.size else 0
    if width not in WIDTHS or newlines.size * width != separators.size:
        return None
    blanks = np.count_nonzero(kinds == _BLANK)
    if blanks + newlines.size != separators.size or data[-1] != _NEWLINE:
        return None
    if not (kinds[width - 1 :: width] == _NEWLINE).all():
        return None
    ends = separators.reshape(-1, width)
    lengths = np.diff(separators, prepend=_WORD - 1)
    return None if (lengths < 2).any() else ends  # an empty column


def _numbers(data: Bytes, starts: Places, ends: Places) -> tuple[Numbers, Flags]:
    """Return the numbers in these places, and which of them are numbers."""
    length = ends - starts
    value, good = _word_numbers(data, ends, np.minimum(length, _WORD))
    long = np.flatnonzero(length > _WORD)
    if long.size:
        high, high_good = _word_numbers(
            data, ends[long] - _WORD, np.minimum(length[long] - _WORD, _WORD)
        )
        value[long] += high * 100_000_000
        good[long] &= high_good & (length[long] <= _MOST_DIGITS)
    return value, good


def _word_numbers(data: Bytes, ends: Places, lengths: Places) -> tuple[Numbers, Flags]:
    """Return the numbers of at most eight digits that end here."""
    words: Words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, 0, (1,))
    unused = ((_WORD - lengths) * 8).astype(np.uint64)
    nibbles = ((words[ends - _WORD] ^ 0x3030303030303030) >> unused) << unused
    high = (nibbles | (nibbles + 0x0606060606060606)) & 0xF0F0F0F0F0F0F0F0
    pairs = (nibbles * 10 + (nibbles >> 8)) & 0x00FF00FF00FF00FF
    fours = (pairs * 100 + (pairs >> 16)) & 0x0000FFFF0000FFFF
    eights = (fours * 10_000 + (fours >> 32)) & 0xFFFFFFFF
    return eights.astype(np.int64), high == 0


def _outcomes(data: Bytes, places: Places) -> tuple[dict[str, int], int]:
    """Count the words in these places, and their letters."""
    counts: dict[str, int] = {}
    starts, ends = places[:, 0] + 1, places[:, 1]
    for word in OUTCOMES:
        of_length = starts[ends - starts == len(word)]
        spelled = np.ones(of_length.size, bool)
        for offset, letter in enumerate(word.encode()):
            spelled &= data[of_length + offset] == letter
        if spelled.any():
            counts[word] = int(np.count_nonzero(spelled))
    return counts, sum(len(word) * count for word, count in counts.items())
