"""Ablations and their answers, computed from their runs; nothing of it is stored."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from runs.access.selectors.projects import Reader, visible
from runs.analysis.why import proof
from runs.analysis.why.proof import AGAIN, ALL, A, Arms, B, Proof
from runs.execution.nodes import DATABASE_NODE
from runs.models import Ablation, Campaign, Measurement, Run
from runs.scenarios import registry
from runs.tools import known_metrics

ARM = "arm"


@dataclass(frozen=True)
class Answers:
    """What an ablation proves of the time of a transaction, and of the server's processor time.

    These are two questions, and a cause may explain one of them. None: too few rounds so far.
    Times of runs that are invalid, since others had the machine, are left out, as everywhere; their
    processor time counts: a process is charged for its own only. `has_ended`: no run follows.
    `lacking` are the arms that have too few values of time and of processor time for an answer, and
    how many runs of each have ended with one; `values` is how many there are of both. `unchanged`
    are the suspects that the records of their arms show as B has them: these arms tell nothing.
    """

    time: Proof | None
    cpu: Proof | None
    has_ended: bool = False
    lacking: Mapping[str, int] = field(default_factory=dict)
    values: tuple[int, int] = (0, 0)
    unchanged: tuple[str, ...] = ()


def list_ablations(base: int, head: int, *, to: Reader) -> list[Ablation]:
    """Those of two cells that somebody may see, the newest first."""
    ablations = Ablation.objects.filter(base=base, head=head).select_related(
        "campaign__scenario"
    )
    return list(visible(ablations, to=to))


def about(campaign: int) -> list[Ablation]:
    """The newest ablation of each pair of a campaign's cells, or the one that it is. One query."""
    of_cells = Q(base__campaign=campaign, head__campaign=campaign)
    ablations = Ablation.objects.filter(of_cells | Q(campaign=campaign)).exclude(
        suspects=[]
    )
    newest: dict[tuple[int, int], Ablation] = {}
    for ablation in ablations.select_related(
        "campaign__scenario", "base", "head"
    ).order_by("pk"):
        newest[ablation.base_id, ablation.head_id] = ablation
    return list(newest.values())


def find_ablation(campaign: int) -> Ablation | None:
    """The ablation that a campaign is, if it is one. One query."""
    ablations = Ablation.objects.filter(campaign=campaign)
    return ablations.select_related("campaign__scenario").first()


def answers(ablation: Ablation) -> Answers:
    """Two queries. Of a campaign that has ended all values count."""
    return _answers(ablation, has_ended=ablation.campaign.state not in Campaign.LIVE)


def _answers(ablation: Ablation, *, has_ended: bool) -> Answers:
    unchanged = tuple(
        str(suspect["name"])
        for suspect in ablation.suspects
        if suspect.get("unchanged")
    )
    names = [
        str(suspect["name"])
        for suspect in ablation.suspects
        if suspect["name"] not in unchanged
    ]
    time, cpu = (_informative(arms, unchanged) for arms in _arms(ablation))
    lacking = proof.lacking(cpu if any(cpu.values()) else time, [A, B, AGAIN, *names])
    return Answers(
        _proof(time, names, has_ended=has_ended),
        _proof(cpu, names, has_ended=has_ended),
        has_ended,
        lacking if has_ended else {},
        (sum(map(len, time.values())), sum(map(len, cpu.values()))),
        unchanged,
    )


def _informative(arms: Arms, unchanged: Sequence[str]) -> Arms:
    """Without the arms in which something was not put back: theirs, and that of all together."""
    if not unchanged:
        return arms
    return {
        name: values
        for name, values in arms.items()
        if name != ALL and name not in unchanged
    }


def _proof(arms: Arms, names: Sequence[str], *, has_ended: bool) -> Proof | None:
    if not names:
        return None
    if has_ended:
        return proof.prove_ended(arms, names)
    return proof.prove(arms, names)


def is_open(ablation: Ablation) -> bool:
    """Whether more rounds could still say something."""
    current = _answers(ablation, has_ended=False)
    if len(current.unchanged) == len(ablation.suspects):
        return False
    known_proofs = [proof for proof in (current.time, current.cpu) if proof is not None]
    return not known_proofs or not all(proof.is_final for proof in known_proofs)


def _arms(ablation: Ablation) -> tuple[Arms, Arms]:
    """The mean time of a transaction, and the server's processor time for it, by arm and round."""
    metric = registry.get(ablation.campaign.scenario.slug).primary_metric
    rows = Measurement.objects.filter(
        Q(run__state=Run.State.FINISHED) | Q(run__in=Run.objects.filter(Run.LEFT_OUT)),
        run__campaign=ablation.campaign_id,
        metric__name__in=(metric, known_metrics.TRANSACTIONS.name),
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
        number = measured.get(known_metrics.TRANSACTIONS.name, 1.0)
        if used.get("servers", 0) > 0 and number > 0:
            cpu[arm][run.repeat] = used["servers"] / number
    return time, cpu
