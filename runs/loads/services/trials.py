"""Trials: try on one slower statement the settings to which its plan points.

A campaign of one round of two runs, which take turns: the statement on the version that it was
faster on, and on the other one as it is, twice, with each setting put back, and with all. Both
copy the clusters that the load's campaign has left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.access.services import audit
from runs.analysis.why.proof import A
from runs.campaigns.services import repetitions, slicing
from runs.campaigns.services.titles import make_titles
from runs.execution.plan import RunPlan, UnreadablePlan
from runs.loads.selectors import loads
from runs.loads.selectors.answers import LoadAnswer, Row
from runs.models import Campaign, Cell, Load, Run
from runs.models.postgres import major_version
from runs.queue.services import plans
from runs.queue.services.plans import NewRun
from runs.scenarios import statements
from runs.scenarios.statements import trials
from runs.shared.errors import ServiceError
from runs.statements import trial


@dataclass(frozen=True)
class _Side:
    """A cell of the load's campaign, a run of it, that run's plan, and its level in the trial."""

    cell: Cell
    run: Run
    plan: RunPlan
    level: str


@transaction.atomic
def queue(
    *,
    load: Load,
    measured: Campaign,
    answer: LoadAnswer,
    statement: int,
    by: User | None,
) -> Campaign:
    """Queue the trial of a statement that `answer` calls slower.

    Raises ServiceError `nothing_to_try`, `already_measured`, `nothing_to_repeat`,
    `plan_of_other_version`, `memory_too_small`.
    """
    row = _row(answer, statement)
    settings = {one.name: one.value for one in row.cause.settings} if row.cause else {}
    if not settings:
        message = _("Its plan points to no setting whose default differs.")
        raise ServiceError("nothing_to_try", message)
    live = loads.trials_of(measured).filter(state__in=Campaign.LIVE)
    if live.filter(**{f"parameters__{trial.STATEMENT}": statement}).exists():
        raise ServiceError("already_measured", _("It is being tried already."))
    sides = (
        _side(measured, answer.base, A),
        _side(measured, answer.head, trial.level(settings)),
    )
    _require_memory(sides)
    campaign = _campaign(load, measured, sides, _parameters(measured, row), by)
    _queue(campaign, sides)
    details = {"campaign": campaign.slug, "settings": list(settings)}
    audit.record("trial_queued", campaign, after=details)
    return campaign


def _require_memory(sides: Sequence[_Side]) -> None:
    """Both clusters are up at once."""
    needed = sum(
        slicing.shared_buffers(side.plan.settings, major_version(side.plan.version_num))
        for side in sides
    )
    remedy = _("Measure the load with a configuration that has less.")
    server = sides[0].run.server
    problem = server and slicing.memory_problem(server, len(sides), needed, remedy)
    if problem:
        raise ServiceError(problem.code, problem.message, remedy=problem.remedy)


def _row(answer: LoadAnswer, statement: int) -> Row:
    for row in answer.rows:
        if row.unit.number == statement:
            return row
    raise ServiceError("nothing_to_try", _("The load has no such statement."))


def _side(measured: Campaign, version: str, level: str) -> _Side:
    measured_runs = Run.objects.filter(
        Run.MEASURED, campaign=measured, cell__version=version
    )
    run = measured_runs.select_related("cell__installation").order_by("-repeat").first()
    if run is None or run.plan is None:
        message = _("No run of this campaign has finished.")
        raise ServiceError("nothing_to_repeat", message)
    try:
        return _Side(run.cell, run, RunPlan.from_json(run.plan), level)
    except UnreadablePlan as unreadable:
        raise plans.other_version(unreadable) from unreadable


def _parameters(measured: Campaign, row: Row) -> dict[str, int]:
    settings = row.cause.settings if row.cause else ()
    arms = 2 + len(settings) + (len(settings) > 1)
    milliseconds = (row.base_ms or 0.0) + arms * (row.head_ms or 0.0)
    if measured.parameters.get(statements.COLD):
        milliseconds += (1 + arms) * statements.RESTART_MS
    kept_parameters = {
        name: value
        for name, value in measured.parameters.items()
        if name in {"statement_timeout", "disk_mb", "passes", statements.COLD}
    }
    return {
        **kept_parameters,
        "duration": trials.number_of_slices(milliseconds * len(row.unit.samples)),
        trial.STATEMENT: row.unit.number,
        trial.OF_CAMPAIGN: measured.pk,
    }


def _campaign(
    load: Load,
    measured: Campaign,
    sides: Sequence[_Side],
    parameters: Mapping[str, int],
    by: User | None,
) -> Campaign:
    titles = make_titles(
        gettext_noop("%(name)s, statement %(number)d: settings put back"),
        name=load.name,
        number=parameters[trial.STATEMENT],
    )
    return repetitions.store_campaign(
        measured,
        title=titles.english,
        title_ja=titles.japanese,
        slug="trial",
        by=by,
        factors={
            **measured.factors,
            "version": [side.cell.version for side in sides],
            trial.LEVEL: [side.level for side in sides],
        },
        parameters=parameters,
        repeats=1,
        slice_seconds=1,
    )


def _queue(campaign: Campaign, sides: Sequence[_Side]) -> None:
    cells = [
        _cell(campaign, ordinal, side) for ordinal, side in enumerate(sides, start=1)
    ]
    Cell.objects.bulk_create(cells)
    plans.store(
        [
            NewRun(_model(campaign, cell, side), 1, position)
            for position, (cell, side) in enumerate(
                zip(cells, sides, strict=True), start=1
            )
        ]
    )


def _cell(campaign: Campaign, ordinal: int, side: _Side) -> Cell:
    levels = {**side.cell.levels, trial.LEVEL: side.level}
    return repetitions.make_cell(
        side.cell, campaign=campaign, ordinal=ordinal, levels=levels
    )


def _model(campaign: Campaign, cell: Cell, side: _Side) -> Run:
    plan = replace(
        side.plan,
        campaign=campaign.slug,
        levels=dict(cell.levels),
        parameters=dict(campaign.parameters),
        slice_s=1,
    )
    return repetitions.make_run(side.run, cell=cell, plan=plan)
