"""What an answer between jobs rests on, in the reader's words."""

import math
from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.analysis.inference import Inference
from runs.analysis.inference.job_prior import PROJECTS
from runs.analysis.inference.job_scatter import ENOUGH_JOBS
from runs.analysis.number_words import percent


def explain_undecided(inferences: Sequence[Inference]) -> str:
    """Of conditions of which none is proven to differ: what is seen, and what to do."""
    alike = [inference for inference in inferences if "all_alike" in inference.reasons]
    if alike:
        middle = sorted(inference.ratio or 1.0 for inference in alike)[len(alike) // 2]
        text = _(
            "All conditions have lost alike (%(size)s), between one job of each side: the machine "
            "or the commit. Run the base again, and then this job."
        )
        return text % {"size": difference(middle)}
    suspicious = [
        inference for inference in inferences if "suspicious" in inference.reasons
    ]
    if suspicious:
        return _suspicious(
            min(suspicious, key=lambda inference: inference.p_value or 0.0)
        )
    return _no_sign(inferences)


def judged_by(inferences: Sequence[Inference]) -> str:
    """What a proven difference of few jobs rests on; empty where there are enough."""
    jobs = min(
        (inference.base_jobs or ENOUGH_JOBS for inference in inferences), default=0
    )
    if not 0 < jobs < ENOUGH_JOBS:
        return ""
    text = ngettext(
        "Judged by %(jobs)d earlier job and the experience of %(projects)d public projects.",
        "Judged by %(jobs)d earlier jobs and the experience of %(projects)d public projects.",
        jobs,
    )
    return text % {"jobs": jobs, "projects": PROJECTS}


def difference(ratio: float) -> str:
    """A ratio that is not proven: "20 % less", "8 % more"."""
    if ratio < 1:
        return _("%(size)s %% less") % {"size": percent(1 - ratio)}
    return _("%(size)s %% more") % {"size": percent(ratio - 1)}


def _suspicious(inference: Inference) -> str:
    chance = max(1, round(100 * (inference.p_value or 0.0) / 2))
    jobs = {"base": inference.base_jobs or 0, "head": inference.head_jobs or 0}
    where = _("between one job of each")
    if jobs != {"base": 1, "head": 1}:
        where = _("by %(head)d of its jobs against %(base)d") % jobs
    text = _(
        "%(size)s, %(where)s; jobs of unchanged code differ so far in %(chance)d of 100 cases. "
        "Run this job once more: --again"
    )
    words = {
        "size": difference(inference.ratio or 1.0),
        "where": where,
        "chance": chance,
    }
    return text % words


def _no_sign(inferences: Sequence[Inference]) -> str:
    widths = [
        math.log(inference.high / inference.ratio)
        for inference in inferences
        if inference.high and inference.ratio
    ]
    words = {
        "loss": percent(-math.expm1(-max(widths, default=0.0))),
        "jobs": min(inference.base_jobs or 0 for inference in inferences),
        "enough": ENOUGH_JOBS,
    }
    if words["jobs"] < ENOUGH_JOBS:  # type: ignore[operator]
        return (
            _(
                "No sign of a change; a loss below %(loss)s %% cannot be seen yet (%(jobs)d of "
                "%(enough)d jobs)."
            )
            % words
        )
    return _("No sign of a change; a loss below %(loss)s %% cannot be seen.") % words
