"""Runs: one with everything for its page, lists, stored plans and profiles."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import F, IntegerField, Prefetch, Q, QuerySet
from django.db.models.expressions import Func
from django.db.models.functions import Left
from django.utils.translation import gettext

from runs.access.selectors import projects
from runs.access.selectors.projects import NOBODY, Reader, visible
from runs.execution.evidence.profiling import FOLDED
from runs.models import Artifact, Command, HardwareProfile, Measurement, Run, Series
from runs.models.runs import PLAN_PREFIX
from runs.wording import say_stored

# What a list shows of a message; that of a failed run has pages of output.
MESSAGE_BEGINNING = 300
# Of a series, in one answer of the API: some 200 kB.
MOST_VALUES = 20_000
_LENGTH = Func("values", 1, function="array_length", output_field=IntegerField())

_LISTED = (
    "position",
    "repeat",
    "origin",
    "state",
    "validity",
    "code",
    "wording",
    "remedy",
    "queued_at",
    "started_at",
    "finished_at",
    "cell__levels",
    "cell__version",
    "campaign__slug",
    "campaign__title",
    "campaign__title_ja",
    "server__slug",
)


def listed() -> QuerySet[Run]:
    """Runs with what a list shows, the newest first, and the `beginning` of their messages."""
    runs = Run.objects.select_related("campaign", "cell", "server").order_by("-pk")
    return runs.only(*_LISTED).annotate(
        beginning=Left("message", MESSAGE_BEGINNING + 1)
    )


def beginning(run: Run) -> str:
    """What a list shows of the message of a run of `listed`, in the reader's language."""
    text = say_stored(run.wording, run.beginning, gettext)  # type: ignore[attr-defined]  # annotated
    return (
        text if len(text) <= MESSAGE_BEGINNING else f"{text[: MESSAGE_BEGINNING - 1]}…"
    )


def filter_by_hardware(rows: QuerySet[Run], *, fingerprint: str) -> QuerySet[Run]:
    """Those on that profile, by its key, which finds them directly however few they are."""
    profiles = HardwareProfile.objects.filter(fingerprint=fingerprint).order_by()
    return rows.filter(hardware__in=list(profiles.values_list("pk", flat=True)))


def detail(run_id: int, *, to: Reader = NOBODY) -> Run:
    """A run with all that its page shows, in a fixed number of queries. Raises Run.DoesNotExist.

    Includes outputs and complete series: expensive for a run of days.
    """
    return visible(_whole(Series.objects.order_by("name")), to=to).get(pk=run_id)


def select_findings() -> QuerySet[Run]:
    """Runs as in `detail`, but with each series' number of values (`length`) instead of them."""
    return _whole(
        Series.objects.order_by("name").defer("values").annotate(length=_LENGTH)
    )


def series_part(run_id: int, name: str, *, skip: int, to: Reader) -> Series | None:
    """A series with its `length` and a `part` of its values; None where the reader sees none."""
    if not visible(Run.objects.filter(pk=run_id), to=to).exists():
        return None
    values_slice = F(f"values__{skip}_{skip + MOST_VALUES}")
    series_found = Series.objects.filter(run=run_id, name=name).defer("values")
    return series_found.annotate(length=_LENGTH, part=values_slice).first()


# What a line of the first page says of a run.
_LINE = (
    "repeat",
    "state",
    "origin",
    "validity",
    "started_at",
    "finished_at",
    "campaign__title",
    "campaign__title_ja",
    "cell__levels",
    "cell__revision__sha",
    "server__name",
)


def _lines() -> QuerySet[Run]:
    return Run.objects.select_related("campaign", "cell__revision", "server").only(
        *_LINE
    )


def latest(limit: int, *, to: Reader = NOBODY) -> QuerySet[Run]:
    """The runs that ended last and that the reader may see."""
    ended = _lines().filter(state__in=Run.ENDED, finished_at__isnull=False)
    return projects.newest(ended.order_by("-finished_at", "-pk"), to=to, number=limit)


_CONFIGURATION = [
    f"campaign__configurations__configuration__{field}" for field in ("slug", "name")
]


def now_and_latest(limit: int, *, to: Reader = NOBODY) -> tuple[list[Run], list[Run]]:
    """The runs that workers execute now, the longest first, and those that ended last. Two queries.

    A third one where a level is a configuration, whose name it has instead.
    """
    active = _lines().filter(state__in=Run.ACTIVE).order_by("started_at", "pk")
    now, latest_runs = list(visible(active, to=to)), list(latest(limit, to=to))
    configured = [
        run for run in (*now, *latest_runs) if "configuration" in run.cell.levels
    ]
    used = Run.objects.filter(pk__in=[run.pk for run in configured]).order_by()
    names = dict(used.values_list(*_CONFIGURATION))
    for run in configured:
        if name := names.get(run.cell.levels["configuration"]):
            run.cell.levels["configuration"] = gettext(name)
    return now, latest_runs


def _whole(series: QuerySet[Series]) -> QuerySet[Run]:
    measurements = Measurement.objects.select_related("metric").order_by("metric__name")
    commands = Command.objects.order_by("attempt", "ordinal")
    return (
        Run.objects.select_related(
            "campaign__scenario",
            "campaign__configuration",
            "cell__installation",
            "cell__revision",
            "server",
            "hardware",
            "environment",
            "settings",
            "cluster",
            "imported",
        )
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
    machine_entries = [*plan.get("machines", ()), *plan.get("generators", ())]
    return sorted(
        {
            machine_entry["server_id"]
            for machine_entry in machine_entries
            if "server_id" in machine_entry
        }
        - {run.server_id}
    )


def taking_part(server_id: int) -> Q:
    """The condition that a server has further clusters of a run, or generates its load."""
    server_entries = [{"server_id": server_id}]
    return Q(plan__generators__contains=server_entries) | Q(
        plan__machines__contains=server_entries
    )


def match_server(server_id: int) -> Q:
    """The condition that a server is one of a run's machines."""
    return Q(server_id=server_id) | taking_part(server_id)


def machines_of(run: Run) -> list[int]:
    """All servers of a run, its own first. Reads its plan."""
    return [*([run.server_id] if run.server_id else []), *others_of(run)]


JOB_URL = "job_url"


def job_address(labels: Mapping[str, Any]) -> str:
    """The address of the job; only one of the web, otherwise nothing."""
    text = str(labels.get(JOB_URL, ""))
    is_one = text.startswith(("https://", "http://")) and len(text.split()) == 1
    return text if is_one else ""


MOST_OTHERS = 100


def others(artifact: Artifact, *, to: Reader) -> list[Artifact]:
    """Of a plan or profile those of its campaign to compare, by cell and repeat. One query."""
    is_alike = (
        Q(name=FOLDED) if artifact.name == FOLDED else Q(name__startswith=PLAN_PREFIX)
    )
    same = Artifact.objects.filter(is_alike, run__campaign_id=artifact.run.campaign_id)
    visible_artifacts = projects.visible(same.exclude(pk=artifact.pk), to=to)
    ordered = visible_artifacts.select_related("run__cell").order_by(
        "run__cell__ordinal", "run__repeat", "name"
    )
    return list(ordered[:MOST_OTHERS])


def profile_of(run_id: int, *, to: Reader) -> Artifact | None:
    """The folded stacks of a run; None if it has none, or the reader may not see it."""
    visible_artifacts = projects.visible(
        Artifact.objects.filter(run_id=run_id, name=FOLDED), to=to
    )
    return visible_artifacts.select_related("run__cell", "run__campaign").first()


def closed_loop(metrics: Iterable[str], *settings: Mapping[str, Any] | None) -> str:
    """What to know of latencies that no rate was set for; empty for others.

    `settings` say what the load was: levels, parameters, workload.
    """
    if any((setting or {}).get("rate") for setting in settings):
        return ""
    if not any(name.startswith("latency") for name in metrics):
        return ""
    return gettext(
        "Latencies of a closed loop: a client sends its next transaction when the last has ended, "
        "so stalls count too little (coordinated omission)."
    )
