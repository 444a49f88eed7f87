"""The noise of campaigns as known from before: how others scatter on their servers."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from runs.analysis.inference import Noise
from runs.analysis.inference.variances import noise_of
from runs.models import Campaign, CellSummary, Metric, Revision, Run
from runs.models.campaigns import Origin

# The newest campaigns or revisions, and this many of their cells.
NOISE_CAMPAIGNS, NOISE_REVISIONS, NOISE_CELLS = 20, 30, 300
# Cells of campaigns on other servers are read as well, and passed over.
MOST_READ = 2300


@dataclass(frozen=True)
class Scope:
    """The cells of one campaign that its model uses: those of the same revisions."""

    campaign: Campaign
    revisions: frozenset[int | None]


def of_scopes(
    scopes: Sequence[Scope], metrics: Mapping[int, Metric]
) -> dict[tuple[int, int], Noise]:
    """The noise of each campaign as known from before, by (campaign, metric).

    For executed campaigns: how others scatter on the same servers and hardware, by their cells
    without a run in doubt. A campaign that has doubtful runs itself gets none: what the machine is
    like while nobody disturbs it says nothing about it. For uploads: how the campaign's other
    newest revisions scatter. Three queries at most.
    """
    found: dict[tuple[int, int], Noise] = {}
    executed = [each for each in scopes if each.campaign.origin == Origin.EXECUTED]
    if executed:
        found |= _noise_of_servers(executed, list(metrics))
    uploaded = [each for each in scopes if each.campaign.origin == Origin.UPLOADED]
    if uploaded:
        found |= _noise_of_revisions(uploaded, list(metrics))
    return found


def _noise_of_servers(scopes: Sequence[Scope], metrics: list[int]) -> dict[tuple[int, int], Noise]:
    asked = [scope.campaign.pk for scope in scopes]
    machines: dict[int, set[Hashable]] = defaultdict(set)
    disturbed: set[int] = set()
    scatter: dict[tuple[int, Hashable], list[tuple[int, int, float]]] = defaultdict(list)
    for campaign, metric, server, hardware, in_doubt, is_newest, n, variance in _on_servers(
        asked, metrics
    ):
        machine = (server, hardware)
        machines[campaign].add(machine)
        if in_doubt:
            disturbed.add(campaign)
        elif is_newest:
            # What else is judged with a campaign does not change what is said of it.
            scatter[metric, machine].append((campaign, n or 1, variance or 0.0))
    found = {}
    for campaign in set(asked) - disturbed:
        for metric in metrics:
            others = [
                (n, variance)
                for machine in machines[campaign]
                for of, n, variance in scatter[metric, machine]
                if of != campaign
            ][:NOISE_CELLS]
            known = noise_of(others)
            if known is not None:
                found[campaign, metric] = known
    return found


def _on_servers(asked: Sequence[int], metrics: list[int]) -> QuerySet[CellSummary, Any]:
    """The scatter of the newest campaigns' cells and of those asked for, with where they ran."""
    newest = (
        Campaign.objects.filter(origin=Origin.EXECUTED, treatment={})
        .order_by("-pk")
        .values("pk")[:NOISE_CAMPAIGNS]
    )
    run = Run.objects.filter(cell=OuterRef("cell")).order_by()
    doubted = run.filter(state=Run.State.FINISHED, validity__in=Run.DOUBTED)
    return (
        CellSummary.objects.filter(
            Q(cell__campaign__in=newest) | Q(cell__campaign__in=asked),
            metric__in=metrics,
            log_variance__isnull=False,
        )
        .annotate(
            server=Subquery(run.values("server")[:1]),
            hardware=Subquery(run.values("hardware")[:1]),
            doubted=Exists(doubted),
            is_newest=ExpressionWrapper(Q(cell__campaign__in=newest), output_field=BooleanField()),
        )
        .order_by("-cell_id")
        .values_list(
            "cell__campaign_id",
            "metric_id",
            "server",
            "hardware",
            "doubted",
            "is_newest",
            "n",
            "log_variance",
        )[:MOST_READ]
    )


def _noise_of_revisions(
    scopes: Sequence[Scope], metrics: list[int]
) -> dict[tuple[int, int], Noise]:
    asked = [revision for scope in scopes for revision in scope.revisions if revision is not None]
    if not asked:
        return {}
    rows = (
        CellSummary.objects.filter(
            cell__campaign__in=[scope.campaign.pk for scope in scopes],
            cell__revision__in=_newest_revisions(scopes, asked),
            metric__in=metrics,
            log_variance__isnull=False,
        )
        .order_by("-cell_id")
        .values_list("cell__campaign_id", "metric_id", "n", "log_variance")[: 4 * NOISE_CELLS]
    )
    scatter: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    for campaign, metric, n, variance in rows:
        scatter[campaign, metric].append((n or 1, variance or 0.0))
    known = {key: noise_of(each[:NOISE_CELLS]) for key, each in scatter.items()}
    return {key: each for key, each in known.items() if each is not None}


def _newest_revisions(scopes: Sequence[Scope], but: Sequence[int]) -> QuerySet[Revision, Any]:
    projects = {scope.campaign.project_id for scope in scopes}
    newest = Revision.objects.filter(project__in=projects).exclude(pk__in=but)
    return newest.order_by("-pk").values("pk")[:NOISE_REVISIONS]
