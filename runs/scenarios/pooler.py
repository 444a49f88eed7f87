"""PgBouncer in front of the database, as long as the load is on.

On the database's machine, or on another one; the load comes from one of these, or from others.
Between machines it listens on the address by which the load knows its machine, admits only that
load by password, and logs in to the database as the load would. Source: PgBouncer's config.md.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from runs.execution.bench import Bench, Entrance
from runs.execution.clusters import listening
from runs.execution.clusters.postgres import SUPERUSER
from runs.execution.errors import TargetProblem
from runs.execution.nodes import Node
from runs.wording import gettext_noop as _

PROGRAM, STEP = "pgbouncer", "pooler"
# PgBouncer's default; the same number of connections to the server for all clients.
POOL_SIZE = 20
PORT = 6432
SECONDS_TO_START = 15
# Debian installs it outside the PATH of an ordinary user.
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CONFIGURATION = """[databases]
* = host={host} port={port}{user}
[pgbouncer]
listen_port = {listened}
listen_addr = {addresses}
unix_socket_dir = {sockets}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 10000
ignore_startup_parameters = extra_float_digits
{admission}
"""
# Where a password is needed, the run's is in a file of the machine's folder.
_USERS = r"""
umask 077
printf '"%s" "%s"\n' "$2" "$(cat "$1/password")" >"$1/pgbouncer-users.txt"
"""


async def through(bench: Bench, measure: Callable[[], Awaitable[None]]) -> None:
    """Run the load through PgBouncer. Raises TargetProblem `pooler_does_not_start`."""
    pooler_place = _Place(bench)
    await pooler_place.configure()
    path = f"{pooler_place.node.directory}/pgbouncer.ini"
    pooler = bench.background(pooler_place.node, STEP, ("env", PATH, PROGRAM, path))
    bench.of_the_load.append((pooler_place.node, STEP))
    await pooler_place.wait_until_it_answers()
    bench.entrance = Entrance(pooler_place.port, pooler_place.address)
    await measure()
    bench.entrance = None
    result = await bench.ended(pooler)
    bench.keep("pgbouncer.log", f"{result.stdout}{result.stderr}")
    if pooler_place.address:
        text = _(
            "The load went through PgBouncer on a machine of its own: transaction pooling, "
            "%(number)s connections to the server at most."
        )
    else:
        text = _(
            "The load went through PgBouncer on the same machine: transaction pooling, "
            "%(number)s connections to the server at most."
        )
    bench.note("pooled", text, level="info", number=POOL_SIZE)


class _Place:
    """The machine of the pool, and how the load gets there.

    `address` is empty on the database's machine: the load knows that already.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        machines = {
            machine_plan.name: machine_plan.host for machine_plan in bench.plan.machines
        }
        self.address = machines.get(bench.plan.pooler, "")
        nodes = {node.name: node for node in bench.nodes}
        self.node: Node = nodes.get(bench.plan.pooler, bench.database)
        self.port = PORT

    async def configure(self) -> None:
        """Write its configuration; with the load or the database elsewhere also whom it admits."""
        bench = self.bench
        addresses, admission = "", "auth_type = any"
        if bench.plan.is_reached_by_others:
            self.port = await listening.free_port(
                bench, "choose-port-pooler", self.node
            )
            addresses = ",".join(dict.fromkeys(self._addresses()))
            admission = await self._admission()
        text = _CONFIGURATION.format(
            host=bench.plan.machines[0].address_of_database
            if self.address
            else self._sockets,
            port=bench.cluster.port,
            user="" if bench.plan.is_reached_by_others else f" user={SUPERUSER}",
            listened=self.port,
            addresses=addresses,
            sockets=self._sockets,
            size=POOL_SIZE,
            admission=admission,
        )
        path = f"{self.node.directory}/pgbouncer.ini"
        await bench.write("write-pooler", path, text, on=self.node)

    @property
    def _sockets(self) -> str:
        return f"{self.node.directory}/s"

    def _addresses(self) -> Sequence[str]:
        if self.address:
            return [listening.checked(self.address)]
        known_by = [
            generator_plan.address_of_database
            for generator_plan in self.bench.plan.generators
        ]
        return [listening.checked(address) for address in known_by]

    async def _admission(self) -> str:
        """Only the machines of the load, and by the password that the database asks for."""
        bench, folder = self.bench, self.node.directory
        loads = {node.name: node for node in (*bench.generators, bench.database)}
        loads.pop(self.node.name, None)
        address = self._addresses()[0]
        sources = [
            await listening.source_of(
                bench, node, address, step=f"source-to-pooler-{name}"
            )
            for name, node in loads.items()
        ]
        method = listening.method_of(bench)
        lines = ["local all all trust"]
        lines += [
            f"host all {SUPERUSER} {source} {method}" for source in sorted(set(sources))
        ]
        hba, text = f"{folder}/pgbouncer-hba.conf", "\n".join([*lines, ""])
        await bench.write("admit-to-pooler", hba, text, on=self.node)
        reply = await bench.run(
            "sh", "-c", _USERS, "users", folder, SUPERUSER, on=self.node
        )
        if reply.exit_status != 0:
            raise self._does_not_start(reply.stderr.decode(errors="replace"))
        return f"auth_type = hba\nauth_hba_file = {hba}\nauth_file = {folder}/pgbouncer-users.txt"

    async def wait_until_it_answers(self) -> None:
        """Asked by psql of the database's machine. Raises TargetProblem `pooler_does_not_start`."""
        bench = self.bench
        words = list(bench.cluster.psql())
        words[words.index("-p") + 1] = str(self.port)
        if self.address:
            words[words.index("-h") + 1] = self.address
        words[-2:] = ["-c", "SELECT 1"]
        secret = f"PGPASSFILE={listening.passfile_of(bench.database)}"
        for _try in range(SECONDS_TO_START * 5):
            if (
                await bench.run("env", secret, "PGCONNECT_TIMEOUT=5", *words)
            ).exit_status == 0:
                return
            await asyncio.sleep(0.2)
        folder = f"{self.node.steps_directory}/{STEP}"
        reply = await bench.run(
            "sh", "-c", 'tail -n 5 "$1"/out "$1"/err', "tail", folder, on=self.node
        )
        raise self._does_not_start(reply.stdout.decode(errors="replace"))

    def _does_not_start(self, output: str) -> TargetProblem:
        return TargetProblem(
            _("PgBouncer does not answer on %(address)s: %(said)s"),
            code="pooler_does_not_start",
            remedy=_(
                "Install pgbouncer there; its output is among the run's commands."
            ),
            address=self.node.address,
            said=output.strip()[-500:],
        )
