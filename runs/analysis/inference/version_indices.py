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


def indices(
    readings: Sequence[Reading], base: str, *, significance: float
) -> dict[str, Indexed]:
    """The index of each version that the readings connect to the base, each at this level."""
    joined = _joined(readings, base)
    joined_readings = [reading for reading in readings if reading.version in joined]
    versions = [
        base,
        *sorted({reading.version for reading in joined_readings} - {base}),
    ]
    if len(versions) < 2:
        return {}
    design = _design(joined_readings, versions)
    variances = np.diag([max(reading.variance, 1e-12) for reading in joined_readings])
    of_machines = _build_machine_covariance(joined_readings)
    between, freedom = _estimate_machine_variance(
        design, joined_readings, variances, of_machines
    )
    weights = _weights(design, variances + between * of_machines)
    logs = weights @ np.array([reading.log for reading in joined_readings])
    noise = ((weights @ variances) * weights).sum(axis=1)
    machines = ((weights @ (between * of_machines)) * weights).sum(axis=1)
    of_noise = min(reading.freedom for reading in joined_readings)
    index_of = {}
    # The further rows are of campaigns.
    for version, log, own_noise, shared in zip(versions, logs, noise, machines):
        width, variance = 0.0, own_noise + shared
        if variance > 0:
            inverse_freedom = own_noise**2 / max(of_noise, 1.0) + shared**2 / freedom
            quantile = -float(
                sp.special.stdtrit(variance**2 / inverse_freedom, significance / 2)
            )
            width = quantile * math.sqrt(variance)
        ends = math.exp(log - width), math.exp(log + width)
        index_of[version] = Indexed(version, math.exp(log), *ends)
    return index_of


def _joined(readings: Iterable[Reading], base: str) -> set[str]:
    """The versions that campaigns connect to the base, one after the other."""
    of_campaign: dict[Hashable, set[str]] = defaultdict(set)
    for reading in readings:
        of_campaign[reading.campaign].add(reading.version)
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
    campaigns = list(dict.fromkeys(reading.campaign for reading in readings))
    design = np.zeros((len(readings), len(versions) + len(campaigns)))
    for row, reading in enumerate(readings):
        design[row, versions.index(reading.version)] = 1
        design[row, len(versions) + campaigns.index(reading.campaign)] = 1
    design[:, 0] = 0
    return design


def _build_machine_covariance(readings: Sequence[Reading]) -> Floats:
    """Covariances of the deviations: readings of a version on one machine share theirs.

    A ratio has two deviations, so each has half of its variance. On a single machine there is none:
    the line is then about that machine.
    """
    count = len({reading.machine for reading in readings})
    if count < 2:
        return np.zeros((len(readings), len(readings)))
    kinds = [(reading.machine, reading.version) for reading in readings]
    return np.array(
        [[0.5 if kind == other_kind else 0.0 for other_kind in kinds] for kind in kinds]
    )


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


def _estimate_machine_variance(
    design: Floats, readings: Sequence[Reading], of_noise: Floats, of_machines: Floats
) -> tuple[float, float]:
    """(variance of a ratio between machines, its degrees of freedom), by moments, shrunken."""
    if not of_machines.any():
        return 0.0, math.inf
    inverse = np.linalg.inv(of_noise)
    hat = inverse - inverse @ design @ np.linalg.pinv(design.T @ inverse @ design) @ (
        design.T @ inverse
    )
    logs = np.array([reading.log for reading in readings])
    expected = float(np.trace(hat @ of_noise))
    scale = float(np.trace(hat @ of_machines))
    observed = (float(logs @ hat @ logs) - expected) / scale if scale > 1e-9 else 0.0
    freedom = expected if scale > 1e-9 else 0.0
    usual = USUAL_FREEDOM * USUAL_MACHINES**2
    return (freedom * max(observed, 0.0) + usual) / (
        freedom + USUAL_FREEDOM
    ), freedom + USUAL_FREEDOM
