"""What the page of workers shows: processes with their health, and the hosts that joined."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from redis.exceptions import RedisError

from benchlab.release import own_release, release_in_words
from runs.models import Lease, WorkerHost
from runs.operations.selectors.health_checks import SILENT_SECONDS
from runs.shared import signs, worker_health


@dataclass(frozen=True)
class Worker:
    """A process that executes runs, or control. `age` in seconds since its last sign of life."""

    process: str
    host: str
    is_control: bool
    sites: Sequence[str]
    release: str
    age: float
    held: int
    reason: str = ""
    is_other_release: bool = False
    put_back: Mapping[str, int] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """`silent`, `paused` (it takes no runs; `reason` says why) or `live`."""
        if self.age > SILENT_SECONDS:
            return "silent"
        return "paused" if self.reason else "live"

    @property
    def state_in_words(self) -> str | Promise:
        """For people."""
        return STATES[self.state]

    @property
    def tone(self) -> str:
        """The colour of its state."""
        return TONES[self.state]


STATES = {"live": _("live"), "paused": _("takes no runs"), "silent": _("silent")}
TONES = {"live": "ready", "paused": "warning", "silent": "failed"}


@dataclass(frozen=True)
class WorkersPage:
    """All workers, worst first, and all hosts that joined or are expected, the newest first."""

    workers: Sequence[Worker]
    hosts: Sequence[WorkerHost]
    is_silent: bool = False


def page() -> WorkersPage:
    """Three queries, and Redis; without it nothing is known of processes."""
    hosts = list(WorkerHost.objects.order_by("-pk")[:100])
    try:
        return WorkersPage(_workers(), hosts)
    except (RedisError, OSError, ValueError):
        return WorkersPage([], hosts, is_silent=True)


def _workers() -> list[Worker]:
    shown_signs = signs.signs()
    releases_by_process = signs.releases_of_processes()
    reasons = worker_health.reasons()
    put_back: dict[str, Counter[str]] = {}
    for process, server, number in signs.put_back():
        put_back.setdefault(process, Counter())[server] += number
    busy = Lease.objects.filter(run__isnull=False).values("holder")
    held = {
        row["holder"]: row["runs"]
        for row in busy.annotate(runs=Count("run", distinct=True))
    }
    workers = []
    for sign in shown_signs:
        release = releases_by_process.get(sign.process, "")
        host = sign.process.rpartition(":")[0]
        is_control = sign.kind != "worker"
        workers.append(
            Worker(
                process=sign.process,
                host=host,
                is_control=is_control,
                sites=sign.sites,
                release=release_in_words(release),
                age=sign.age,
                held=held.get(sign.process, 0),
                reason="" if is_control else reasons.get(host, ""),
                is_other_release=bool(release) and release != own_release(),
                put_back=dict(put_back.get(sign.process, {})),
            )
        )
    order = list(reversed(STATES))
    return sorted(
        workers, key=lambda worker: (order.index(worker.state), worker.process)
    )
