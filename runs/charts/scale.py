"""Positions on an axis: linear, logarithmic, of time and by category, with readable ticks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

MOST_TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)


# What bounds a value, and the runs behind it, widen an axis by at most this share of its values.
WIDEST = 0.5


def judged(values: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest of what an axis shows: all `values`, and of `others` the near.

    A wild end of an interval, or a wild run, must not flatten what is judged: it is an arrow at the
    edge of the plot.
    """
    low, high = min(values), max(values)
    room = max(WIDEST * (high - low), WIDEST * max(abs(low), abs(high)))
    near = [other for other in others if low - room <= other <= high + room]
    return min([low, *near]), max([high, *near])


class Scale(Protocol):
    """From values to a share of the axis, 0 at its start and 1 at its end."""

    def place(self, value: float | str) -> float | None:
        """The position of the value; None if it has none."""

    def ticks(self) -> list[tuple[float, str]]:
        """(place, label) of the ticks."""


@dataclass(frozen=True)
class Linear:
    """A linear axis from `low` to `high`, with labels at `marks` if given."""

    low: float
    high: float
    marks: tuple[tuple[float, str], ...] = ()

    def place(self, value: float | str) -> float | None:
        """The share of the way from low to high."""
        if isinstance(value, str) or self.high == self.low:
            return 0.5 if self.high == self.low else None
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers, or the marks."""
        return _ticks(self, self.marks, nice(self.low, self.high))


class Logarithmic(Linear):
    """A logarithmic axis; both ends are above zero."""

    def place(self, value: float | str) -> float | None:
        """The share of the way in logarithms; nothing for zero and below."""
        if isinstance(value, str) or value <= 0:
            return None
        if self.high == self.low:
            return 0.5
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten, with 2 and 5 between them if there are few; else round numbers."""
        return _ticks(self, self.marks, self._powers())

    def _powers(self) -> list[float]:
        first_power, last_power, digits = _decades(self.low, self.high)
        powers = [
            digit * 10.0**power
            for power in range(first_power, last_power + 1)
            for digit in digits
        ]
        few = sum(self.low <= power <= self.high for power in powers) < 2
        return list(nice(self.low, self.high)) if few else powers


def _decades(low: float, high: float) -> tuple[int, int, tuple[int, ...]]:
    """The powers of ten around both, and the digits by which ticks are named between them."""
    first_power, last_power = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first_power, last_power, (1, 2, 5) if last_power - first_power <= 2 else (1,)


def named_below(low: float, high: float) -> float:
    """The tick at or below `low` of a logarithmic axis: it begins at a value that is named."""
    first_power, last_power, digits = _decades(low, high)
    ticks = [
        digit * 10.0**power
        for power in range(first_power, last_power)
        for digit in digits
    ]
    return max((tick for tick in ticks if tick <= low * (1 + 1e-9)), default=low)


def _ticks(
    scale: Scale, marks: Sequence[tuple[float, str]], numbers: Sequence[float]
) -> list[tuple[float, str]]:
    """At the marks, else at the numbers, as far as they are on the axis."""
    marks = marks or [(value, number(value)) for value in numbers]
    placed = [(scale.place(value), text) for value, text in marks]
    return [
        (share, text)
        for share, text in placed
        if share is not None and -1e-9 <= share <= 1
    ]


MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
# The steps of an axis of time: seconds or minutes, hours, days, and months.
SIXTIETHS = (1, 2, 5, 10, 15, 30)
HOURS, DAYS, MONTHS = (1, 3, 6, 12), (1, 2, 7, 14), (1, 2, 3, 6, 12, 24, 60, 120)


@dataclass(frozen=True)
class Time:
    """An axis of time; its ends are seconds since 1970, its values dates in ISO 8601."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[str]) -> "Time":
        """The axis that has room for these dates."""
        seconds = [_seconds(value) for value in values]
        if len(set(seconds)) == 1:
            return cls(seconds[0] - DAY / 2, seconds[0] + DAY / 2)
        return cls(*widened(seconds, from_zero=False))

    def place(self, value: float | str) -> float | None:
        """The share of the way from low to high."""
        seconds = _seconds(value) if isinstance(value, str) else value
        return (seconds - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Whole seconds, minutes, hours, days, or first days of months, as many as are readable."""
        return [
            (self.place(seconds) or 0.0, text)
            for seconds, text in self._marks()
            if self.low <= seconds <= self.high
        ]

    def _marks(self) -> Iterator[tuple[float, str]]:
        span = self.high - self.low
        for unit, steps, form in (
            (1.0, SIXTIETHS, "%H:%M:%S"),
            (MINUTE, SIXTIETHS, "%m-%d %H:%M"),
            (HOUR, HOURS, "%m-%d %H:%M"),
            (DAY, DAYS, "%Y-%m-%d"),
        ):
            for step in steps:
                if span <= step * unit * MOST_TICKS:
                    first_number = math.ceil(self.low / (step * unit))
                    last_number = math.floor(self.high / (step * unit))
                    for number_of in range(first_number, last_number + 1):
                        seconds = number_of * step * unit
                        yield seconds, f"{_date(seconds):{form}}"
                    return
        yield from self._months(span / DAY / 30.4)

    def _months(self, span: float) -> Iterator[tuple[float, str]]:
        step = next(
            (months for months in MONTHS if span <= months * MOST_TICKS), MONTHS[-1]
        )
        start, end = _date(self.low), _date(self.high)
        first_month = (start.year * 12 + start.month - 1) // step * step
        for month in range(first_month, end.year * 12 + end.month, step):
            moment = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
            yield (
                moment.timestamp(),
                f"{moment:%Y}" if step >= 12 else f"{moment:%Y-%m}",
            )


def _seconds(value: str) -> float:
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _date(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Categories:
    """Names side by side, each in the middle of its band."""

    names: tuple[str, ...]
    texts: tuple[str, ...] = ()

    @property
    def band(self) -> float:
        """The share of the axis for one name."""
        return 1 / max(len(self.names), 1)

    def place(self, value: float | str) -> float | None:
        """The middle of the name's band; Plotly counts its shapes in bands from 0."""
        if isinstance(value, int | float):
            return (value + 0.5) * self.band
        return (
            (self.names.index(value) + 0.5) * self.band if value in self.names else None
        )

    def ticks(self) -> list[tuple[float, str]]:
        """Every name."""
        texts = self.texts or self.names
        return [((index + 0.5) * self.band, text) for index, text in enumerate(texts)]


def nice(low: float, high: float) -> list[float]:
    """Round numbers from low to high, at most MOST_TICKS + 1 of them."""
    if high <= low:
        return [low]
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))
    first_index = math.ceil(low / step - 1e-9)
    last_index = math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first_index, last_index + 1)]


def widened(values: Sequence[float], *, from_zero: bool) -> tuple[float, float]:
    """The range of the axis: a little more than the values need."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if from_zero:
        return min(low, 0.0), (high * 1.06 if high > 0 else 1.0)
    room = (high - low) * 0.06 or abs(high) * 0.06 or 1.0
    return low - room, high + room


def number(value: float) -> str:
    """12,000 and 0.25: as many digits as a tick needs."""
    if abs(value) < 1000:
        return f"{value:g}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0")
