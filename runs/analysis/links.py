"""What is known about one pair of versions: its links, combined into one step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace


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
            raise ValueError(f"A link joins two versions, not {self.base!r} with itself.")

    def reversed(self) -> "Link":
        """The same knowledge in the other direction."""
        return replace(self, base=self.head, head=self.base, ratio=1 / self.ratio)


@dataclass(frozen=True)
class Step:
    """All links of a pair combined. `disagreement` is the Birge ratio, 1 or less if they agree.

    It is None for a single link and if a spread is unknown.
    """

    base: str
    head: str
    ratio: float
    log_error: float | None
    freedom: float | None
    links: tuple[Link, ...]
    disagreement: float | None = None

    def reversed(self) -> "Step":
        """The same step in the other direction."""
        links = tuple(link.reversed() for link in self.links)
        return replace(self, base=self.head, head=self.base, ratio=1 / self.ratio, links=links)


def combine(links: Sequence[Link]) -> Step:
    """Combine parallel links of one pair into one step: the inverse-variance mean of the logs.

    If links disagree more than their errors explain, the error grows by the Birge ratio (R. T.
    Birge, Physical Review 40, 1932; the scale factor of the Particle Data Group). If an error is
    unknown, the result is the plain geometric mean, and its error is unknown as well.
    """
    first = links[0]
    if len(links) == 1:
        return Step(
            first.base, first.head, first.ratio, first.log_error, first.freedom, tuple(links)
        )
    logs = [math.log(link.ratio) for link in links]
    errors = [link.log_error for link in links if link.log_error is not None]
    if len(errors) < len(links):
        ratio = math.exp(math.fsum(logs) / len(logs))
        return Step(first.base, first.head, ratio, None, None, tuple(links))
    weights = _weights(errors)
    mean = math.fsum(weight * log for weight, log in zip(weights, logs, strict=True))
    disagreement = _birge(logs, errors, mean)
    parts = [(weight * error) ** 2 for weight, error in zip(weights, errors, strict=True)]
    error = math.sqrt(math.fsum(parts)) * max(1.0, disagreement or 0.0)
    freedom = _freedom(parts, links)
    return Step(first.base, first.head, math.exp(mean), error, freedom, tuple(links), disagreement)


def _weights(errors: Sequence[float]) -> list[float]:
    """Inverse variances that sum to 1; equal ones if an error is 0, which has no inverse."""
    if min(errors) == 0:
        return [1 / len(errors)] * len(errors)
    least = min(errors)
    weights = [(least / error) ** 2 for error in errors]
    return [weight / math.fsum(weights) for weight in weights]


def _birge(logs: Sequence[float], errors: Sequence[float], mean: float) -> float | None:
    if min(errors) == 0:
        return None
    squares = (((log - mean) / error) ** 2 for log, error in zip(logs, errors, strict=True))
    return math.sqrt(math.fsum(squares) / (len(logs) - 1))


def _freedom(parts: Sequence[float], links: Sequence[Link]) -> float | None:
    """Welch and Satterthwaite for a weighted mean; None (normal) if no part is uncertain."""
    total = math.fsum(parts)
    if total == 0:
        return None
    inverse = math.fsum(
        (part / total) ** 2 / link.freedom
        for part, link in zip(parts, links, strict=True)
        if link.freedom is not None
    )
    return 1 / inverse if inverse > 0 else None
