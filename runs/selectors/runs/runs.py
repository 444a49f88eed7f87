"""Runs: one with everything for its page, and lists of active and ended ones."""

from django.db.models import IntegerField, Prefetch, Q, QuerySet
from django.db.models.expressions import Func

from runs.models import Command, HardwareProfile, Measurement, Run, Series
from runs.selectors.access.projects import NOBODY, Reader, visible

RELATED = (
    "campaign__scenario",
    "cell__installation",
    "cell__revision",
    "server",
    "hardware",
    "environment",
)


def listed() -> QuerySet[Run]:
    """Runs for a list, the newest first. The frozen plan is not loaded."""
    return Run.objects.select_related("campaign", "cell", "server").defer("plan").order_by("-pk")


def on_hardware(rows: QuerySet[Run], *, fingerprint: str) -> QuerySet[Run]:
    """Those on the profile with that fingerprint.

    Reads its key first: with the key PostgreSQL finds the runs directly, even if there are few.
    """
    profiles = HardwareProfile.objects.filter(fingerprint=fingerprint).order_by()
    return rows.filter(hardware__in=list(profiles.values_list("pk", flat=True)))


def detail(run_id: int, *, to: Reader = NOBODY) -> Run:
    """A run with all that its page shows, in a fixed number of queries. Raises Run.DoesNotExist.

    Includes outputs and complete series: expensive for a run of days.
    """
    return visible(_whole(Series.objects.order_by("name")), to=to).get(pk=run_id)


def with_findings() -> QuerySet[Run]:
    """Runs as in `detail`, but with each series' number of values (`length`) instead of them."""
    length = Func("values", 1, function="array_length", output_field=IntegerField())
    return _whole(Series.objects.order_by("name").defer("values").annotate(length=length))


def running_now() -> QuerySet[Run]:
    """The runs that a worker executes now, the longest first; at most one per server."""
    return (
        Run.objects.filter(state__in=Run.ACTIVE)
        .select_related("campaign__scenario", "cell", "server")
        .defer("plan")
        .order_by("started_at", "pk")
    )


def latest(limit: int, *, to: Reader = NOBODY) -> QuerySet[Run]:
    """The runs that ended last and that the reader may see."""
    ended = (
        Run.objects.filter(state__in=Run.ENDED, finished_at__isnull=False)
        .select_related("campaign__scenario", "cell__revision", "server")
        .defer("plan")
        .order_by("-finished_at", "-pk")
    )
    return visible(ended, to=to)[:limit]


def now_and_latest(limit: int, *, to: Reader = NOBODY) -> tuple[list[Run], list[Run]]:
    """What `running_now` has that the reader may see, and `latest`. One query."""
    running = visible(running_now(), to=to).order_by()
    found = list(_lines(latest(limit, to=to)).union(_lines(running), all=True))
    now = [each for each in found if each.is_active]
    return sorted(now, key=_since), [each for each in found if not each.is_active]


def _lines(of: QuerySet[Run]) -> QuerySet[Run]:
    """With what a line of a list says of a run, and nothing else."""
    related = of.select_related(None).select_related("campaign", "cell__revision", "server")
    return related.only(
        *("state", "validity", "repeat", "started_at", "finished_at"),
        *("campaign__title", "cell__levels", "cell__revision__sha", "server__name"),
    )


def _since(run: Run) -> tuple[bool, float, int]:
    """The longest first; one that has not begun comes last, as PostgreSQL has it."""
    began = run.started_at
    return began is None, began.timestamp() if began else 0.0, run.pk


def _whole(series: QuerySet[Series]) -> QuerySet[Run]:
    measurements = Measurement.objects.select_related("metric").order_by("metric__name")
    commands = Command.objects.order_by("attempt", "ordinal")
    return (
        Run.objects.select_related(*RELATED, "campaign__configuration", "settings", "cluster")
        .prefetch_related(
            "events",
            "artifacts",
            "cell__revision__further_refs",
            Prefetch("measurements", measurements),
            Prefetch("commands", commands),
            Prefetch("series", series),
        )
        .order_by("-pk")
    )


def others_of(run: Run) -> list[int]:
    """The other servers of a run: of further clusters, and generators. Reads its plan.

    A plan that names none where it should is that of another version. The run is claimed all the
    same, and ends with that reason: an error here would block the queue of its server.
    """
    plan = run.plan or {}
    others = [*plan.get("machines", ()), *plan.get("generators", ())]
    return sorted({each["server_id"] for each in others if "server_id" in each} - {run.server_id})


def taking_part(server_id: int) -> Q:
    """The condition that a server has further clusters of a run, or generates its load."""
    this = [{"server_id": server_id}]
    return Q(plan__generators__contains=this) | Q(plan__machines__contains=this)


def at_work_on(server_id: int) -> Q:
    """The condition that a server is one of a run's machines."""
    return Q(server_id=server_id) | taking_part(server_id)


def machines_of(run: Run) -> list[int]:
    """All servers of a run, its own first. Reads its plan."""
    return [*([run.server_id] if run.server_id else []), *others_of(run)]
