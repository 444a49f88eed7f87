"""Preflight: whether a server can take a campaign now, every problem with its server and remedy.

A worker makes it (runs.servers.services.server_checks). A dead host costs at most PATIENCE_SECONDS
of runs.servers.services.preflight; own scripts cost trials.WHOLE_SECONDS each at most.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from asgiref.sync import async_to_sync
from django.db.models import Sum
from django.utils.translation import gettext as _

from runs.campaigns.services import estimates, treatments
from runs.campaigns.services.designs import Design, Part
from runs.campaigns.services.drafts import Draft
from runs.configurations.services import fitted_configurations
from runs.execution import preflight as engine
from runs.execution.errors import HostUnreachable, TargetProblem
from runs.execution.preflight import Target
from runs.execution.steps.base_dir import BaseDir
from runs.models import Campaign, Installation, Server, WorkloadVersion
from runs.postgresql_settings.effective import Effective
from runs.scenarios import command
from runs.servers.services import logins, machines, tools
from runs.servers.services.machines import Finding, error
from runs.shared import database
from runs.shared.errors import Problem, ServiceError
from runs.workloads.services import topologies, trials, workloads

PATIENCE_SECONDS = 6.0

Answer = Target | TargetProblem


# As many names are shown of those that are there.
MOST_COMMANDS = 20
LEAST_FREE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Preflight:
    """The findings, and how many seconds it took; a target is None if it did not answer.

    `servers` are the databases, then the load generators; `targets` has the same order. `untried`
    are the own scripts that were not run, as nobody has asked for that.
    """

    servers: tuple[Server, ...]
    findings: list[Finding]
    targets: tuple[Target | None, ...]
    seconds: float
    untried: tuple[str, ...] = ()

    @property
    def target(self) -> Target | None:
        """What the first server reports about itself."""
        return self.targets[0]

    @property
    def has_answers(self) -> bool:
        """Whether every server answered."""
        return None not in self.targets

    @property
    def names(self) -> str:
        """The names of the servers."""
        return ", ".join(server.name for server in self.servers)

    @property
    def loads(self) -> list[tuple[str, float, int]]:
        """(server, load of the last minute, processors) of those that report it."""
        return [
            (server.name, target.load, target.processors)
            for server, target in zip(self.servers, self.targets, strict=True)
            if target and target.load is not None and target.processors
        ]

    @property
    def is_clear(self) -> bool:
        """Whether nothing prevents the start."""
        return not any(finding.level == "error" for finding in self.findings)


@dataclass(frozen=True)
class _Question:
    """A server, what to check on it, and for which part of which design.

    A load generator has no part; the way from it to each address in `reaches` is checked.
    """

    server: Server
    installations: Sequence[Installation]
    design: Design | None = None
    part: Part | None = None
    reaches: tuple[str, ...] = ()

    @property
    def privileges(self) -> list[str]:
        """What to ask of sudo: for a load generator just what the campaign does there."""
        if self.design and self.reaches:
            return machines.needed_privileges(self.design.draft.treatment, self.server)
        return list(self.server.privileges)


def _way(server: Server) -> logins.Way | TargetProblem:
    if server.is_only_a_hop:
        return TargetProblem(
            "%(server)s has no base directory.",
            server=server.name,
            code="only_a_hop",
            remedy=_("Give it one on its page, or choose another server."),
        )
    try:
        return logins.way_to(server)
    except logins.KeyUnreadable as problem:
        return problem


async def _answers(
    login_ways: Sequence[logins.Way | TargetProblem],
    questions: Sequence[_Question],
    instance: str,
) -> list[Answer]:
    """What each server answers, or why it does not. As long as the slowest, PATIENCE_SECONDS."""
    questions_asked = (
        _answer(*way_and_question, instance)
        for way_and_question in zip(login_ways, questions, strict=True)
    )
    return list(await asyncio.gather(*questions_asked))


async def _answer(
    login_way: logins.Way | TargetProblem, question: _Question, instance: str
) -> Answer:
    if isinstance(login_way, TargetProblem):
        return login_way
    base = BaseDir(question.server.base_dir, instance)
    bindirs = [installation.bindir for installation in question.installations]
    try:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            await logins.connect_along(login_way) as host,
        ):
            return await engine.look(
                host, base, bindirs, question.privileges, question.reaches
            )
    except TimeoutError:
        seconds = f"{PATIENCE_SECONDS:.0f}"
        return HostUnreachable(
            logins.NO_ANSWER, address=login_way[-1].address, seconds=seconds
        )
    except TargetProblem as problem:
        return problem


def check_server(server: Server) -> Preflight:
    """Check a server and all its installations."""
    return _fly(
        [_Question(server, list(server.installations.filter(removed_at=None)))], None
    )


def check_servers(servers: Sequence[Server]) -> Preflight:
    """Check servers and all their installations, at the same time."""
    present = tools.installed(servers)
    return _fly([_Question(server, present[server.pk]) for server in servers], None)


def check_design(
    design: Design,
    *,
    tries_scripts: bool = True,
    before_trial: Callable[[], None] | None = None,
) -> Preflight:
    """Check a campaign's servers for just what it needs; includes the draft's own faults.

    All servers, load generators too, are asked at the same time. Then own scripts are run, unless
    they are not to be; `before_trial` is called before each.
    """
    questions = [
        _Question(server_part.server, server_part.installations, design, server_part)
        for server_part in design.parts
    ]
    addresses = tuple(server.address for server in design.draft.servers)
    for machine in design.generators:
        client = tools.having_pgbench(machine.present)[:1]
        questions.append(_Question(machine.server, client, design, reaches=addresses))
    for machine in design.cluster_machines:
        wanted_versions = {cell.installation.version_num for cell in design.cells}
        installed = [
            installation
            for installation in machine.present
            if installation.version_num in wanted_versions
        ]
        questions.append(_Question(machine.server, installed, design))
    preflight = _fly(questions, design)
    own_versions = workloads.versions(
        design.draft.levels.get(workloads.SCRIPT_FACTOR, ())
    )
    if not own_versions or not preflight.is_clear:
        return preflight
    if not tries_scripts:
        return replace(preflight, untried=tuple(own_versions))
    return _add_trials(preflight, design, list(own_versions.values()), before_trial)


def _add_trials(
    preflight: Preflight,
    design: Design,
    own_versions: Sequence[WorkloadVersion],
    before_trial: Callable[[], None] | None,
) -> Preflight:
    """Own scripts, each tried on the first server's oldest PostgreSQL of the campaign."""
    server_part = next(
        (server_part for server_part in design.parts if server_part.installations), None
    )
    if server_part is None:
        return preflight
    began = time.monotonic()
    oldest = min(
        server_part.installations, key=lambda installation: installation.version_num
    )
    findings = list(preflight.findings)
    for version in own_versions:
        if before_trial is not None:
            before_trial()
        findings += _trial_findings(server_part.server, oldest, version)
    seconds = preflight.seconds + time.monotonic() - began
    return replace(preflight, findings=_each_once(findings), seconds=seconds)


def _trial_findings(
    server: Server, installation: Installation, version: WorkloadVersion
) -> Iterator[Finding]:
    content = workloads.content_of(version)
    try:
        faults = trials.tried(server=server, content=content, installation=installation)
    except ServiceError as refused:
        message = _("%(workload)s was not tried: %(reason)s")
        words = {"workload": version, "reason": refused.message}
        yield Finding(
            server.name, refused.code, "warning", message % words, refused.remedy
        )
        return
    remedy = _("Store a further version.")
    for fault, message in zip(faults, trials.messages(faults, content), strict=True):
        yield error(server, fault.code, f"{version}: {message}", remedy)


def _fly(questions: Sequence[_Question], design: Design | None) -> Preflight:
    began = time.monotonic()
    findings = list(_faults(design))
    targets: list[Target | None] = []
    login_ways, instance = (
        [_way(question.server) for question in questions],
        logins.instance_name(),
    )
    database.give_back()
    answers = async_to_sync(_answers)(login_ways, questions, instance)
    for question, server_answer in zip(questions, answers, strict=True):
        if isinstance(server_answer, Target):
            findings += _answer_findings(question, server_answer)
        else:
            service_error = logins.refused(server_answer)
            findings.append(
                error(
                    question.server,
                    service_error.code,
                    service_error.message,
                    service_error.remedy,
                )
            )
        targets.append(server_answer if isinstance(server_answer, Target) else None)
    servers = tuple(question.server for question in questions)
    return Preflight(
        servers, _each_once(findings), tuple(targets), time.monotonic() - began
    )


def _answer_findings(question: _Question, target: Target) -> Iterator[Finding]:
    server, design = question.server, question.design
    treatment = design.draft.treatment if design else None
    if treatment and question.reaches:
        yield from machines.check_generator(
            server,
            target,
            client=next(iter(question.installations), None),
            treatment=treatment,
        )
        return
    needed = treatments.needed_privileges(treatment, server) if treatment else ()
    yield from _programs(server, target, question.installations)
    privileges = question.privileges
    yield from machines.check_machine(
        server, target, privileges=privileges, needed=needed
    )
    yield from _need_findings(question, target)
    problems: list[Problem] = []
    if design and question.part is not None:
        problems += _treatment_problems(server, target, design.draft)
        problems += _command_problems(server, target, design.draft)
    if design and server in topologies.pooling_servers(design.draft):
        problems += treatments.arrangement_problems(design.draft, target)
    for problem in problems:
        yield error(server, problem.code, problem.message, problem.remedy)


def _faults(design: Design | None) -> Iterator[Finding]:
    """What is known without asking the machine, except what the machine itself knows better."""
    if design is None:
        return
    draft = design.draft
    told_better = {
        "disk_too_small",
        *(server.problem_code for server in draft.machines),
    }
    names = ", ".join(server.name for server in draft.servers)
    for problem in estimates.estimate(design).problems:
        if problem.code not in told_better:
            yield Finding(names, problem.code, "error", problem.message, problem.remedy)


def _programs(
    server: Server, target: Target, installations: Sequence[Installation]
) -> Iterator[Finding]:
    if target.uid == 0:
        message = _("BenchLab logs in as root, and PostgreSQL does not run as root.")
        remedy = _(
            "Make an ordinary user for BenchLab on the server and log in as that."
        )
        yield error(server, "login_is_root", message, remedy)
    inspect = _("Inspect the server again; what is gone is then no longer offered.")
    for installation in installations:
        bindir = installation.bindir
        if missing := target.lacks(bindir):
            message = _("%(programs)s missing in %(bindir)s.")
            words = {"programs": ", ".join(missing), "bindir": bindir}
            yield error(server, "missing_program", message % words, inspect)
        elif installation.version not in target.versions.get(bindir, ""):
            message = _("%(bindir)s does not start as PostgreSQL %(version)s any more.")
            words = {"version": installation.version, "bindir": bindir}
            yield error(server, "installation_changed", message % words, inspect)


def _need_findings(question: _Question, target: Target) -> Iterator[Finding]:
    server, needed = question.server, LEAST_FREE_BYTES
    if question.design is not None and question.part is not None:
        needed = question.design.needed_bytes(question.part) or needed
        clusters = question.design.further(question.part) + 1
        if question.design.draft.slice_seconds:
            clusters = len(question.part.cells)
        yield from _memory(server, target, question.part, clusters)
    # Clusters that are kept for a next campaign give way to a run that needs their room.
    free_bytes = (
        None if target.free_bytes is None else target.free_bytes + _kept_bytes(server)
    )
    if free_bytes is not None and free_bytes < needed:
        message = _(
            "%(needed).1f GB are needed below %(path)s; %(free).1f GB are free."
        )
        words = {
            "needed": needed / 1e9,
            "free": free_bytes / 1e9,
            "path": server.base_dir,
        }
        remedy = _("Choose a smaller scale, free space, or use another base directory.")
        yield error(server, "disk_too_small", message % words, remedy)


def _kept_bytes(server: Server) -> int:
    """The bytes of clusters that ended campaigns have left on the server."""
    ended = server.clusters.filter(removed_at=None, campaign__state__in=Campaign.ENDED)
    total: int | None = ended.aggregate(total=Sum("bytes"))["total"]
    return total or 0


def _treatment_problems(
    server: Server, target: Target, draft: Draft
) -> Iterator[Problem]:
    """What the campaign needs and the machine lacks; without it no run could start."""
    treatment = draft.treatment
    if draft.generators:  # then no pgbench runs here
        treatment = replace(treatment, pgbench_cpus="")
    return treatments.problems_of_machines(treatment, server, target)


def _command_problems(
    server: Server, target: Target, draft: Draft
) -> Iterator[Problem]:
    """Files of commands that are not there to be executed, and which ones are."""
    if draft.scenario != command.SCENARIO.slug:
        return
    folder = f"{server.base_dir}/{command.FOLDER}"
    present = sorted(
        name for name, state in target.commands.items() if state == command.EXECUTABLE
    )
    for name in draft.levels.get(command.FACTOR, ()):
        state = target.commands.get(str(name), "missing")
        fault = command.FAULTS.get("link" if target.has_linked_commands else state)
        if fault is None or not command.COMMAND.accepts(name):
            continue
        code, message, remedy = fault
        words = {"command": name, "folder": folder}
        parts = [_(remedy)]
        if present:
            listed = ", ".join(present[:MOST_COMMANDS])
            parts.append(_("There are: %(commands)s.") % {"commands": listed})
        yield Problem(code, _(message) % words, " ".join(parts), command.FACTOR)


def _memory(
    server: Server, target: Target, server_part: Part, clusters: int
) -> Iterator[Finding]:
    """The shared memory that the clusters allocate at start, for the version with the most."""
    most = 0
    for fit in server_part.fits:
        major = fitted_configurations.major_of(fit.installation)
        most = max(
            most, Effective(fit.fitted.settings, major).bytes("shared_buffers") or 0
        )
    most *= clusters
    if target.available_bytes is not None and most > target.available_bytes:
        message = _(
            "shared_buffers of %(needed).3g GiB; %(free).3g GiB of memory are available."
        )
        words = {"needed": most / 2**30, "free": target.available_bytes / 2**30}
        remedy = _(
            "Choose a configuration with less, or end what uses the memory there."
        )
        yield error(server, "memory_too_small", message % words, remedy)


def _each_once(findings: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))
