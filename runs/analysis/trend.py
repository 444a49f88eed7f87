"""A line through versions: ratios of pairs chained to an index.

Each year has different hardware, so the numbers of two years cannot be compared; but each year
measures a version together with the one before it. The chain of these ratios is what can be said
about all years. The formulas are in docs/statistics.md.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

import scipy as sp


@dataclass(frozen=True)
class Link:
    """A ratio head / base that one source measured on one machine.

    `log_error` is the standard error of ln ratio with its degrees of freedom, as in a `Comparison`;
    None if the source gives no spread. An error without freedom (None) is known well (normal
    quantiles).
    """

    base: str
    head: str
    ratio: float
    log_error: float | None
    freedom: float | None
    source: str

    def __post_init__(self) -> None:
        if not (self.ratio > 0 and math.isfinite(self.ratio)):
            raise ValueError(f"A ratio is positive, not {self.ratio}.")
        if self.base == self.head:
            raise ValueError(
                f"A link joins two versions, not {self.base!r} with itself."
            )

    def reversed(self) -> "Link":
        """The same knowledge in the other direction."""
        return replace(self, base=self.head, head=self.base, ratio=1 / self.ratio)


@dataclass(frozen=True)
class Step:
    """All links of a pair combined."""

    base: str
    head: str
    ratio: float
    log_error: float | None
    freedom: float | None
    links: tuple[Link, ...]

    def reversed(self) -> "Step":
        """The same step in the other direction."""
        links = tuple(link.reversed() for link in self.links)
        return replace(
            self, base=self.head, head=self.base, ratio=1 / self.ratio, links=links
        )


def combine(links: Sequence[Link]) -> Step:
    """Combine parallel links of one pair into one step: the inverse-variance mean of the logs.

    If links disagree more than their errors explain, the error grows by the Birge ratio (R. T.
    Birge, Physical Review 40, 1932; the scale factor of the Particle Data Group). If an error is
    unknown, the result is the plain geometric mean, and its error is unknown as well.
    """
    first_link = links[0]
    if len(links) == 1:
        return Step(
            first_link.base,
            first_link.head,
            first_link.ratio,
            first_link.log_error,
            first_link.freedom,
            tuple(links),
        )
    logs = [math.log(link.ratio) for link in links]
    errors = [link.log_error for link in links if link.log_error is not None]
    if len(errors) < len(links):
        ratio = math.exp(math.fsum(logs) / len(logs))
        return Step(first_link.base, first_link.head, ratio, None, None, tuple(links))
    weights = _weights(errors)
    mean = math.fsum(weight * log for weight, log in zip(weights, logs, strict=True))
    weighted_variances = [
        (weight * error) ** 2 for weight, error in zip(weights, errors, strict=True)
    ]
    error = math.sqrt(math.fsum(weighted_variances)) * max(
        1.0, _birge(logs, errors, mean)
    )
    return Step(
        first_link.base,
        first_link.head,
        math.exp(mean),
        error,
        _freedom(weighted_variances, links),
        tuple(links),
    )


def _weights(errors: Sequence[float]) -> list[float]:
    """Inverse variances that sum to 1; equal ones if an error is 0, which has no inverse."""
    if min(errors) == 0:
        return [1 / len(errors)] * len(errors)
    least = min(errors)
    weights = [(least / error) ** 2 for error in errors]
    return [weight / math.fsum(weights) for weight in weights]


def _birge(logs: Sequence[float], errors: Sequence[float], mean: float) -> float:
    """How far links disagree: 1 or less if their errors explain it."""
    if min(errors) == 0:
        return 0.0
    squares = (
        ((log - mean) / error) ** 2 for log, error in zip(logs, errors, strict=True)
    )
    return math.sqrt(math.fsum(squares) / (len(logs) - 1))


def _freedom(variance_parts: Sequence[float], links: Sequence[Link]) -> float | None:
    """Welch and Satterthwaite for a weighted mean; None (normal) if no part is uncertain."""
    total = math.fsum(variance_parts)
    if total == 0:
        return None
    inverse = math.fsum(
        (part_variance / total) ** 2 / link.freedom
        for part_variance, link in zip(variance_parts, links, strict=True)
        if link.freedom is not None
    )
    return 1 / inverse if inverse > 0 else None


SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Point:
    """A version's index: its chain's base is 1.0.

    `low` and `high` are the 95 % interval, None if a step on the way from the base has no variance.
    `step` is the last step on that way (None at the base itself), so that a chart draws a line from
    `step.base` to here; steps to versions before the base lead backwards.
    """

    version: str
    index: float
    low: float | None
    high: float | None
    step: Step | None = None


@dataclass(frozen=True)
class Chain:
    """Connected versions, in order. Indices of two chains cannot be compared."""

    base: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Trend:
    """All chains, that of the wanted base first; `unlinked` are the versions without any link."""

    chains: tuple[Chain, ...]
    unlinked: tuple[str, ...]


@dataclass(frozen=True)
class _Reached:
    """What is known at a version: the log of its index, and (variance, freedom) of each step."""

    log_index: float
    parts: tuple[tuple[float, float], ...] | None
    step: Step | None


def trend(links: Iterable[Link], *, versions: Sequence[str], base: str) -> Trend:
    """Chain the links to indices with `base` at 1.0; `versions` are in their order.

    Each version is reached on the way whose steps have the least sum of squares, each counted in
    versions that it spans: through consecutive versions if these are linked, else by a link that
    skips some. Versions not connected to the base make chains of their own, whose base is their
    lowest version. Raises ValueError for a link or a base outside of `versions`.
    """
    position_of = {version: position for position, version in enumerate(versions)}
    steps = _steps(links, position_of)
    if base not in position_of:
        raise ValueError(f"The base {base!r} is not among the versions.")
    linked = {end for step in steps for end in (step.base, step.head)} | {base}
    chains: list[Chain] = []
    visited: set[str] = set()
    for start in (base, *(version for version in versions if version in linked)):
        if start not in visited:
            reached = _reach(start, steps, position_of)
            visited |= reached.keys()
            chains.append(_chain(start, reached, versions))
    return Trend(
        tuple(chains), tuple(version for version in versions if version not in linked)
    )


def _steps(links: Iterable[Link], position_of: Mapping[str, int]) -> list[Step]:
    """Parallel links of a pair combined, each in the direction of the versions."""
    pairs: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        if link.base not in position_of or link.head not in position_of:
            raise ValueError(
                f"The link {link.base!r} to {link.head!r} is outside of the versions."
            )
        forward = (
            link if position_of[link.base] < position_of[link.head] else link.reversed()
        )
        pairs.setdefault((forward.base, forward.head), []).append(forward)
    return [combine(parallel) for parallel in pairs.values()]


class _Path(NamedTuple):
    """A way to a version, in the order of the heap."""

    cost: int
    position: int
    order: int
    version: str
    state: _Reached


def _reach(
    start: str, steps: Iterable[Step], position_of: Mapping[str, int]
) -> dict[str, _Reached]:
    """Dijkstra's shortest paths from the start; ties are settled by version order."""
    from_version: dict[str, list[Step]] = {}
    for step in steps:
        from_version.setdefault(step.base, []).append(step)
        from_version.setdefault(step.head, []).append(step.reversed())
    reached: dict[str, _Reached] = {}
    waiting = [_Path(0, position_of[start], 0, start, _Reached(0.0, (), None))]
    order = 0
    while waiting:
        path = heappop(waiting)
        if path.version in reached:
            continue
        reached[path.version] = path.state
        for step in from_version.get(path.version, ()):
            order += 1  # so that the heap never has to compare states
            position = position_of[step.head]
            cost = path.cost + (position - path.position) ** 2
            heappush(
                waiting,
                _Path(
                    cost, position, order, step.head, _step_reached(path.state, step)
                ),
            )
    return reached


def _step_reached(state: _Reached, step: Step) -> _Reached:
    variance_parts = None
    if state.parts is not None and step.log_error is not None:
        freedom = math.inf if step.freedom is None else step.freedom
        variance_parts = (*state.parts, (step.log_error**2, freedom))
    return _Reached(state.log_index + math.log(step.ratio), variance_parts, step)


def _chain(
    base: str, reached: Mapping[str, _Reached], versions: Sequence[str]
) -> Chain:
    points = (
        _point(version, reached[version]) for version in versions if version in reached
    )
    return Chain(base, tuple(points))


def _point(version: str, state: _Reached) -> Point:
    index = math.exp(state.log_index)
    if state.parts is None:
        return Point(version, index, None, None, state.step)
    half = margin(state.parts)
    low, high = math.exp(state.log_index - half), math.exp(state.log_index + half)
    return Point(version, index, low, high, state.step)


def margin(
    variance_parts: Sequence[tuple[float, float]], *, significance: float = SIGNIFICANCE
) -> float:
    """Half the interval of a sum: variances add, the freedom by Welch and Satterthwaite."""
    total = math.fsum(variance for variance, _ in variance_parts)
    if total == 0:
        return 0.0
    # Shares of the total instead of squares of variances, which underflow for a quiet machine.
    shares = math.fsum(
        (variance / total) ** 2 / freedom for variance, freedom in variance_parts
    )

    quantile = 1 - significance / 2
    width = (
        sp.special.ndtri(quantile)
        if shares == 0
        else sp.special.stdtrit(1 / shares, quantile)
    )
    return float(width) * math.sqrt(total)
