"""A run's certificate in the reader's language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from runs.models import Run

VALIDITIES = {
    "valid": _("valid"),
    "doubtful": _("doubtful"),
    "invalid": _("not valid"),
    "": _("not certified"),
}
TONES = {"valid": "success", "doubtful": "warning", "invalid": "error", "": "info"}
# Weights of findings as tones of messages.
_FINDING_TONES = {"invalid": "error", "doubt": "warning", "remark": "info"}
SENTENCES = {
    "foreign_load": _(
        "%(machine)s: %(share)s %% of the processors were taken by neither PostgreSQL nor the load"
        " generator."
    ),
    "steal": _("%(machine)s: its host gave %(share)s %% of the processors to other machines."),
    "usage_unknown": _("Who took the processors during the load was not recorded."),
    "generator_on_same_machine": _(
        "The load generator ran on the database's machine and could use its processors."
    ),
    "run_queue": _(
        "%(queue)s processes waited for a processor on average, more than %(clients)s clients"
        " explain."
    ),
    "drift": _("The throughput changed by %(change)s %% from the begin to the end of the run."),
    "warm_up": _("The first %(seconds)s s were not yet steady."),
    "dips": _("The throughput broke down %(number)s times, at the most by %(depth)s %%."),
    "too_short": _("The load was on for %(seconds)s s only: too short to say anything."),
    "short": _("The load was on for %(seconds)s s only; reports measure for 300 s."),
    "generator_saturated": _("The load generator was saturated: it measured itself."),
    "load_stalled": _("The load stood still for some time."),
    "checkpoint_during_run": _("A checkpoint came while the load was on."),
    "clocks_differ": _("The clocks of the machines differ."),
    "second_threads": _("Some of the processors were second threads of the same core."),
    "profiled": _("perf sampled the machine meanwhile, which takes time of its own."),
    "assertions": _("PostgreSQL was built with assertions, which cost time in every run."),
    "not_optimised": _("PostgreSQL was built with %(flag)s, without optimisation."),
}


def doubtful_runs(number: int) -> str:
    """A mark for wherever the runs are counted."""
    words = ngettext("%(number)d run in doubt", "%(number)d runs in doubt", number)
    return f"\N{WARNING SIGN} {words % {'number': number}}"


def closed_loop(metrics: Iterable[str], *settings: Mapping[str, Any] | None) -> str:
    """What to know of latencies that no rate was set for; empty for others.

    `settings` say what the load was: levels, parameters, workload.
    """
    if any((each or {}).get("rate") for each in settings):
        return ""
    if not any(name.startswith("latency") for name in metrics):
        return ""
    return gettext(
        "Latencies of a closed loop: a client sends its next transaction when the last has ended, "
        "so stalls look rarer than somebody would have met them."
    )


@dataclass(frozen=True)
class Sentence:
    """One finding, as it is shown and sent."""

    code: str
    weight: str
    figures: Mapping[str, Any]
    message: str

    @property
    def tone(self) -> str:
        """The tone of a message with its weight."""
        return _FINDING_TONES.get(self.weight, "info")


def sentences(run: Run) -> list[Sentence]:
    """The findings of a run's certificate, the most serious first."""
    found = [_sentence(each) for each in run.certificate.get("findings", [])]
    order = list(_FINDING_TONES)
    return sorted(found, key=lambda each: order.index(each.weight) if each.weight in order else 9)


def _sentence(finding: Mapping[str, Any]) -> Sentence:
    code, figures = str(finding.get("code", "")), finding.get("figures") or {}
    try:
        message = str(SENTENCES[code]) % figures
    except (KeyError, TypeError, ValueError):
        message = code  # as stored by a later BenchLab
    return Sentence(code, str(finding.get("weight", "")), figures, message)
