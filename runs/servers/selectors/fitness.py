"""Can a server measure? One answer, for its page, the first page and the API."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.access.selectors import projects
from runs.analysis.certificate import FOREIGN_DOUBTFUL
from runs.models import Run, Server
from runs.models.campaigns import Origin
from runs.wording import of_stored

NEWEST = 10
# A look that is older says nothing of now.
LOOK_HOLDS = timedelta(minutes=30)
LEAST_FREE_BYTES = 2**30

Can = Literal["can", "doubtful", "cannot", "unknown"]


@dataclass(frozen=True)
class Certificate:
    """A run that ended last on a server, and its judgement: valid, doubtful, invalid or unknown."""

    run_id: int
    judgement: str


@dataclass(frozen=True)
class Fitness:
    """Whether a server can measure, in one sentence; what to do where it cannot.

    `programs` use its processors now, with their shares; the last certificates, the oldest first.
    """

    server: Server
    can: Can
    sentence: str
    remedy: str
    certificates: tuple[Certificate, ...]

    @property
    def tone(self) -> str:
        """The tone of its mark."""
        return {"can": "ready", "doubtful": "warning", "cannot": "failed"}.get(
            self.can, "queued"
        )

    @property
    def is_load_known(self) -> bool:
        """Whether its load was asked lately."""
        return _is_load_known(self.server)

    @property
    def load_percent(self) -> float:
        """How much of its processors was in use by other programs at the last look."""
        return 100 * (self.server.load_share or 0.0)

    @property
    def programs(self) -> str:
        """Which programs used them, by name."""
        programs = self.server.load_programs
        return ", ".join(f"{name} {100 * share:.0f} %" for name, share in programs)

    @property
    def allowed_percent(self) -> float:
        """More makes a run doubtful."""
        return 100 * FOREIGN_DOUBTFUL


def of_servers(
    servers: Sequence[Server], *, to: projects.Reader = projects.NOBODY
) -> list[Fitness]:
    """The answer for each of these, by runs that the reader may see. One query."""
    certificates = _certificates([server.pk for server in servers], to)
    return [
        _judge_server(server, certificates.get(server.pk, ())) for server in servers
    ]


def _judge_server(server: Server, certificates: tuple[Certificate, ...]) -> Fitness:
    can, sentence, remedy = _judged(server, certificates)
    return Fitness(server, can, sentence, remedy, certificates)


def _judged(
    server: Server, certificates: tuple[Certificate, ...]
) -> tuple[Can, str, str]:
    """The first thing that keeps it from measuring decides."""
    words = {"server": server.name, "share": f"{100 * (server.load_share or 0):.0f}"}
    if server.state != Server.State.READY:
        why = of_stored(server.wording, server.problem, _) or str(
            server.get_state_display()
        )
        text = _("%(server)s cannot measure: %(why)s") % (words | {"why": why})
        return "cannot", text, _(server.problem_remedy) if server.problem_remedy else ""
    if server.is_maintained:
        text = _("%(server)s measures nothing: it is under maintenance.")
        return "cannot", text % words, _("End the maintenance on its page.")
    if server.needs_sweep:
        text = _(
            "%(server)s cannot measure yet: what a run left there is being removed."
        )
        return "cannot", text % words, ""
    if server.free_bytes is not None and server.free_bytes < LEAST_FREE_BYTES:
        text = _(
            "%(server)s cannot measure: %(size)d MB are free in its base directory."
        )
        return (
            "cannot",
            text % (words | {"size": server.free_bytes // 2**20}),
            _("Free space."),
        )
    if _is_load_known(server) and (server.load_share or 0.0) > FOREIGN_DOUBTFUL:
        text = _(
            "%(server)s cannot measure now: other programs take %(share)s %% of its processors."
        )
        remedy = _("End them, or let campaigns wait until the machine is free.")
        return "cannot", text % words, remedy
    invalid = sum(certificate.judgement == "invalid" for certificate in certificates)
    if invalid * 2 >= max(len(certificates), 1):
        text = ngettext(
            "%(server)s can hardly measure: %(invalid)d of its last %(number)d runs is invalid.",
            "%(server)s can hardly measure: %(invalid)d of its last %(number)d runs are invalid.",
            invalid,
        )
        counts = {"invalid": invalid, "number": len(certificates)}
        return (
            "doubtful",
            text % (words | counts),
            _("Their pages say what disturbed them."),
        )
    if not _is_load_known(server):
        return (
            "unknown",
            _("%(server)s is ready; its load was not asked lately.") % words,
            "",
        )
    text = _(
        "%(server)s can measure: other programs take %(share)s %% of its processors."
    )
    return "can", text % words, ""


def _is_load_known(server: Server) -> bool:
    at = server.load_at
    is_recent = at is not None and at > timezone.now() - LOOK_HOLDS
    return is_recent and server.load_share is not None


def _certificates(
    server_ids: Collection[int], to: projects.Reader
) -> Mapping[int, tuple[Certificate, ...]]:
    """The newest of each server, the oldest first. One query."""
    ended = Run.objects.filter(
        state__in=Run.WITH_RESULT, origin=Origin.EXECUTED
    ).order_by("-pk")
    # Of each server by the index of its runs: a window would read them all.
    of_each = [ended.filter(server=server_id) for server_id in server_ids]
    newest = projects.newest_of_each(
        of_each, "pk", "server", "validity", to=to, number=NEWEST
    )
    certificates: dict[int, list[Certificate]] = {}
    for pk, server_id, validity in sorted(newest):
        certificates.setdefault(server_id or 0, []).append(
            Certificate(pk, validity or "unknown")
        )
    return {
        server_id: tuple(found[-NEWEST:]) for server_id, found in certificates.items()
    }
