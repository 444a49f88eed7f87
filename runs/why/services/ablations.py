"""Ablations: queue the campaign that puts suspects back, and add its second six rounds.

An arm repeats a run of A or of B by its own plan, with other settings: the same machine, binaries,
tools, load and treatment. Each arm has a cluster of its own, so that B again is a second one, made
in the same way: what differs between two such clusters is no effect.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import Reader
from runs.access.services import audit
from runs.analysis.why import repairs, suspects
from runs.analysis.why.proof import AGAIN, ALL, GIVEN, LOOKS, A, B
from runs.analysis.why.suspects import Suspect
from runs.campaigns.services import random_order, repetitions, slicing
from runs.campaigns.services.campaign_limits import MOST_IN_TURN, MOST_SECONDS_IN_TURN
from runs.execution.evidence.evidence import WAITS_SINCE
from runs.execution.machine.treatment import Treatment
from runs.execution.plan import RunPlan, UnreadablePlan
from runs.fingerprints import fingerprint
from runs.models import Ablation, Campaign, Cell, Run
from runs.models.postgres import major_version
from runs.queue.services import plans
from runs.queue.services.plans import NewRun
from runs.shared.errors import ServiceError
from runs.why.selectors.ablations import ARM
from runs.why.selectors.explanation import Explanation


@dataclass(frozen=True)
class _Arm:
    """An arm: the cell that it repeats, the settings that are put back in it, what it records.

    `plan_parts` are the parts of its plan that it has of the other side, `statements` what follows
    its own set-up. `cluster` names whose cluster it has: its own if empty.
    """

    name: str
    of: Cell
    settings: Mapping[str, str]
    plan_parts: Sequence[str] = ()
    statements: Sequence[str] = ()
    records: Mapping[str, bool] = field(default_factory=dict)
    cluster: str = ""


def check(explanation: Explanation, *, reader: Reader, records: bool = False) -> None:
    """Raise what prevents an ablation, or runs that record what explains the two.

    PermissionDenied, or ServiceError with a code.
    """
    permissions.require(reader, Right.QUEUE, explanation.b.campaign.project)
    if explanation.obstacle not in {"", "no_evidence"}:
        raise ServiceError("cannot_be_tried", _("No ablation can explain these two."))
    if not records and not explanation.candidates:
        raise ServiceError(
            "no_suspects", _("Nothing that differs between the two can be put back.")
        )
    ablation = explanation.recording if records else explanation.ablation
    if ablation is not None and ablation.campaign.state in Campaign.LIVE:
        raise ServiceError(
            "already_measured", _("The suspects are being tried already.")
        )
    project = explanation.a.campaign.project
    if (
        project is not None
        and not project.is_public
        and project != explanation.b.campaign.project
    ):
        raise ServiceError(
            "private_base", _("A belongs to a private project of others.")
        )


def chosen(explanation: Explanation, keys: Sequence[str]) -> list[Suspect]:
    """The differences of these keys, else what the explanation proposes. Raises ServiceError."""
    by_key = {suspect.key: suspect for suspect in explanation.candidates}
    unknown = [key for key in keys if key not in by_key]
    if unknown:
        raise ServiceError(
            "no_suspects",
            _("This cannot be put back: %(names)s.")
            % {"names": ", ".join(unknown)[:200]},
            remedy=_("Choose among the differences that the page lists with a box."),
        )
    return [by_key[key] for key in dict.fromkeys(keys or explanation.proposed)]


@transaction.atomic
def start(
    *, found: Explanation, by: User | None = None, keys: Sequence[str] = ()
) -> Ablation:
    """Queue it, with the differences of these keys, else those that are proposed.

    The caller has checked. Raises `no_suspects`, `plan_of_other_version`, `nothing_to_repeat`.
    """
    tried = suspects.plan_trials(chosen(found, keys))
    plan_of = {cell.pk: _plan(cell) for cell in (found.a, found.b)}
    arms = [_Arm(A, found.a, {}), _Arm(B, found.b, {}), _Arm(AGAIN, found.b, {})]
    arms += [
        _Arm(
            suspect.key,
            found.b,
            dict(suspect.put_back),
            suspect.plan_parts,
            suspect.statements,
        )
        for suspect in tried
    ]
    if len(tried) > 1:
        together = {
            name: value for suspect in tried for name, value in suspect.put_back.items()
        }
        parts = dict.fromkeys(part for suspect in tried for part in suspect.plan_parts)
        statements = [
            statement for suspect in tried for statement in suspect.statements
        ]
        arms.append(_Arm(ALL, found.b, together, tuple(parts), statements))
    arms += [
        _Arm(
            f"{GIVEN}{suspect.key}",
            found.a,
            suspect.settings_of_b,
            suspect.plan_parts,
            suspect.statements_forth,
        )
        for suspect in suspects.given(tried)
    ]
    campaign = _campaign(found, arms, by, slice_seconds=_slice_seconds(arms, plan_of))
    _queue(campaign, arms, plan_of)
    ablation = Ablation.objects.create(
        campaign=campaign,
        base=found.a,
        head=found.b,
        suspects=[suspect.to_json() for suspect in tried],
    )
    details = {
        "campaign": campaign.slug,
        "suspects": [suspect.key for suspect in tried],
    }
    audit.record("ablation_queued", campaign, after=details)
    return ablation


# What runs of their own record: strace slows down what it traces, and only one may trace.
RECORDS = {
    "": ("instructions", "waits", "profile"),
    " calls": ("syscalls",),
    " stacks": ("stacks",),
}


@transaction.atomic
def record(*, found: Explanation, by: User | None = None) -> Ablation:
    """Queue runs of A and of B that record what explains them. Errors as of `start`.

    Waits are sampled and perf samples during the load, callgrind counts after it; strace counts
    system calls and shows who waits for semaphores, each in a run of its own.
    """
    plan_of = {cell.pk: _plan(cell) for cell in (found.a, found.b)}
    arms = [
        _Arm(
            f"{side}{name}",
            cell,
            {},
            records=_recordable(names, plan_of[cell.pk][1]),
            cluster=side,
        )
        for name, names in RECORDS.items()
        for side, cell in ((A, found.a), (B, found.b))
    ]
    campaign = _campaign(found, arms, by, rounds=1)
    recorded = {name: True for names in RECORDS.values() for name in names}
    campaign.treatment = {**campaign.treatment, **recorded}
    campaign.wanted_half_width = campaign.most_repeats = None
    campaign.save(update_fields=["treatment", "wanted_half_width", "most_repeats"])
    _queue(campaign, arms, plan_of)
    ablation = Ablation.objects.create(
        campaign=campaign, base=found.a, head=found.b, suspects=[]
    )
    audit.record("recording_queued", campaign, after={"campaign": campaign.slug})
    return ablation


def _recordable(names: Sequence[str], plan: RunPlan) -> dict[str, bool]:
    is_recordable = {
        name: name != "waits" or plan.version_num >= WAITS_SINCE for name in names
    }
    return {"syscalls": False, "stacks": False, **is_recordable}


def _plan(cell: Cell) -> tuple[Run, RunPlan]:
    runs = cell.runs.filter(Run.MEASURED, plan__isnull=False, server__isnull=False)
    run = runs.select_related("server").order_by("-repeat").first()
    if run is None:
        raise ServiceError(
            "nothing_to_repeat", _("No run of this campaign has finished.")
        )
    try:
        return run, RunPlan.from_json(run.plan or {})
    except UnreadablePlan as unreadable:
        raise plans.other_version(unreadable) from unreadable


def _slice_seconds(
    arms: Sequence[_Arm], plan_of: Mapping[int, tuple[Run, RunPlan]]
) -> int | None:
    """Those of both sides, if they were measured in slices: then the arms of a round take turns.

    None where so many arms may not be up at once, or have too little memory.
    """
    lengths = {plan.slice_s for _run_of_cell, plan in plan_of.values()}
    seconds = max(
        plan.parameters.get("duration", 0) for _run_of_cell, plan in plan_of.values()
    )
    is_too_long = seconds * len(arms) > MOST_SECONDS_IN_TURN
    if len(lengths) > 1 or len(arms) > MOST_IN_TURN or is_too_long:
        return None
    slice_s = lengths.pop()
    return slice_s if slice_s and _have_memory(len(arms), plan_of.values()) else None


def _have_memory(arms: int, sides: Collection[tuple[Run, RunPlan]]) -> bool:
    """Whether so many clusters like those of the sides fit into the memory of each machine."""
    most = max(
        slicing.shared_buffers(plan.settings, major_version(plan.version_num))
        for _run_of_cell, plan in sides
    )
    return not any(
        slicing.memory_problem(run.server, arms, arms * most, remedy="")
        for run, _plan_of_run in sides
        if run.server is not None
    )


def _campaign(
    explanation: Explanation,
    arms: Sequence[_Arm],
    by: User | None,
    rounds: int = LOOKS[0],
    slice_seconds: int | None = None,
) -> Campaign:
    explained = explanation.b.campaign
    factors = {name: [level] for name, level in explanation.b.levels.items()}
    versions = dict.fromkeys((explanation.a.version, explanation.b.version))
    return repetitions.store_campaign(
        explained,
        title=f"Why {explanation.labels[1]} differs from {explanation.labels[0]}",
        slug="why",
        by=by,
        factors={**factors, "version": list(versions), ARM: [arm.name for arm in arms]},
        parameters=explained.parameters,
        repeats=rounds,
        slice_seconds=slice_seconds,
        # What decides on the second six rounds is the proof (`repeats.add_round`).
        wanted_half_width=0.01,
        most_repeats=LOOKS[1],
    )


def _queue(
    campaign: Campaign, arms: Sequence[_Arm], plan_of: Mapping[int, tuple[Run, RunPlan]]
) -> None:
    cells = [
        _cell(campaign, number_of_arm, arm)
        for number_of_arm, arm in enumerate(arms, start=1)
    ]
    Cell.objects.bulk_create(cells)
    models = []
    for cell, arm in zip(cells, arms, strict=True):
        model_run, plan = plan_of[arm.of.pk]
        others = [
            other
            for cell_id, (_run_of_cell, other) in plan_of.items()
            if cell_id != arm.of.pk
        ]
        own_plan = _plan_arm(plan, others[0] if others else plan, campaign, arm)
        models.append(repetitions.make_run(model_run, cell=cell, plan=own_plan))
    plans.store(
        [
            NewRun(models[number_of_arm], repeat, position)
            for position, (repeat, number_of_arm) in enumerate(
                _turns(len(arms), campaign.repeats, campaign.seed), start=1
            )
        ]
    )


def _cell(campaign: Campaign, ordinal: int, arm: _Arm) -> Cell:
    levels = {**arm.of.levels, ARM: arm.name}
    return repetitions.make_cell(
        arm.of, campaign=campaign, ordinal=ordinal, levels=levels
    )


def _plan_arm(plan: RunPlan, other: RunPlan, campaign: Campaign, arm: _Arm) -> RunPlan:
    """The plan with what the arm has of the other side, and with a cluster that only this arm's
    runs share."""
    settings = {**plan.settings, **arm.settings}
    treated = other if "treatment" in arm.plan_parts else plan
    initialised = other if "initdb" in arm.plan_parts else plan
    workload = plan.workload
    if (
        "setup" in arm.plan_parts
        and workload is not None
        and other.workload is not None
    ):
        workload = replace(
            workload,
            init_options=other.workload.init_options,
            init_sql=other.workload.init_sql,
            has_own_tables=other.workload.has_own_tables,
        )
    elif arm.statements and workload is not None:
        # The set-up of the other side makes all of it, so that nothing has to follow.
        sql = [workload.init_sql.rstrip(), ";", repairs.script(arm.statements), ""]
        workload = replace(workload, init_sql="\n".join(sql))
    own_name, was = arm.cluster or arm.name, plan.cluster_key or plan.template_key
    options = list(initialised.initdb_options)
    set_up = [workload.init_sql, workload.init_options] if workload is not None else []
    key = fingerprint([was, plan.bindir, settings, own_name, options, set_up])[
        : plans.KEY_DIGITS
    ]
    return replace(
        plan,
        campaign=campaign.slug,
        settings=settings,
        initdb_options=initialised.initdb_options,
        workload=workload,
        slice_s=campaign.slice_seconds or 0,
        treatment=Treatment.of({**vars(treated.treatment), **arm.records}),
        cluster_key=key if plan.cluster_key else "",
        template_key="" if plan.cluster_key else key,
    )


def _turns(arms: int, rounds: int, seed: int) -> list[tuple[int, int]]:
    """(round, arm) in the order of execution: whole rounds, each beginning with another arm.

    Each second round goes backwards, so that no arm always follows the same other one.
    """
    order = random_order.shuffled(range(arms), seed)
    turns = []
    for round_index in range(rounds):
        turned = order[round_index % arms :] + order[: round_index % arms]
        turns += [
            (round_index + 1, arm_number)
            for arm_number in (turned if round_index % 2 == 0 else turned[::-1])
        ]
    return turns
