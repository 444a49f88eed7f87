"""From cells to an answer: how much faster or slower, how certain, and in one word.

`judge()` fits one model to the cells of a campaign and answers for any pairs of them. Every page,
gate, badge and report shows its answer. The model and its error rates are in docs/statistics.md.
"""

from runs.analysis.inference import critical
from runs.analysis.inference.cells import Cell, Noise, Pair
from runs.analysis.inference.kernel import judge
from runs.analysis.inference.model import Model
from runs.analysis.inference.overall_effect import judge_together
from runs.analysis.inference.verdicts import (
    DEFAULT_EFFECT,
    MINIMUM_EFFECT,
    PROVEN,
    RULES,
    SIGNIFICANCE,
    VERDICTS,
    Direction,
    Inference,
    Rule,
    Verdict,
    overall,
)
