"""The additive model of one campaign: log value = cell + block, by least squares.

A block is a round of repeats: one run of each cell, in a random order. A disturbance of a complete
round (the machine is warmer, a neighbour is busier) is removed from all comparisons within it. Runs
may be missing; then a cell's estimate is based on the existing runs, less their blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runs.analysis.arrays import Floats, Places, Truths
from runs.analysis.inference.cells import Cell

# Beyond this size a block per round costs more than it gains: long histories have none.
MOST_BLOCKS = 400
TOLERANCE = 1e-9
EVERY = slice(None)


@dataclass(frozen=True)
class Weights:
    """The variance of each of these `rows` is the sum over its cells of factor times variance.

    `cells` are places rows x cells, or all cells; `of_base` are the factors of the rows' bases.
    """

    rows: Places
    cells: Places | slice
    factors: Floats
    of_base: Floats


@dataclass(frozen=True)
class Fit:
    """Cells fitted, in the order given.

    `means` are the cells' levels, `variances` those of their residuals with `freedom` degrees each
    (0: unknown). `counts` is cells x blocks, the number of runs; None where no blocks are used.
    `inverse` is the (pseudo)inverse of the blocks' normal equations.
    """

    n: Floats
    means: Floats
    variances: Floats
    freedom: Floats
    counts: Floats | None = None
    inverse: Floats | None = None
    block_f: float = 0.0
    block_freedom: float = 0.0

    def weights(self, base: Places, head: Places) -> list[Weights]:
        """Of the differences head - base, without rows that cannot be estimated within blocks."""
        sides = np.stack([base, head], axis=1)
        # The weight of each run of a side.
        run_weights = np.stack([-1 / self.n[base], 1 / self.n[head]], axis=1)
        run_weights[base == head] = 0.0
        share = np.zeros((len(self.n), 1))
        if self.counts is not None:
            share = self.counts / self.n[:, None]
        apart = share[head] - share[base]
        uneven = _is_uneven(apart)
        even = np.flatnonzero(~uneven)
        factors = (run_weights**2 * self.n[sides])[even]
        weights_by_rows = [Weights(even, sides[even], factors, factors[:, 0])]
        if (rows := np.flatnonzero(uneven)).size:
            of_cells = np.zeros((len(rows), len(self.n)))
            np.add.at(
                of_cells,
                (np.arange(len(rows))[:, None], sides[rows]),
                run_weights[rows],
            )
            factors, estimable = self._factors(of_cells, apart[rows])
            of_base = factors[np.arange(len(rows)), base[rows]]
            weights_by_rows.append(
                Weights(rows[estimable], EVERY, factors[estimable], of_base[estimable])
            )
        return weights_by_rows

    def weights_of_sum(self, sums: Floats) -> tuple[Floats, Truths]:
        """(variance factors rows x cells, whether each row can be estimated within blocks).

        `sums` is rows x cells: sums of cells' levels, each row adding to 0.
        """
        run_weights = sums / self.n
        return self._factors(
            run_weights,
            np.zeros((1, 1)) if self.counts is None else run_weights @ self.counts,
        )

    def _factors(self, run_weights: Floats, apart: Floats) -> tuple[Floats, Truths]:
        """As weights_of_sum(): by the weight of each run of a cell, and of each block (`apart`)."""
        factors = run_weights**2 * self.n
        estimable = np.ones(len(run_weights), dtype=bool)
        if self.counts is None or self.inverse is None:
            return factors, estimable
        uneven = np.flatnonzero(_is_uneven(apart))
        if len(uneven):
            estimable[uneven], factors[uneven] = self._uneven(
                apart[uneven], run_weights[uneven], self.counts, self.inverse
            )
        return factors, estimable

    def _uneven(
        self, apart: Floats, run_weights: Floats, counts: Floats, inverse: Floats
    ) -> tuple[Truths, Floats]:
        """The same for rows whose sides do not have the same blocks."""
        solved = apart @ inverse
        # What the blocks' equations cannot express is not known from runs of the same round.
        share = counts / self.n[:, None]
        normal = np.diag(counts.sum(axis=0)) - counts.T @ share
        estimable = np.abs(solved @ normal - apart).max(axis=1) < 1e-6
        # A run of cell c in block b has the weight own - correction.
        correction = solved[:, None, :] - (solved @ share.T)[:, :, None]
        squares = (run_weights[:, :, None] - correction) ** 2 * counts[None, :, :]
        return estimable, squares.sum(axis=2)


def _is_uneven(apart: Floats) -> Truths:
    """Whether the sides of each row do not have the same blocks."""
    uneven: Truths = np.abs(apart).max(axis=1, initial=0) > TOLERANCE
    return uneven


def plain(cells: Sequence[Cell]) -> Fit:
    """Without blocks: each cell by its own mean and variance."""
    n = np.array([cell.n for cell in cells], dtype=float)
    means = np.array([0.0 if cell.mean is None else cell.mean for cell in cells])
    has_spread = [cell.mean is not None and cell.variance is not None for cell in cells]
    variances = np.array([cell.variance or 0.0 for cell in cells])
    freedom = np.where(has_spread, n - 1, 0.0)
    return Fit(n, means, variances, freedom)


def blocked(cells: Sequence[Cell]) -> Fit | None:
    """With a block for each round; None if no round has runs of two cells, or a run has none."""
    usable = [
        len(cell.measured) == len(cell.measured_in) == cell.count
        and None not in cell.measured_in
        for cell in cells
    ]
    if not any(usable):
        return None
    names: dict[object, int] = {}
    of_run: list[int] = []
    in_block: list[int] = []
    logs: list[float] = []
    for position, (cell, is_usable) in enumerate(zip(cells, usable)):
        if is_usable:
            of_run += [position] * cell.count
            in_block += [
                names.setdefault(block, len(names)) for block in cell.measured_in
            ]
            logs += cell.measured
    if len(names) < 2 or len(names) > MOST_BLOCKS:
        return None
    return _least_squares(
        cells, np.array(of_run), np.array(in_block), np.array(logs), len(names)
    )


def _least_squares(
    cells: Sequence[Cell], of_run: Places, in_block: Places, logs: Floats, blocks: int
) -> Fit | None:
    count = len(cells)
    n = np.array([cell.count for cell in cells], dtype=float)
    counts = np.zeros((count, blocks))
    np.add.at(counts, (of_run, in_block), 1.0)
    counts_of_block = np.maximum(counts.sum(axis=1), 1)
    raw = np.bincount(of_run, logs, count) / counts_of_block
    share = counts / counts_of_block[:, None]
    normal = np.diag(counts.sum(axis=0)) - counts.T @ share
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    if not (np.abs(inverse).max() > 0):
        return None
    right = np.bincount(in_block, logs - raw[of_run], blocks)
    effects = inverse @ right
    means = raw - share @ effects
    residuals = logs - means[of_run] - effects[in_block]
    apart = np.eye(blocks)[in_block] - share[of_run]
    leverage = 1 / counts_of_block[of_run] + np.einsum(
        "ij,jk,ik->i", apart, inverse, apart, optimize=True
    )
    squares = np.bincount(of_run, residuals**2, count)
    freedom = np.maximum(np.bincount(of_run, 1 - leverage, count), 0.0)
    freedom[freedom < TOLERANCE] = 0.0
    variances = np.divide(squares, freedom, out=np.zeros(count), where=freedom > 0)
    rank = float(np.linalg.matrix_rank(normal, hermitian=True))
    between = float(right @ effects)
    within = float(squares.sum()) / max(float(freedom.sum()), TOLERANCE)
    block_f = (between / rank) / within if rank and within > 0 else 0.0
    return Fit(n, means, variances, freedom, counts, inverse, block_f, rank)
