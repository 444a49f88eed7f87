"""The line through versions: one index for each version from campaigns on several machines.

    ln value = campaign + version + (machine x version) + noise

Campaigns on one machine share one model: the index of a version is its contrast to the base,
however many versions lie between. If several machines take part, each has its own deviation for
each version, and the index is that of a machine not in the data: its interval is wider (R.
DerSimonian, N. Laird, "Meta-analysis in clinical trials", 1986, for the variance between machines).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats

# Without other knowledge, machines differ by about 3 %; that counts like four observed differences.
USUAL_MACHINES, USUAL_FREEDOM = 0.03, 4.0


@dataclass(frozen=True)
class Reading:
    """The level (log) of a version in a campaign, with the variance of that mean."""

    campaign: Hashable
    machine: Hashable
    version: str
    log: float
    variance: float
    freedom: float


@dataclass(frozen=True)
class Indexed:
    """A version's index: the base is 1.0 and has no width."""

    version: str
    index: float
    low: float
    high: float


def indices(readings: Sequence[Reading], base: str, *, significance: float) -> dict[str, Indexed]:
    """The index of each version that the readings connect to the base, each at this level."""
    joined = _joined(readings, base)
    known = [each for each in readings if each.version in joined]
    versions = [base, *sorted({each.version for each in known} - {base})]
    if len(versions) < 2:
        return {}
    design = _design(known, versions)
    variances = np.diag([max(each.variance, 1e-12) for each in known])
    of_machines = _of_machines(known)
    between, freedom = _between(design, known, variances, of_machines)
    weights = _weights(design, variances + between * of_machines)
    logs = weights @ np.array([each.log for each in known])
    noise = ((weights @ variances) * weights).sum(axis=1)
    machines = ((weights @ (between * of_machines)) * weights).sum(axis=1)
    of_noise = min(each.freedom for each in known)
    found = {}
    # The further rows are of campaigns.
    for version, log, own, shared in zip(versions, logs, noise, machines, strict=False):
        width, variance = 0.0, own + shared
        if variance > 0:
            parts = own**2 / max(of_noise, 1.0) + shared**2 / freedom
            quantile = -float(sp.special.stdtrit(variance**2 / parts, significance / 2))
            width = quantile * math.sqrt(variance)
        ends = math.exp(log - width), math.exp(log + width)
        found[version] = Indexed(version, math.exp(log), *ends)
    return found


def _joined(readings: Iterable[Reading], base: str) -> set[str]:
    """The versions that campaigns connect to the base, one after the other."""
    of_campaign: dict[Hashable, set[str]] = defaultdict(set)
    for each in readings:
        of_campaign[each.campaign].add(each.version)
    joined: set[str] = set()
    grown = {base}
    while grown != joined:
        joined = set(grown)
        for versions in of_campaign.values():
            if versions & joined:
                grown |= versions
    return joined


def _design(readings: Sequence[Reading], versions: Sequence[str]) -> Floats:
    """Columns: the versions, the base left out, then the campaigns."""
    campaigns = list(dict.fromkeys(each.campaign for each in readings))
    design = np.zeros((len(readings), len(versions) + len(campaigns)))
    for row, each in enumerate(readings):
        design[row, versions.index(each.version)] = 1
        design[row, len(versions) + campaigns.index(each.campaign)] = 1
    design[:, 0] = 0
    return design


def _of_machines(readings: Sequence[Reading]) -> Floats:
    """Covariances of the deviations: readings of a version on one machine share theirs.

    A ratio has two deviations, so each has half of its variance. On a single machine there is none:
    the line is then about that machine.
    """
    count = len({each.machine for each in readings})
    if count < 2:
        return np.zeros((len(readings), len(readings)))
    kinds = [(each.machine, each.version) for each in readings]
    return np.array([[0.5 if one == other else 0.0 for other in kinds] for one in kinds])


def _weights(design: Floats, covariance: Floats) -> Floats:
    """The generalised least squares solution as weights of the readings."""
    inverse = _inverse(covariance)
    solved = np.linalg.pinv(design.T @ inverse @ design, hermitian=True)
    weights: Floats = np.asarray(solved @ design.T @ inverse, dtype=np.float64)
    weights[0] = 0
    return weights


def _inverse(covariance: Floats) -> Floats:
    variances = np.diag(covariance)
    if np.count_nonzero(covariance) == len(variances) and np.all(variances > 0):
        # Readings of one machine: nothing is shared, and no eigenvalues have to be found.
        return np.diag(1 / variances)
    return np.asarray(np.linalg.pinv(covariance, hermitian=True), dtype=np.float64)


def _between(
    design: Floats, readings: Sequence[Reading], of_noise: Floats, of_machines: Floats
) -> tuple[float, float]:
    """(variance of a ratio between machines, its degrees of freedom), by moments, shrunken."""
    if not of_machines.any():
        return 0.0, math.inf
    inverse = np.linalg.inv(of_noise)
    hat = inverse - inverse @ design @ np.linalg.pinv(design.T @ inverse @ design) @ (
        design.T @ inverse
    )
    logs = np.array([each.log for each in readings])
    left = float(np.trace(hat @ of_noise))
    scale = float(np.trace(hat @ of_machines))
    seen = (float(logs @ hat @ logs) - left) / scale if scale > 1e-9 else 0.0
    freedom = left if scale > 1e-9 else 0.0
    usual = USUAL_FREEDOM * USUAL_MACHINES**2
    return (freedom * max(seen, 0.0) + usual) / (freedom + USUAL_FREEDOM), freedom + USUAL_FREEDOM
