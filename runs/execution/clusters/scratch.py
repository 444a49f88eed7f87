"""A scratch cluster: tries the scripts of a workload with one transaction each, and is removed.

Made in a folder of its own below the base directory, listening on a socket only, with a limit for
each statement and for each program: what never ends is ended. Whoever tries holds the server's
lease, so nothing is measured meanwhile.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.control_characters import neutralised
from runs.execution.clusters import leftovers, postgres
from runs.execution.clusters.postgres import DATABASE, SUPERUSER, Cluster
from runs.execution.errors import TargetProblem
from runs.execution.plan import WorkloadContent
from runs.execution.ssh.hosts import Answer, Host
from runs.execution.steps.base_dir import BaseDir
from runs.tools import pgbench
from runs.tools.pgbench import command
from runs.tools.pgbench.script_tokens import has_pipeline, line_of_command
from runs.wording import gettext_noop as _

FOLDER = "scratch"
NEEDED_BYTES = 512 * 1024 * 1024
STATEMENT_SECONDS, SCRIPT_SECONDS, LOAD_SECONDS = 10, 20, 60
# A few seconds for the cluster, and the limits of the scripts.
TRIAL_SECONDS = 120.0
# To stop and remove the cluster. What is left after that is cleaned up by a sweep.
CLEANING_SECONDS = 60.0
SETTINGS = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "10",
    "autovacuum": "off",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
}
# GNU timeout, where there is one; without it the limit of the connection's command applies.
TIMED_OUT = 124
_LIMITED = """
export LC_ALL=C
limit=$1
shift
command -v timeout >/dev/null && set -- timeout -k 2 "$limit" "$@"
exec "$@"
"""
# What fills tables may take longer than a statement of a script.
_PATIENT = ("env", f"PGOPTIONS=-c statement_timeout={LOAD_SECONDS}s")
_WRITE = 'cat >"$1"'
_MAKE_SOCKETS = 'umask 077; mkdir "$1"'
_TIMEOUT = "canceling statement due to statement timeout"
_ABORTED = re.compile(
    r"client 0 (?:script 0 )?aborted in command (\d{1,9})[^:;]{0,100}[:;]\s*(.*)",
    re.DOTALL,
)
# Not just the word: a notice may name a table like that.
_DIED = re.compile(r"client 0 [^\n]{0,100}aborted", re.IGNORECASE)
_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_OF_PSQL = re.compile(r"^psql:<stdin>:(\d+): (.*)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Programs:
    """The PostgreSQL that is tried, and the pgbench and psql that are used."""

    bindir: str
    version_num: int
    client_bindir: str
    client_version_num: int
    psql_bindir: str


@dataclass(frozen=True)
class Failure:
    """What did not work: in the script at `script` (None: in what is run before), on a line of it.

    `code` is sql_error, bad_command, never_ends or not_initialised; line 0 is all of it.
    `output` is what PostgreSQL or pgbench says.
    """

    script: int | None
    line: int
    code: str
    output: str


async def tried(
    host: Host, base: BaseDir, programs: Programs, workload: WorkloadContent
) -> list[Failure]:
    """What is wrong with a workload, by running it once at scale 1; nothing is left on the server.

    Raises TargetProblem if the server cannot do this at all, TimeoutError if removing the cluster
    takes longer than CLEANING_SECONDS.
    """
    if await base.claim(host) < NEEDED_BYTES:
        raise TargetProblem(
            _("A scratch cluster needs %(needed)s MB below %(path)s."),
            code="disk_too_small",
            remedy=_(
                "Choose a smaller scale, free space, or use another base directory."
            ),
            needed=f"{NEEDED_BYTES / 1e6:.0f}",
            path=base.path,
        )
    path = base.join("clusters", FOLDER)
    await leftovers.remove(host, base, path)  # of a worker that was lost
    await base.make_folder(host, path)
    try:
        trial = _Trial(host, path, programs, workload)
        await trial.start()
        failed = await trial.initialise()
        # Scripts would only repeat that their tables are missing.
        return [failed] if failed else await trial.scripts()
    finally:
        async with asyncio.timeout(CLEANING_SECONDS):
            await postgres.stop_in(host.run, path)
            await base.remove(host, path)


class _Trial:
    def __init__(
        self, host: Host, path: str, programs: Programs, workload: WorkloadContent
    ) -> None:
        self.host, self.path = host, path
        self.programs, self.workload = programs, workload
        self.cluster = Cluster(
            bindir=programs.bindir,
            version_num=programs.version_num,
            client_bindir=programs.psql_bindir,
            directory=path,
            socket_dir=f"{path}/s",
            log=f"{path}/server.log",
        )
        self.connection = pgbench.Connection(
            self.cluster.socket_dir, self.cluster.port, SUPERUSER, DATABASE
        )

    async def start(self) -> None:
        """Create and start the cluster. Raises TargetProblem `postgres_does_not_start`."""
        configure, text = self.cluster.configure(SETTINGS)
        for argv, stdin in (
            (("sh", "-c", _MAKE_SOCKETS, "make", self.cluster.socket_dir), ""),
            (self.cluster.initdb(()), ""),
            (configure, text),
            (self.cluster.start(), ""),
        ):
            reply = await self._run(argv, given=stdin, seconds=LOAD_SECONDS)
            if reply.exit_status != 0:
                message = _output(reply) or reply.stdout.decode(errors="replace")
                raise TargetProblem(
                    _("No scratch cluster can be made: %(said)s"),
                    code="postgres_does_not_start",
                    remedy=_(
                        "Check the configuration's settings against this version and machine."
                    ),
                    said=message,
                )
        statement = f"CREATE DATABASE {DATABASE};"
        await self._run(self.cluster.psql(database="postgres"), given=statement)

    async def initialise(self) -> Failure | None:
        """pgbench's tables at scale 1 unless it has its own, and the SQL before the load."""
        workload, programs = self.workload, self.programs
        if not workload.has_own_tables:
            options = command.init_options_for_tool(
                workload.init_options, programs.client_version_num
            )
            argv = pgbench.initialise(
                programs.client_bindir,
                self.connection,
                scale=1,
                options=options,
                client_version=programs.client_version_num,
            )
            reply = await self._run((*_PATIENT, *argv), seconds=LOAD_SECONDS)
            if reply.exit_status != 0:
                return Failure(None, 0, "not_initialised", _output(reply))
        if not workload.init_sql.strip():
            return None
        sql = f"\\set scale 1\n{workload.init_sql}\n"
        argv = (*_PATIENT, *self.cluster.psql())
        reply = await self._run(argv, given=sql, seconds=LOAD_SECONDS)
        return _explain_init_failure(reply) if reply.exit_status != 0 else None

    async def scripts(self) -> list[Failure]:
        """Each script by itself, whatever its weight."""
        failures = []
        # Pipelines run in the extended protocol only, as a campaign with them has to.
        has_pipelines = any(
            has_pipeline(script.text) for script in self.workload.scripts
        )
        for position, script in enumerate(self.workload.scripts):
            text = pgbench.adapt_script(script.text, self.programs.client_version_num)
            path = f"{self.path}/script-{position}.sql"
            await self._run(("sh", "-c", _WRITE, "write", path), given=text)
            argv = pgbench.once(
                self.programs.client_bindir,
                self.connection,
                script=path,
                scale=1,
                query_mode="extended" if has_pipelines else "simple",
                variables=self.workload.variables,
            )
            reply = await self._run(argv)
            message = _output(reply)
            # To 11, pgbench exits with 0 although its only client died.
            if reply.exit_status != 0 or _DIED.search(message):
                failures.append(
                    _explain_script_failure(position, text, path, reply, message)
                )
        return failures

    async def _run(
        self, argv: Sequence[str], *, given: str = "", seconds: int = SCRIPT_SECONDS
    ) -> Answer:
        words = ["sh", "-c", _LIMITED, "limited", str(seconds), *argv]
        return await self.host.run(words, stdin=given.encode(), timeout_s=None)


def _explain_script_failure(
    position: int, text: str, path: str, reply: Answer, message: str
) -> Failure:
    in_file = re.search(rf"{re.escape(path)}:(\d+): (.*)", message, re.DOTALL)
    if in_file:
        return Failure(position, int(in_file[1]), "bad_command", in_file[2].strip())
    aborted = _ABORTED.search(message)
    line = line_of_command(text, int(aborted[1])) if aborted else 0
    if reply.exit_status == TIMED_OUT or _TIMEOUT in message:
        return Failure(position, line, "never_ends", "")
    if aborted is None:
        return Failure(position, 0, "sql_error", message)
    within = _LINE.search(aborted[2])
    line += int(within[1]) - 1 if within and line else 0
    code = "sql_error" if "ERROR:" in aborted[2] else "bad_command"
    reason = aborted[2] if code == "sql_error" else message
    return Failure(position, line, code, reason.strip())


def _explain_init_failure(reply: Answer) -> Failure:
    message = _output(reply)
    if reply.exit_status == TIMED_OUT:
        return Failure(None, 0, "never_ends", "")
    line_match = _OF_PSQL.search(message)
    line = (
        max(0, int(line_match[1]) - 1) if line_match else 0
    )  # the first line sets the scale
    if _TIMEOUT in message:
        return Failure(None, line, "never_ends", "")
    return Failure(
        None, line, "sql_error", line_match[2].strip() if line_match else message
    )


def _output(reply: Answer) -> str:
    return neutralised(reply.stderr.decode(errors="replace")).strip()[-2000:]
