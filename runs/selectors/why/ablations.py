"""Ablations and their answers, computed from their runs; nothing of it is stored."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Q

from runs.analysis.why import proof
from runs.analysis.why.proof import Arms, Proof
from runs.execution.nodes import DATABASE_NODE
from runs.models import Ablation, Measurement, Run
from runs.scenarios import registry
from runs.scenarios.metrics import TRANSACTIONS
from runs.selectors.access.projects import Reader, visible

ARM = "arm"


@dataclass(frozen=True)
class Answers:
    """What an ablation proves of the time of a transaction, and of the server's processor time.

    These are two questions, and a cause may explain one of them. None: too few rounds so far.
    Times of runs that are invalid, since others had the machine, are left out, as everywhere; their
    processor time counts: a process is charged for its own only.
    """

    time: Proof | None
    cpu: Proof | None


def of_pair(base: int, head: int, *, to: Reader) -> list[Ablation]:
    """Those of two cells that somebody may see, the newest first."""
    found = Ablation.objects.filter(base=base, head=head).select_related("campaign__scenario")
    return list(visible(found, to=to))


def explained_pairs(campaign: int) -> list[tuple[int, int]]:
    """The pairs of cells of a campaign whose difference an ablation was to explain. One query."""
    found = Ablation.objects.filter(base__campaign=campaign, head__campaign=campaign)
    tried = found.exclude(suspects=[]).order_by("base__ordinal", "head__ordinal")
    return list(dict.fromkeys(tried.values_list("base_id", "head_id")))


def of_campaign(campaign: int) -> Ablation | None:
    """The ablation that a campaign is, if it is one. One query."""
    found = Ablation.objects.filter(campaign=campaign)
    return found.select_related("campaign__scenario").first()


def answers(ablation: Ablation) -> Answers:
    """Two queries."""
    names = [each["name"] for each in ablation.suspects]
    time, cpu = _arms(ablation)
    return Answers(proof.prove(time, names), proof.prove(cpu, names))


def is_open(ablation: Ablation) -> bool:
    """Whether more rounds could still say something."""
    found = answers(ablation)
    known = [each for each in (found.time, found.cpu) if each is not None]
    return not known or not all(each.is_final for each in known)


def _arms(ablation: Ablation) -> tuple[Arms, Arms]:
    """The mean time of a transaction, and the server's processor time for it, by arm and round."""
    metric = registry.get(ablation.campaign.scenario.slug).primary_metric
    rows = Measurement.objects.filter(
        Q(run__state=Run.State.FINISHED) | Q(run__in=Run.objects.filter(Run.LEFT_OUT)),
        run__campaign=ablation.campaign_id,
        metric__name__in=(metric, TRANSACTIONS.name),
    ).select_related("metric", "run__cell")
    values: dict[Run, dict[str, float]] = defaultdict(dict)
    higher = {}
    for row in rows:
        values[row.run][row.metric.name] = row.value
        higher[row.metric.name] = row.metric.direction == "higher"
    time: dict[str, dict[int, float]] = defaultdict(dict)
    cpu: dict[str, dict[int, float]] = defaultdict(dict)
    for run, measured in values.items():
        arm, value = str(run.cell.levels.get(ARM, "")), measured.get(metric, 0.0)
        if value <= 0:
            continue
        if run.state == Run.State.FINISHED:
            time[arm][run.repeat] = 1 / value if higher[metric] else value
        used = run.certificate.get("usage", {}).get(DATABASE_NODE, {})
        number = measured.get(TRANSACTIONS.name, 1.0)
        if used.get("servers", 0) > 0 and number > 0:
            cpu[arm][run.repeat] = used["servers"] / number
    return time, cpu
