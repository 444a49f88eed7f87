"""Valid, doubtful, invalid, unknown: what certificates say of a run and of figures, in words.

Every page, list, chart, export, report and API has its judgements from here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.analysis.certificate import FOREIGN_INVALID, SHARED_IN_TURN
from runs.analysis.judged_runs import Judged
from runs.models import Run
from runs.models.campaigns import Origin
from runs.models.runs import SUMMARY_REPEAT
from runs.shared import queries

LABELS = {
    "valid": _("valid"),
    "doubtful": _("doubtful"),
    "invalid": _("invalid"),
    "unknown": _("unknown"),
    "": "",
}
TONES = {
    "valid": "success",
    "doubtful": "warning",
    "invalid": "error",
    "unknown": "info",
    "": "",
}

# Of the rows of runs_run, those that have a result of their own or are left out for being invalid.
# A printed summary of printed repeats is not a run.
_S, _V = Run.State, Run.Validity
_HAS_RESULT = f"(state = '{_S.FINISHED.value}' AND repeat <> {SUMMARY_REPEAT})"
_LEFT_OUT = f"(state = '{_S.WITHDRAWN.value}' AND code = '{_V.INVALID.value}')"
COUNTED = f"(state = '{_S.FINISHED.value}' OR {_LEFT_OUT})"
COUNTS = f"""
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = '{_V.VALID.value}'),
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = '{_V.DOUBTFUL.value}'),
    count(*) FILTER (WHERE ({_HAS_RESULT} OR {_LEFT_OUT}) AND validity = '{_V.INVALID.value}'),
    count(*) FILTER (WHERE {_HAS_RESULT} AND validity = ''),
    count(*) FILTER (WHERE {_LEFT_OUT}),
    count(*) FILTER (WHERE {_LEFT_OUT} AND EXISTS (
        SELECT FROM runs_run AS again WHERE again.again_of_id = runs_run.id)),
    count(*) FILTER (WHERE origin = '{Origin.EXECUTED.value}')
"""


def judge_cells(cell_ids: Collection[int]) -> dict[int, Judged]:
    """What is said of the runs of each cell that has any with a result. One query."""
    statement = (
        f"SELECT cell_id, {COUNTS} FROM runs_run"  # noqa: S608 - of constants
        f" WHERE cell_id = ANY(%s) AND {COUNTED} GROUP BY 1"
    )
    count_rows = queries.rows(statement, [list(cell_ids)], of=Run)
    return {cell: Judged(*counts) for cell, *counts in count_rows}


def counted(judged: Judged) -> str:
    """How many runs are not valid, by their judgements; empty where none needs a mark."""
    if not judged.has_doubts:
        return ""
    in_use = judged.invalid - judged.left_out
    numbers_and_words = (
        (judged.doubtful, gettext("%(n)d doubtful")),
        (judged.left_out, gettext("%(n)d invalid, left out")),
        (in_use, gettext("%(n)d invalid, counted by decision")),
        (judged.unknown if judged.ours else 0, gettext("%(n)d unknown")),
    )
    return ", ".join(
        words % {"n": number} for number, words in numbers_and_words if number
    )


def mark(judged: Judged) -> str:
    """The mark beside a figure: ⚠ 1 doubtful, 2 invalid, left out. Empty where none is needed."""
    words = counted(judged)
    return f"\N{WARNING SIGN} {words}" if words else ""


# Weights of findings as tones of messages.
_FINDING_TONES = {"invalid": "error", "doubt": "warning", "remark": "info"}
CERTIFICATE_SENTENCES = {
    "foreign_load": _(
        "%(machine)s: %(share)s %% of the processor time was used by neither PostgreSQL nor the"
        " load generator."
    ),
    "steal": _(
        "%(machine)s: its host gave %(share)s %% of the processors to other machines."
    ),
    "throttled": _(
        "%(machine)s: a quota of its control group kept %(share)s %% of the processors from the "
        "run. Raise cpu.max there, or measure elsewhere."
    ),
    "swapping": _(
        "%(machine)s: %(pages)s pages went to swap or came from there during the load."
    ),
    "machine_slow": _(
        "%(machine)s: the machine was slow. Right before and after the load its processors did "
        "%(share)s %% of the work that they usually do."
    ),
    "memory_slow": _(
        "%(machine)s: the machine was slow. Right before and after the load its memory moved "
        "%(share)s %% of what it usually does."
    ),
    "disk_slow": _(
        "%(machine)s: the machine was slow. Right before and after the load its disk wrote "
        "%(share)s %% as fast as it usually does."
    ),
    "memory_pressure": _(
        "%(machine)s: in %(share)s %% of the load's time a process waited for memory."
    ),
    "io_pressure": _(
        "%(machine)s: in %(share)s %% of the load's time a process waited for a disk."
    ),
    "cpu_pressure": _(
        "%(machine)s: in %(share)s %% of the load's time a process waited for a processor, though "
        "more than half of them were idle: a limit or a binding kept it from them."
    ),
    "limits_unknown": _(
        "%(machine)s does not tell %(what)s: whether processes were held back is not known."
    ),
    "usage_unknown": _("What used the processors during the load was not recorded."),
    "generator_on_same_machine": _(
        "The load generator ran on the database's machine and could use its processors."
    ),
    "run_queue": _(
        "%(queue)s processes waited for a processor on average, more than %(clients)s clients"
        " explain."
    ),
    "drift": _(
        "The throughput changed by %(change)s %% from the beginning to the end of the run."
    ),
    "warm_up": _("The first %(seconds)s s were not yet steady."),
    "dips": _("The throughput dropped %(number)s times, by up to %(depth)s %%."),
    "too_short": _("The load lasted only %(seconds)s s: too short for a conclusion."),
    "short": _("The load lasted only %(seconds)s s; reports measure for 300 s."),
    "generator_saturated": _("The load generator was saturated: it measured itself."),
    "load_stalled": _("The load stalled for some time."),
    "generator_stalled": _("The load generator stood still for some time."),
    "checkpoint_during_run": _("A checkpoint started during the load."),
    "autovacuum_during_run": _("Autovacuum worked on measured tables during the load."),
    "clocks_differ": _("The clocks of the machines differ."),
    "second_threads": _("Some of the processors were second threads of the same core."),
    "profiled": _(
        "perf sampled the machine during the load, which itself takes processor time."
    ),
    "short_statement": _(
        "A statement took less than a second and was executed once: its time may scatter widely."
    ),
    "settings_changed": _("Settings changed during the load."),
    "foreign_settings": _(
        "Set by an account, a database or the environment, and not by the configuration: %(names)s."
    ),
    "login": _(
        "The account's login gives more than steps see, or less than there is: %(found)s."
    ),
    "assertions": _(
        "PostgreSQL was built with assertions, which cost time in every run."
    ),
    "not_optimised": _("PostgreSQL was built with %(flag)s, without optimisation."),
}


# Why a finding weighs less in slices than in a whole run, by its weight there.
IN_TURN = {
    "remark": _(
        "In slices all runs of a round share this in turn, so it is a remark; it would make a "
        "whole run doubtful."
    ),
    "doubt": _(
        "In slices all runs of a round share this in turn, so it is a doubt; it would make a "
        "whole run invalid."
    ),
}


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


def certificate_sentences(run: Run) -> list[Sentence]:
    """The findings of a run's certificate, the most serious first."""
    sentences = [_sentence(finding) for finding in run.certificate.get("findings", [])]
    order = list(_FINDING_TONES)
    return sorted(
        sentences,
        key=lambda sentence: (
            order.index(sentence.weight) if sentence.weight in order else 9
        ),
    )


def _sentence(finding: Mapping[str, Any]) -> Sentence:
    code, figures = str(finding.get("code", "")), finding.get("figures") or {}
    try:
        message = str(CERTIFICATE_SENTENCES[code]) % figures
    except (KeyError, TypeError, ValueError):
        message = code  # as stored by a later BenchLab
    weight = str(finding.get("weight", ""))
    if _is_lightened(code, weight, figures):
        message = f"{message} {IN_TURN[weight]}"
    return Sentence(code, weight, figures, message)


def _is_lightened(code: str, weight: str, figures: Mapping[str, Any]) -> bool:
    """Whether a whole run would be judged more severely for it: then the run is one in slices."""
    if code not in SHARED_IN_TURN:
        return False
    is_beyond = figures.get("share", 0) > 100 * FOREIGN_INVALID
    return weight == "remark" or (
        weight == "doubt" and code == "foreign_load" and is_beyond
    )
