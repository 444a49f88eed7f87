"""Cells fitted campaign by campaign, and contrasts between them with their errors."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats, Places
from runs.analysis.inference import blocks, critical
from runs.analysis.inference.blocks import Fit
from runs.analysis.inference.cells import Cell, Noise, Pair
from runs.analysis.inference.variances import Moderated, are_unlike, moderate
from runs.grouping import group_by_key

# With fewer degrees of freedom left, rounds are removed only if they are significant.
FEW_FREEDOM, ROUNDS_SHOW = 12.0, 0.005
# Where the sides took turns in one job: five rounds of one condition leave so many.
FREEDOM_OF_TURNS = 3.5
# The fits of a larger campaign, in runs, are not kept: they take megabytes.
MOST_KEPT = 1000


@dataclass(frozen=True)
class Contrasts:
    """Differences head - base of logs, with their errors; `freedom` is 0 if no error is known.

    `shared` is the root of the base's part of each variance, `pooled` the degrees of freedom of the
    variance that most rows share.
    """

    differences: Floats
    bases: Floats
    heads: Floats
    errors: Floats
    freedom: Floats
    shared: Floats
    pooled: float


class _Fits:
    """The fits of one campaign's cells, each with its moderated variances."""

    def __init__(
        self, fit_cells: tuple[Cell, ...], noise: Noise | None, rounds_from: float
    ) -> None:
        self._own, self._noise, self._rounds_from = fit_cells, noise, rounds_from
        self.plain = blocks.plain(fit_cells)
        self.is_unlike = False
        # Of the mean of n runs, in the variance of one.
        self._rounding = np.array([cell.n * cell.rounding for cell in fit_cells])
        self.of_plain = self._moderated(self.plain)

    @cached_property
    def round_fit(self) -> tuple[Fit, Moderated] | None:
        """None where rounds are not told. Asked for by pairs within a campaign only."""
        if (fit := blocks.blocked(self._own)) is None:
            return None
        moderated = self._moderated(fit)
        if moderated.freedom.max() < self._rounds_from and not _rounds_show(fit):
            return None
        return fit, moderated

    def apart(self, sides: Floats) -> _Fits:
        """The same with bases and heads moderated apart unless they scatter alike."""
        copied = copy(self)
        unlike = are_unlike(self.plain, sides)
        copied.is_unlike = bool(unlike)
        if unlike is not False:
            copied.of_plain = self._moderated(self.plain, sides)
        if self.round_fit is not None:
            fit, _alike = self.round_fit
            # Of two cells in rounds the residuals mirror each other, and say nothing of sides.
            if unlike or are_unlike(fit, sides):
                copied.round_fit = fit, self._moderated(fit, sides)
        return copied

    def _moderated(self, fit: Fit, sides: Floats | None = None) -> Moderated:
        moderated = moderate(fit, self._noise, sides)
        return replace(moderated, variances=moderated.variances + self._rounding)


@dataclass(frozen=True)
class _Part:
    """The cells of one campaign: their places and fits."""

    places: Places
    fits: _Fits


class Model:
    """The model of all given cells; `noise` maps a campaign to the noise of its server.

    In the campaigns of `turns` the runs of a round took turns in one job: five rounds are removed
    there whether they show or not.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        noise: dict[Hashable, Noise] | Noise | None = None,
        *,
        turns: Collection[Hashable] = (),
    ) -> None:
        self.cells = cells
        self.count = len(cells)
        groups = group_by_key(
            (cell.campaign, position) for position, cell in enumerate(cells)
        )
        self._part_of = np.zeros(self.count, dtype=np.int64)
        self._parts: list[_Part] = []
        # A table is asked for its level, and then for its rows.
        self._contrasts: dict[tuple[Pair, ...], Contrasts] = {}
        self._for_tables: dict[tuple[float, ...], Model] = {}
        for campaign, places in groups.items():
            self._part_of[places] = len(self._parts)
            machine_noise = noise.get(campaign) if isinstance(noise, dict) else noise
            least = FREEDOM_OF_TURNS if campaign in turns else FEW_FREEDOM
            self._parts.append(_part(cells, np.array(places), machine_noise, least))

    def adapt_to_table(self, rows: Sequence[Pair]) -> Model:
        """The model in which the bases and heads of these rows share no scatter that is unlike."""
        bases = {pair.base for pair in rows if pair.base is not None}
        heads = {pair.head for pair in rows if pair.head is not None}
        if not bases or not heads or bases & heads:
            return self
        sides = np.zeros(self.count)
        sides[list(bases)], sides[list(heads)] = -1, 1
        key = tuple(sides.tolist())
        if key not in self._for_tables:
            copied = copy(self)
            copied._contrasts = {}
            copied._parts = [
                replace(part, fits=part.fits.apart(sides[part.places]))
                if len(set(sides[part.places]) - {0.0}) > 1
                else part
                for part in self._parts
            ]
            self._for_tables[key] = copied
        return self._for_tables[key]

    @property
    def is_unlike(self) -> bool:
        """Whether the bases and heads of its table scatter unlike."""
        return any(part.fits.is_unlike for part in self._parts)

    def contrasts(self, pairs: Sequence[Pair]) -> Contrasts:
        """The contrasts of pairs whose sides were both measured; nobody may change them."""
        wanted_pairs = tuple(pairs)
        if wanted_pairs not in self._contrasts:
            self._contrasts[wanted_pairs] = self._contrasted(wanted_pairs)
        return self._contrasts[wanted_pairs]

    def _contrasted(self, pairs: Sequence[Pair]) -> Contrasts:
        base = np.array([pair.base for pair in pairs], dtype=np.int64)
        head = np.array([pair.head for pair in pairs], dtype=np.int64)
        contrasts = self._across(base, head)
        for number, part in enumerate(self._parts):
            here = (self._part_of[base] == number) & (self._part_of[head] == number)
            if here.any() and part.fits.round_fit is not None:
                rows = np.flatnonzero(here)
                self._within(
                    part.places, *part.fits.round_fit, rows, base, head, contrasts
                )
        return contrasts

    def together(self, pairs: Sequence[Pair]) -> Contrasts:
        """The mean of the differences of tested pairs of one campaign, as a single contrast."""
        model_part = self._parts[self._part_of[pairs[0].base or 0]]
        positions = np.full(self.count, -1)
        positions[model_part.places] = np.arange(len(model_part.places))
        base = positions[np.array([pair.base for pair in pairs])]
        head = positions[np.array([pair.head for pair in pairs])]
        sums = np.zeros((1, len(model_part.places)))
        np.add.at(sums[0], head, 1 / len(pairs))
        np.add.at(sums[0], base, -1 / len(pairs))
        fit, moderated, factors = _fit_for(model_part.fits, sums)
        most = fit.freedom[sums[0] != 0].sum()
        variance, freedom = _errors(fit, moderated, blocks.EVERY, factors, most)
        base_mean, head_mean = (
            fit.means[base].mean(keepdims=True),
            fit.means[head].mean(keepdims=True),
        )
        root, shared = np.sqrt(variance), np.zeros(1)
        return Contrasts(
            head_mean - base_mean,
            base_mean,
            head_mean,
            root,
            freedom,
            shared,
            float(moderated.freedom.max()),
        )

    def level(self, pairs: Sequence[Pair], significance: float) -> float:
        """The two-sided level of each row at which these rows together have `significance`."""
        tested = [pair for pair in pairs if self.is_tested(pair)]
        if len(tested) < 2:
            return significance
        contrasts = self.contrasts(tested)
        bases = (pair.base for pair in tested)
        groups = group_by_key(zip(bases, contrasts.shared.tolist()))
        return critical.level(groups.values(), contrasts.pooled, significance)

    def reading(self, position: int) -> tuple[float, float, float] | None:
        """(mean, variance of the mean, degrees of freedom) of a cell; None without a spread."""
        if not self.is_tested(Pair(position, position)):
            return None
        model_part = self._parts[self._part_of[position]]
        fits = model_part.fits
        fit, moderated = fits.round_fit or (fits.plain, fits.of_plain)
        row_number = int(np.flatnonzero(model_part.places == position)[0])
        freedom = min(
            float(moderated.freedom[row_number]),
            float(moderated.prior[row_number] + fit.freedom[row_number]),
        )
        variance = float(moderated.variances[row_number] / fit.n[row_number])
        return float(fit.means[row_number]), variance, max(freedom, 1.0)

    def is_tested(self, pair: Pair) -> bool:
        """Whether both sides were measured, positive, and have a known spread.

        That of single runs in slices is known between cells of one campaign. Of those that were to
        take turns only common rounds are compared.
        """
        if pair.base is None or pair.head is None:
            return False
        base, head = self.cells[pair.base], self.cells[pair.head]
        if base.mean is None or head.mean is None:
            return False
        if base.needs_rounds(head):
            return base.shares_rounds(head)
        if base.variance is not None and head.variance is not None:
            return True
        return base.campaign == head.campaign and base.shares_rounds(head)

    def _across(self, base: Places, head: Places) -> Contrasts:
        """Every pair by the plain means of its cells, ignoring rounds."""
        n, means = np.zeros(self.count), np.zeros(self.count)
        variances, total, freedom = (
            np.zeros(self.count),
            np.zeros(self.count),
            np.zeros(self.count),
        )
        shares, pooled = np.zeros(self.count), np.zeros(self.count)
        group = np.zeros(self.count)
        for model_part in self._parts:
            cell_numbers, fit, moderated = (
                model_part.places,
                model_part.fits.plain,
                model_part.fits.of_plain,
            )
            n[cell_numbers], means[cell_numbers], variances[cell_numbers] = (
                fit.n,
                fit.means,
                moderated.variances,
            )
            total[cell_numbers] = moderated.prior + fit.freedom
            shares[cell_numbers] = (1 - moderated.own) * moderated.pooled
            pooled[cell_numbers], freedom[cell_numbers] = moderated.freedom, fit.freedom
            group[cell_numbers] = moderated.group
        of_base, of_head = variances[base] / n[base], variances[head] / n[head]
        variance = of_base + of_head
        common_base, common_head = shares[base] / n[base], shares[head] / n[head]
        is_one = (self._part_of[base] == self._part_of[head]) & (
            group[base] == group[head]
        )
        inverse = np.where(
            is_one,
            _divide((common_base + common_head) ** 2, pooled[base]),
            _divide(common_base**2, pooled[base])
            + _divide(common_head**2, pooled[head]),
        )
        inverse += _divide(of_base**2, total[base]) + _divide(of_head**2, total[head])
        most = np.where(is_one, pooled[base], pooled[base] + pooled[head])
        most = np.maximum(most, freedom[base] + freedom[head])
        return Contrasts(
            differences=means[head] - means[base],
            bases=means[base],
            heads=means[head],
            errors=np.sqrt(variance),
            freedom=_satterthwaite(variance, inverse, most),
            shared=np.sqrt(_divide(of_base, variance)),
            # Of the campaigns of these pairs: what else is loaded changes no answer.
            pooled=float(
                max(pooled[base].max(initial=0.0), pooled[head].max(initial=0.0))
            ),
        )

    def _within(
        self,
        places: Places,
        fit: Fit,
        moderated: Moderated,
        rows: Places,
        base: Places,
        head: Places,
        contrasts: Contrasts,
    ) -> None:
        """Rows of one campaign by its rounds, replacing the result without rounds."""
        position_of = np.full(self.count, -1)
        position_of[places] = np.arange(len(places))
        base_rows, head_rows = position_of[base[rows]], position_of[head[rows]]
        estimable = (fit.freedom[base_rows] > 0) & (fit.freedom[head_rows] > 0)
        rows, base_rows, head_rows = (
            rows[estimable],
            base_rows[estimable],
            head_rows[estimable],
        )
        if not len(rows):
            return
        # Most rows have two cells: a table of all rows by all cells would be zeros.
        for weights in fit.weights(base_rows, head_rows):
            target_rows, here, head_cells = (
                rows[weights.rows],
                base_rows[weights.rows],
                head_rows[weights.rows],
            )
            variance, freedom = _errors(
                fit,
                moderated,
                weights.cells,
                weights.factors,
                fit.freedom[here] + fit.freedom[head_cells],
            )
            contrasts.differences[target_rows] = fit.means[head_cells] - fit.means[here]
            contrasts.bases[target_rows], contrasts.heads[target_rows] = (
                fit.means[here],
                fit.means[head_cells],
            )
            contrasts.errors[target_rows] = np.sqrt(variance)
            contrasts.freedom[target_rows] = freedom
            of_base = weights.of_base * moderated.variances[here]
            contrasts.shared[target_rows] = np.sqrt(_divide(of_base, variance))


def _part(
    cells: Sequence[Cell], places: Places, noise: Noise | None, rounds_from: float
) -> _Part:
    part_cells = tuple(cells[position] for position in places)
    fits = _fits if sum(cell.n for cell in part_cells) <= MOST_KEPT else _Fits
    return _Part(places, fits(part_cells, noise, rounds_from))


# Kept, since whoever judges two campaigns asks for the fits of both when one has changed.
_fits = lru_cache(maxsize=64)(_Fits)


def _fit_for(fits: _Fits, sums: Floats) -> tuple[Fit, Moderated, Floats]:
    """The fit with rounds where it can tell these sums of cells, else the one without."""
    if fits.round_fit is not None:
        fit, moderated = fits.round_fit
        factors, estimable = fit.weights_of_sum(sums)
        if estimable.all() and (fit.freedom[sums[0] != 0] > 0).all():
            return fit, moderated, factors
    return fits.plain, fits.of_plain, fits.plain.weights_of_sum(sums)[0]


def _errors(
    fit: Fit, moderated: Moderated, cells: Places | slice, factors: Floats, most: Floats
) -> tuple[Floats, Floats]:
    """(variance, degrees of freedom) of each row, at most those known or `most`.

    `factors` are those of its `cells`, as in blocks.Weights.
    """
    error_parts = factors * moderated.variances[cells]
    variance: Floats = error_parts.sum(axis=1)
    common = factors * ((1 - moderated.own) * moderated.pooled)[cells]
    inverse = _divide(error_parts**2, (moderated.prior + fit.freedom)[cells]).sum(
        axis=1
    )
    for number in np.unique(moderated.group):
        here = moderated.group == number
        of_group = (common * here[cells]).sum(axis=1)
        inverse += _divide(
            of_group**2, np.full(len(factors), moderated.freedom[here].max())
        )
    return variance, _satterthwaite(
        variance, inverse, np.maximum(moderated.freedom.max(), most)
    )


def _rounds_show(fit: Fit) -> bool:
    """Whether rounds differ by more than their runs: an F test."""
    freedom = float(fit.freedom.sum())
    return freedom > 0 and bool(
        sp.special.fdtrc(fit.block_freedom, freedom, fit.block_f) < ROUNDS_SHOW
    )


def _divide(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, 0 if the bottom is 0."""
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    bottom = np.broadcast_to(bottom, shape)
    quotient: Floats = np.divide(
        np.broadcast_to(top, shape), bottom, out=np.zeros(shape), where=bottom > 0
    )
    return quotient


def _satterthwaite(variance: Floats, inverse: Floats, most: Floats) -> Floats:
    """Degrees of freedom of a sum of variances; sums without scatter have all of them."""
    freedom_of_sum = np.where(inverse > 0, _divide(variance**2, inverse), most)
    capped: Floats = np.minimum(freedom_of_sum, most)
    return capped
