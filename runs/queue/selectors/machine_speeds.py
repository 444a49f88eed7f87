"""How fast the machines of runs were: of a run against those before, and of a server over time."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from runs.access.selectors import projects
from runs.analysis import machine_speed
from runs.analysis.machine_speed import NEWEST, PartSpeed
from runs.charts.machine_speed import Moment
from runs.execution.nodes import DATABASE_NODE
from runs.models import Run, Server

# More of them, since not all were measured on as many processors, or on the same machines.
MOST_READ = 4 * NEWEST
MOST_SHOWN = 100


def judged(run: Run) -> dict[str, list[PartSpeed]]:
    """By machine, the parts whose usual speed is known. One query; none without a speed.

    Usual is what the last runs on the server found which ended before. Another machine of a run is
    known by its place in it, and by its server.
    """
    if not run.speed or run.server_id is None:
        return {}
    ended_before = _runs_with_speed(run.server_id).filter(
        finished_at__lt=run.finished_at or timezone.now()
    )
    others = {"generators": F("plan__generators"), "machines": F("plan__machines")}
    is_alone = run.speed.keys() <= {DATABASE_NODE}
    fields = ended_before.values("speed", **({} if is_alone else others))
    rows: list[Any] = list(fields[:MOST_READ])
    servers = _servers(run.plan or {})
    speeds = {}
    for machine, speed in run.speed.items():
        before = [
            row["speed"][machine]
            for row in rows
            if machine in row["speed"]
            and _servers(row).get(machine) == servers.get(machine)
        ]
        speeds[machine] = machine_speed.judged(speed, before)
    return speeds


def _runs_with_speed(server_id: int) -> QuerySet[Run]:
    """Those that ended last first."""
    runs = Run.objects.filter(server=server_id, speed__isnull=False)
    return runs.exclude(finished_at=None).order_by("-finished_at")


def _servers(plan: Mapping[str, Any]) -> dict[str, int]:
    """The servers of the machines besides the database's, by their names in a run."""
    further_machines = (*(plan.get("machines") or ()), *(plan.get("generators") or ()))
    return {machine["name"]: machine["server_id"] for machine in further_machines}


def history(server: Server, *, to: projects.Reader) -> list[Moment]:
    """Of the last MOST_SHOWN runs with a speed those that the reader may see, the oldest first.

    Only of the program that did the work last, and on as many processors. Two queries.
    """
    fields = _runs_with_speed(server.pk).values("pk", "finished_at", "speed")
    rows: list[Any] = list(fields[:MOST_SHOWN])
    if not rows:
        return []
    speeds = {row["pk"]: row["speed"].get(DATABASE_NODE, {}) for row in rows}
    newest = speeds[rows[0]["pk"]]
    rates = {
        pk: machine_speed.rates_like(speed, newest) for pk, speed in speeds.items()
    }
    usual = machine_speed.medians(rates.values())
    runs = projects.visible(Run.objects.filter(pk__in=list(speeds)), to=to)
    visible = set(runs.order_by().values_list("pk", flat=True))
    moments = []
    for row in reversed(rows):
        pk = row["pk"]
        shares = {part: rate / usual[part] for part, rate in rates[pk].items()}
        if shares and pk in visible:
            moments.append(Moment(pk, row["finished_at"], shares))
    return moments
