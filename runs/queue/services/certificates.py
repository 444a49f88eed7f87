"""The certificate of a run: judged from its records when it finishes, and again on demand."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from runs.analysis import fact_readers
from runs.analysis.certificate import (
    RULES_VERSION,
    Certificate,
    Evidence,
    Usage,
    certify,
)
from runs.analysis.machine_speed import PartSpeed
from runs.campaigns.services import repeats
from runs.execution.machine import cpus
from runs.execution.machine.monitors import column_of
from runs.execution.nodes import DATABASE_NODE
from runs.models import Instance, Run, Seal, Series
from runs.models.campaigns import Origin
from runs.queue.selectors import machine_speeds
from runs.queue.services import withdrawals
from runs.scenarios import slices
from runs.seals.services import seals
from runs.wording import gettext_noop

MOST_AT_A_TIME = 100
REJUDGED = gettext_noop("By newer rules it is not invalid.")
RATE, QUEUE = "tps", "run_queue"


def issue(*, run: Run, usage: Mapping[str, Mapping[str, float]]) -> Certificate:
    """Judge a run whose series and notes are stored, and store the judgement with it.

    `usage` says who took the processors of each machine. Four queries, five where the speed of the
    machines is known.
    """
    speeds = machine_speeds.judged(run)
    certificate = certify(_evidence(run, usage, speeds))
    run.validity = certificate.validity
    run.certificate = {
        "rules": RULES_VERSION,
        "is_curable": certificate.is_curable,
        "findings": [
            {
                "code": finding.code,
                "weight": finding.weight,
                "figures": dict(finding.figures),
            }
            for finding in certificate.findings
        ],
        "usage": {machine: dict(seconds_of) for machine, seconds_of in usage.items()},
        "speed": {
            machine: {part.part: part.as_json() for part in parts}
            for machine, parts in speeds.items()
        },
    }
    run.save(update_fields=["validity", "certificate"])
    return certificate


def judge_again() -> int:
    """Judge the runs that were judged by older rules, or never; return how many changed."""
    changed = 0
    while (judged := judge_some()) is not None:
        changed += judged
    return changed


def judge_some() -> int | None:
    """Judge the newest MOST_AT_A_TIME runs again that other rules judged, or nobody.

    How many changed; None where none is left, which the instance remembers: then it is one query.
    """
    instance, _created = Instance.objects.get_or_create(pk=1)
    if instance.judged_rules == RULES_VERSION:
        return None
    finished = Run.objects.filter(Run.MEASURED, origin=Origin.EXECUTED)
    # Without a certificate there is no such key: the comparison is then neither true nor false.
    never = Q(certificate__rules__isnull=True)
    outdated = finished.filter(never | ~Q(certificate__rules=RULES_VERSION)).order_by(
        "-pk"
    )
    runs_to_judge = outdated.select_related(
        "cell__installation", "campaign", "hardware", "environment", "settings"
    )
    runs, changed = list(runs_to_judge[:MOST_AT_A_TIME]), 0
    for run in runs:
        before = run.validity
        with transaction.atomic():
            issue(run=run, usage=run.certificate.get("usage", {}))
            if run.validity != before and Seal.objects.filter(run=run.pk).exists():
                seals.request(
                    run=run.pk, kind=Seal.Kind.JUDGED, reason=f"rules {RULES_VERSION}"
                )
            _count_as_judged(run)
        changed += run.validity != before
    if runs:
        return changed
    Instance.objects.filter(pk=1).update(judged_rules=RULES_VERSION)
    return None


def _count_as_judged(run: Run) -> None:
    """Leave a run out that is invalid now, unless a person decided; let one count that is not."""
    is_invalid, is_used = (
        run.validity == Run.Validity.INVALID,
        run.state == Run.State.FINISHED,
    )
    is_left_out = is_invalid and settings.LEAVE_OUT_INVALID
    # What newer rules restored themselves nobody has decided.
    by_people = run.events.filter(code="restored").exclude(message=REJUDGED)
    if is_left_out and is_used and not by_people.exists():
        repeats.leave_out_invalid(run)
    elif not is_invalid and not is_used:
        withdrawals.restore(run=run, reason=REJUDGED)


def _evidence(
    run: Run,
    usage: Mapping[str, Mapping[str, float]],
    speeds: Mapping[str, Sequence[PartSpeed]],
) -> Evidence:
    series = {
        series.name: series
        for series in run.series.all()
        if series.name == RATE or column_of(series.name)[1] == QUEUE
    }
    reported: Mapping[str, Any] = run.settings.settings if run.settings else {}
    parameters = (run.plan or {}).get("parameters") or run.campaign.parameters
    installation = run.cell.installation
    slice_s = int((run.plan or {}).get("slice_s") or 0)
    repeats = run.campaign.repeats if slice_s else 1
    return Evidence(
        usage=[
            Usage(machine=name, **usage_values)  # type: ignore[arg-type]
            for name, usage_values in usage.items()
        ],
        rates=_points(series.get(RATE)),
        duration_s=_seconds_of_load(parameters, usage, slice_s, repeats),
        turns=_turns(parameters, slice_s, repeats),
        speeds=speeds,
        clients=run.cell.levels.get("clients") or parameters.get("clients"),
        queue=_mean_queue(series),
        processors=run.hardware.threads if run.hardware else None,
        notes={note["code"] for note in run.quality},
        optimisation=fact_readers.optimisation(installation.cflags)
        if installation
        else None,
        assertions=_has_assertions(reported),
        shares_machine=_shares_machine(run),
        foreign_settings=_foreign_settings(reported),
        login=_login(run),
    )


def _seconds_of_load(
    parameters: Mapping[str, Any],
    usage: Mapping[str, Mapping[str, float]],
    slice_s: int,
    repeats: int,
) -> float | None:
    """As asked for, less if the load was on for less, as fio's.

    Of slices those of all `repeats`: a run that has finished has all of them, also those of which
    the usage is not known, since another worker began them.
    """
    if not parameters.get("duration"):
        return None
    if slice_s:
        return float(slices.number_of(parameters, slice_s) * slice_s * repeats)
    seconds_asked = float(parameters["duration"])
    return min(
        [seconds_asked, *(machine_usage["seconds"] for machine_usage in usage.values())]
    )


def _turns(parameters: Mapping[str, Any], slice_s: int, repeats: int) -> int | None:
    """How many slices a side has in all repeats; None for whole runs."""
    if not slice_s or not parameters.get("duration"):
        return None
    return slices.number_of(parameters, slice_s) * repeats


def _points(series: Series | None) -> list[tuple[float, float]]:
    if series is None:
        return []
    return [
        (series.start + index * series.interval, value)
        for index, value in enumerate(series.values)
        if value is not None
    ]


def _mean_queue(series: Mapping[str, Series]) -> float | None:
    """The mean run queue of the database's machine, from the start of the load."""
    queue_series = series.get(QUEUE) or series.get(f"{DATABASE_NODE}-{QUEUE}")
    values = [value for second, value in _points(queue_series) if second > 0]
    return sum(values) / len(values) if values else None


def _has_assertions(settings: Mapping[str, Any]) -> bool | None:
    setting = settings.get("debug_assertions", {}).get("setting")
    return None if setting is None else setting == "on"


# Where a setting may come from besides the configuration, and what psql and libpq always set so.
ELSEWHERE = frozenset(
    {"client", "user", "database", "database user", "environment variable"}
)
RESTRICTED = ("nice", "cpu_limit", "memory_limit_bytes", "cpus_allowed")
OF_SESSIONS = frozenset(
    {"application_name", "client_encoding", "fallback_application_name"}
)
# What PostgreSQL before 15 takes from the limit of its stack, without any variable.
BY_LIMIT = ("max_stack_depth", "environment variable")


def _foreign_settings(settings: Mapping[str, Any]) -> set[str]:
    return {
        name
        for name, setting in settings.items()
        if name not in OF_SESSIONS
        and setting.get("source") in ELSEWHERE
        and (name, setting["source"]) != BY_LIMIT
    }


def _login(run: Run) -> list[str]:
    """What the login gave, where it set variables that no step saw, or may not use all there is."""
    facts: Mapping[str, Any] = run.environment.facts if run.environment else {}
    more_facts = facts.get("more") or {}
    variables = str(more_facts.get("login_variables", "")).split()
    restricted = [
        f"{name} {more_facts[name]}"
        for name in RESTRICTED
        if more_facts.get(name, "none") != "none"
    ]
    if not variables and not restricted:
        return []
    limits = sorted((facts.get("limits") or {}).items())
    numbers = [
        f"{name} {'unlimited' if value is None else value}" for name, value in limits
    ]
    return [
        *variables,
        *str(more_facts.get("login_locale", "")).split(),
        *restricted,
        *numbers,
    ]


def _shares_machine(run: Run) -> bool:
    """Whether pgbench may run on a processor of PostgreSQL."""
    plan = run.plan or {}
    if not plan or plan.get("generators"):
        return False
    treatment = plan.get("treatment") or {}
    chosen = [
        str(treatment.get(name) or "") for name in ("server_cpus", "pgbench_cpus")
    ]
    if not all(chosen):
        return True
    server, generator = (cpus.parse(text) for text in chosen)
    return bool(server & generator)
