"""Preflight: whether a server can take a campaign now, every problem with its server and remedy.

It is answered within the request that asks. A queued task would answer no sooner, and behind 32
busy runs much later; and a host that is dead costs the request at most
PATIENCE_SECONDS of runs.services.questions.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _

from runs.execution import privileged
from runs.execution.errors import TargetProblem
from runs.execution.preflight import Target
from runs.models import Installation, Server
from runs.postgresql_settings.effective import Effective
from runs.services import (
    drafts,
    estimates,
    fitted_configurations,
    questions,
    treatment_checks,
    treatments,
)
from runs.services.drafts import Draft
from runs.services.questions import Question

MOST_SKEW_SECONDS = 2.0
BUSY_LOAD_PER_PROCESSOR = 0.25
LEAST_FREE_BYTES = 512 * 1024 * 1024

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """Something that stands against a campaign, or (a warning) against trusting its numbers."""

    server: str
    code: str
    level: Level
    message: str
    remedy: str


@dataclass(frozen=True)
class Preflight:
    """What was found in how many seconds; a target is None where nobody answered.

    `targets` are those of the servers, in their order.
    """

    servers: tuple[Server, ...]
    findings: list[Finding]
    targets: tuple[Target | None, ...]
    seconds: float

    @property
    def target(self) -> Target | None:
        """What the first server says of itself."""
        return self.targets[0]

    @property
    def has_answers(self) -> bool:
        """Whether every server could be asked."""
        return None not in self.targets

    @property
    def names(self) -> str:
        """The servers in words."""
        return ", ".join(each.name for each in self.servers)

    @property
    def is_clear(self) -> bool:
        """Whether nothing forbids to begin."""
        return not any(finding.level == "error" for finding in self.findings)


@dataclass(frozen=True)
class _Asked:
    """A server with what of it is to be looked at, and for which part of a campaign."""

    server: Server
    installations: list[Installation]
    draft: Draft | None


def of_server(server: Server) -> Preflight:
    """Look at a server and all its installations."""
    installed = list(server.installations.filter(removed_at=None))
    return _fly([_Asked(server, installed, None)], None)


def of_draft(draft: Draft) -> Preflight:
    """Look at a campaign's servers for just what the campaign needs; its own faults come along.

    All servers are asked at the same time.
    """
    parts = drafts.parts(draft)
    return _fly([_Asked(part.server, list(part.installations), part) for part in parts], draft)


def _fly(asked: Sequence[_Asked], draft: Draft | None) -> Preflight:
    began = time.monotonic()
    findings = list(_faults(draft))
    targets: list[Target | None] = []
    answers = questions.ask_all([_question(each) for each in asked])
    for each, answer in zip(asked, answers, strict=True):
        if isinstance(answer, Target):
            findings += _of_answer(each, answer)
        elif isinstance(answer, TargetProblem):
            findings.append(_of_problem(each.server, answer))
        else:
            message = _("The private key cannot be decrypted.")
            remedy = _("Add the key it was encrypted under to BENCHLAB_ENCRYPTION_KEY.")
            findings.append(_error(each.server, "private_key_unreadable", message, remedy))
        targets.append(answer if isinstance(answer, Target) else None)
    servers = tuple(each.server for each in asked)
    return Preflight(servers, _each_once(findings), tuple(targets), time.monotonic() - began)


def _of_answer(asked: _Asked, target: Target) -> Iterator[Finding]:
    server, draft = asked.server, asked.draft
    needed = treatments.needed_privileges(draft.treatment, server) if draft else ()
    yield from _of_target(server, target, asked.installations, needed)
    yield from _of_needs(server, target, draft)
    yield from _of_treatment(server, target, draft)


def _question(asked: _Asked) -> Question:
    bindirs = tuple(each.bindir for each in asked.installations)
    return Question(asked.server, bindirs)


def _faults(draft: Draft | None) -> Iterator[Finding]:
    """What is known without asking the machine; not what the machine itself tells better."""
    if draft is None:
        return
    told_better = {"disk_too_small", *(each.problem_code for each in draft.servers)}
    names = ", ".join(each.name for each in draft.servers)
    for problem in estimates.estimate(draft).problems:
        if problem.code not in told_better:
            yield Finding(names, problem.code, "error", problem.message, problem.remedy)


def _of_problem(server: Server, problem: TargetProblem) -> Finding:
    return _error(server, problem.code, problem.message, _(problem.remedy))


def _of_target(
    server: Server,
    target: Target,
    installations: Sequence[Installation],
    needed: Collection[str],
) -> Iterator[Finding]:
    yield from _base_dir(server, target)
    yield from _programs(server, target, installations)
    yield from _sudo(server, target, needed)
    yield from _conditions(server, target)


def _base_dir(server: Server, target: Target) -> Iterator[Finding]:
    path = {"path": server.base_dir}
    told = {
        "another": (_("%(path)s belongs to another BenchLab."), "base_dir_foreign"),
        "foreign": (_("%(path)s holds files that BenchLab did not make."), "base_dir_foreign"),
        "file": (_("%(path)s is no folder."), "base_dir_not_writable"),
    }
    if target.base in told:
        message, code = told[target.base]
        remedy = _("Give each BenchLab an empty or new folder of its own.")
        yield _error(server, code, message % path, remedy)
    elif not target.is_writable:
        message = _("The user %(user)s cannot write to %(path)s.")
        remedy = _("Run there, as root: install -d -o %(user)s -m 700 %(path)s")
        words = {"user": server.username, **path}
        yield _error(server, "base_dir_not_writable", message % words, remedy % words)
    for name in target.links_out:
        message = _("%(path)s/%(name)s is a symbolic link.") % {"name": name, **path}
        yield _error(server, "leads_out", message, _("Remove it."))
    if target.is_world_writable:
        message = _("Everybody on the machine can write to %(path)s.") % path
        remedy = _("Run there: chmod 700 %(path)s") % path
        yield _error(server, "base_dir_world_writable", message, remedy)


def _programs(
    server: Server, target: Target, installations: Sequence[Installation]
) -> Iterator[Finding]:
    if target.uid == 0:
        message = _("BenchLab logs in as root, and PostgreSQL does not run as root.")
        remedy = _("Make an ordinary user for BenchLab on the server and log in as that.")
        yield _error(server, "login_is_root", message, remedy)
    if not target.has_setsid:
        message = _("The program setsid is missing on the server.")
        yield _error(server, "missing_program", message, _("Install util-linux on the server."))
    inspect = _("Inspect the server again; what is gone is then no longer offered.")
    for installation in installations:
        bindir = installation.bindir
        if missing := target.lacks(bindir):
            message = _("%(programs)s missing in %(bindir)s.")
            words = {"programs": ", ".join(missing), "bindir": bindir}
            yield _error(server, "missing_program", message % words, inspect)
        elif installation.version not in target.versions.get(bindir, ""):
            message = _("%(bindir)s does not start as PostgreSQL %(version)s any more.")
            words = {"version": installation.version, "bindir": bindir}
            yield _error(server, "installation_changed", message % words, inspect)


def _sudo(server: Server, target: Target, needed: Collection[str]) -> Iterator[Finding]:
    """What was ticked and is not possible: a warning, but for what the campaign needs."""
    for name in server.privileges:
        tell = _error if name in needed else _warning
        commands = [" ".join(words) for words in privileged.action(name).commands]
        programs = {command.partition(" ")[0] for command in commands}
        for program in sorted(programs & target.no_such_programs):
            message = _("%(program)s is not on the server; a privileged action needs it.")
            remedy = _("Install it, or take the action away on the server's page.")
            yield tell(server, "missing_program", message % {"program": program}, remedy)
        if refused := sorted(set(commands) & set(target.sudo_refused)):
            message = _("sudo does not allow: %(commands)s") % {"commands": "; ".join(refused)}
            remedy = _("Install the sudoers fragment that the server's page shows.")
            yield tell(server, "privilege_missing", message, remedy)


def _conditions(server: Server, target: Target) -> Iterator[Finding]:
    """What forbids nothing, and makes numbers or times doubtful."""
    if target.skew_s is not None and abs(target.skew_s) > MOST_SKEW_SECONDS:
        message = _("The clock differs by %(seconds).0f s from BenchLab's.")
        remedy = _("Let both keep their time by NTP (chrony, systemd-timesyncd).")
        yield _warning(server, "clock_skew", message % {"seconds": target.skew_s}, remedy)
    load, processors = target.load, target.processors
    if load is not None and processors and load > BUSY_LOAD_PER_PROCESSOR * processors:
        message = _("The machine is busy: load %(load).1f on %(processors)d processors.")
        words = {"load": load, "processors": processors}
        remedy = _("Look what runs there, and wait for its end before you measure.")
        yield _warning(server, "host_busy", message % words, remedy)


def _of_needs(server: Server, target: Target, draft: Draft | None) -> Iterator[Finding]:
    needed = LEAST_FREE_BYTES
    if draft is not None:
        needed = drafts.needed_bytes(draft) or needed
        yield from _memory(server, target, draft)
    if target.free_bytes is not None and target.free_bytes < needed:
        message = _("%(needed).1f GB are needed below %(path)s; %(free).1f GB are free.")
        words = {
            "needed": needed / 1e9,
            "free": target.free_bytes / 1e9,
            "path": server.base_dir,
        }
        remedy = _("Choose a smaller scale, free space, or use another base directory.")
        yield _error(server, "disk_too_small", message % words, remedy)


def _of_treatment(server: Server, target: Target, draft: Draft | None) -> Iterator[Finding]:
    """What the machine has not that the campaign asks for; without it no run would begin."""
    if draft is None:
        return
    for problem in treatment_checks.problems(draft.treatment, server, target):
        yield _error(server, problem.code, problem.message, problem.remedy)


def _memory(server: Server, target: Target, draft: Draft) -> Iterator[Finding]:
    """The shared memory that the greediest of the versions takes at its start."""
    most = 0
    for fit in drafts.configuration_fits(draft):
        major = fitted_configurations.major_of(fit.installation)
        most = max(most, Effective(fit.fitted.settings, major).bytes("shared_buffers") or 0)
    if target.available_bytes is not None and most > target.available_bytes:
        message = _("shared_buffers of %(needed).1f GB; %(free).1f GB of memory are available.")
        words = {"needed": most / 1e9, "free": target.available_bytes / 1e9}
        remedy = _("Choose a configuration with less, or end what uses the memory there.")
        yield _error(server, "memory_too_small", message % words, remedy)


def _error(server: Server, code: str, message: str, remedy: str) -> Finding:
    return Finding(server.name, code, "error", message, remedy)


def _warning(server: Server, code: str, message: str, remedy: str) -> Finding:
    return Finding(server.name, code, "warning", message, remedy)


def _each_once(findings: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))
