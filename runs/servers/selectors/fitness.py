"""Can a server measure? One answer, for its page, the first page and the API."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.access.selectors import projects
from runs.analysis.certificate import FOREIGN_DOUBTFUL, FOREIGN_INVALID
from runs.models import Run, Server
from runs.models.campaigns import Origin
from runs.wording import say_stored

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


class Judgement(NamedTuple):
    """Whether a server can measure: in a word, in a sentence, and what to do where it cannot."""

    can: Can
    word: str
    sentence: str
    remedy: str = ""


@dataclass(frozen=True)
class Fitness:
    """Whether a server can measure, in one word and one sentence; what to do where it cannot.

    `programs` use its processors now, with their shares; the last certificates, the oldest first.
    """

    server: Server
    can: Can
    word: str
    sentence: str
    remedy: str
    certificates: tuple[Certificate, ...]

    @property
    def tone(self) -> str:
        """The tone of its mark."""
        if self.server.state != Server.State.READY:
            return self.server.state
        return {"can": "ready", "doubtful": "warning", "cannot": "failed"}.get(
            self.can, "queued"
        )

    @property
    def is_load_known(self) -> bool:
        """Whether its load was asked lately."""
        return _is_load_known(self.server)

    @property
    def load_percent(self) -> str:
        """How much of its processors was in use by other programs at the last look."""
        return _percent(self.server.load_share or 0.0)

    @property
    def programs(self) -> str:
        """Which programs used them, by name."""
        programs = self.server.load_programs
        return ", ".join(f"{name} {100 * share:.0f} %" for name, share in programs)

    @property
    def limits(self) -> str:
        """From which share of the processors on other programs count against a run."""
        return _(
            "Above %(allowed)s %% a whole run is doubtful. In slices all runs of a round share it "
            "in turn: there it is only noted, and above %(most)s %% the runs count as doubtful."
        ) % {
            "allowed": _percent(FOREIGN_DOUBTFUL),
            "most": _percent(FOREIGN_INVALID),
        }


def judge_servers(
    servers: Sequence[Server], *, to: projects.Reader = projects.NOBODY
) -> list[Fitness]:
    """The answer for each of these, by runs that the reader may see. One query."""
    certificates = _certificates([server.pk for server in servers], to)
    return [
        _judge_server(server, certificates.get(server.pk, ())) for server in servers
    ]


def unfit(servers: Sequence[Server]) -> list[Fitness]:
    """Of these the servers that cannot measure now, or not without doubts. One query."""
    return [
        fitness
        for fitness in judge_servers(servers)
        if fitness.can in ("cannot", "doubtful")
    ]


def _judge_server(server: Server, certificates: tuple[Certificate, ...]) -> Fitness:
    judgement = _judged(server, certificates)
    return Fitness(server, *judgement, certificates)


def _judged(server: Server, certificates: tuple[Certificate, ...]) -> Judgement:
    """The first thing that keeps it from measuring decides."""
    share = server.load_share or 0.0
    words = {
        "server": server.name,
        "share": _percent(share),
        "allowed": _percent(FOREIGN_DOUBTFUL),
    }
    state, cannot = str(server.get_state_display()), _("cannot measure now")
    if server.state != Server.State.READY:
        why = say_stored(server.wording, server.problem, _) or state
        text = _("%(server)s cannot measure: %(why)s") % (words | {"why": why})
        remedy = _(server.problem_remedy) if server.problem_remedy else ""
        return Judgement("cannot", state, text, remedy)
    if server.is_maintained:
        text = _("%(server)s measures nothing: it is under maintenance.") % words
        return Judgement("cannot", cannot, text, _("End the maintenance on its page."))
    if server.needs_sweep:
        text = _(
            "%(server)s cannot measure yet: what a run left there is being removed."
        )
        return Judgement("cannot", cannot, text % words)
    if server.free_bytes is not None and server.free_bytes < LEAST_FREE_BYTES:
        text = _(
            "%(server)s cannot measure: %(size)d MB are free in its base directory."
        ) % (words | {"size": server.free_bytes // 2**20})
        return Judgement("cannot", cannot, text, _("Free space."))
    if _is_load_known(server) and share > FOREIGN_INVALID:
        text = _(
            "%(server)s cannot measure now: other programs take %(share)s %% of its processors."
        )
        remedy = _("End them, or let campaigns wait until the machine is free.")
        return Judgement("cannot", cannot, text % words, remedy)
    if _is_load_known(server) and share > FOREIGN_DOUBTFUL:
        text = _(
            "%(server)s can measure only in slices now: other programs take %(share)s %% of its "
            "processors, and %(allowed)s %% are allowed for whole runs."
        )
        remedy = _("End them, or let campaigns wait until the machine is free.")
        return Judgement("doubtful", _("only in slices"), text % words, remedy)
    invalid = sum(certificate.judgement == "invalid" for certificate in certificates)
    if invalid * 2 >= max(len(certificates), 1):
        text = ngettext(
            "%(server)s can hardly measure: %(invalid)d of its last %(number)d runs is invalid.",
            "%(server)s can hardly measure: %(invalid)d of its last %(number)d runs are invalid.",
            invalid,
        ) % (words | {"invalid": invalid, "number": len(certificates)})
        remedy = _("Their pages say what disturbed them.")
        return Judgement("doubtful", _("can hardly measure"), text, remedy)
    if not _is_load_known(server):
        text = _("%(server)s is ready; its load was not asked lately.") % words
        return Judgement("unknown", state, text)
    text = _(
        "%(server)s can measure: other programs take %(share)s %% of its processors."
    )
    return Judgement("can", _("can measure"), text % words)


def _percent(share: float) -> str:
    """As all sentences and figures of a page round it."""
    return f"{100 * share:.0f}"


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
        server_id: tuple(newest_certificates[-NEWEST:])
        for server_id, newest_certificates in certificates.items()
    }
