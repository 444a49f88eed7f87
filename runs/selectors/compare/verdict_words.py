"""Verdicts and their reasons in the reader's language: codes of the analysis as words."""

from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

REASONS = {
    "hardware_differs": _("the hardware differs"),
    "environment_differs": _("the environment (operating system) differs"),
    "build_differs": _("the build of PostgreSQL differs"),
    "settings_differs": _("settings that nobody varied differ"),
    "workload_differs": _("what was measured differs"),
    "hardware_unknown": _("the hardware of a side is not known"),
    "environment_unknown": _("the environment of a side is not known"),
    "build_unknown": _("the build of a side is not known"),
    "settings_unknown": _("the settings of a side are not known"),
    "workload_unknown": _("what a side has measured is not known"),
    "not_positive": _("a value is not positive"),
    "not_measured": _("a side was not measured"),
    "single_run": _("a side has a single run"),
    "spread_unknown": _("the spread of the repeats is not published"),
}
VERDICTS = {
    "faster": _("faster"),
    "slower": _("slower"),
    "different": _("different"),
    "no_evidence": _("no evidence"),
    "too_few_runs": _("too few runs"),
    "not_comparable": _("not comparable"),
}
HEADLINES = {
    "slower": _("Slower: at least one condition has lost more than the minimum effect."),
    "faster": _("Faster, and no condition is slower."),
    "different": _("No regression; a metric of which neither end is better has changed."),
    "no_evidence": _("No evidence of a change."),
    "too_few_runs": _("Not decidable: a condition has too few runs; measure at least two a side."),
    "not_comparable": _("Not decidable: a condition of the base was not measured alike."),
}


def sentence(codes: Iterable[str]) -> str:
    """The reasons in one line."""
    return "; ".join(str(REASONS.get(code, code)) for code in codes)
