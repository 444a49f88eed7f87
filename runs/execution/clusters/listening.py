"""Clusters that other machines reach: on known addresses and a free port, only they, by password.

The others are load generators, and further machines of clusters. The password is created on the
database's machine for one run, and reaches the others through this worker's memory. It is in no
argument list, step, log or record; the files with it are removed with the run's folders.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import DATABASE, SUPERUSER, Cluster
from runs.execution.errors import TargetProblem
from runs.execution.machine.sections import number_in
from runs.execution.nodes import Member, Node
from runs.execution.ssh.hosts import Answer
from runs.execution.steps.steps import NO_SPACE, disk_full
from runs.wording import gettext_noop as _

SCRAM_SINCE = 100000
# A generator gives up after this long without an answer of the database; it survives shorter cuts.
SECONDS_OF_SILENCE = 60
# What is part of pg_ctl's -o, which a shell reads, and of pg_hba.conf.
NO_SUCH_PROGRAM = 127
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_%-]{0,252}")
_EVERY_ADDRESS = re.compile(r"(0x)?0*([.:](0x)?0*)*")

_FREE_PORT = r"""
# Listening or not: a port that anybody uses is left alone. The numbers are hexadecimal there.
used=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    sed -n 's/^ *[0-9]*: [0-9A-F]*:\([0-9A-F]*\) .*/\1/p')
for try in 1 2 3 4 5 6 7 8 9; do
    port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 10000))
    case " $(echo $used) " in *" $(printf %04X $port) "*) ;; *) echo $port; exit 0 ;; esac
done
exit 1
"""
_SOURCE = r"""
# Where many a login shell of an ordinary user does not look.
PATH=$PATH:/usr/sbin:/sbin
command -v ip >/dev/null || exit 127
address=$(getent ahosts "$1" 2>/dev/null | awk 'NR == 1 { print $1 }')
ip -o route get "${address:-$1}" | sed -n 's/.* src \([^ ]*\).*/\1/p'
"""
_ONLY_THESE = 'cat >"$1/pg_hba.conf"'
# Idempotent: another worker finds the password that the first one created.
_MAKE = r"""
umask 077
export LC_ALL=C
[ -s "$1/password" ] || {
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$1/password.new" &&
        mv "$1/password.new" "$1/password"
} || exit 1
cat "$1/password"
"""
# The server must not log the statement, whatever its settings are.
_SET = r"""
directory=$1 method=$2 role=$3
shift 3
{
    echo "SET log_statement = 'none'; SET log_min_duration_statement = -1;"
    echo "SET log_min_error_statement = 'panic'; SET password_encryption = '$method';"
    printf "ALTER ROLE $role PASSWORD '%s';\n" "$(cat "$directory/password")"
} | "$@"
"""
_KEEP = 'umask 077; export LC_ALL=C; cat >"$1"'


async def prepare(bench: Bench) -> Cluster:
    """Choose a port, and admit only the run's other machines; returns the cluster to be started.

    It listens on each address by which one of them knows the database. The cluster must be stopped.
    Raises TargetProblem `address_unknown`, `no_free_port`.
    """
    plan = bench.plan
    known_by = [
        checked(connecting.address_of_database) for connecting in plan.connecting
    ]
    if plan.clusters and not known_by:
        await _admit(bench, "admit-clusters", bench.cluster, bench.database, [])
        return bench.cluster
    port = await free_port(bench, "choose-port", bench.database)
    nodes = (
        [*bench.database_nodes[1:], *bench.generators]
        if plan.generators
        else bench.nodes[1:]
    )
    nodes_and_names = zip(nodes[-len(known_by) :], known_by, strict=True)
    sources = [
        await source_of(bench, node, address) for node, address in nodes_and_names
    ]
    among, loads = sources[: len(plan.joined)], sources[len(plan.joined) :]
    lines = _hosts(("all", "replication"), among, method_of(bench))
    lines += _hosts((DATABASE,), loads, method_of(bench))
    await _admit(bench, "admit-generators", bench.cluster, bench.database, lines)
    addresses = ",".join(dict.fromkeys(known_by))
    passfile = passfile_of(bench.database) if plan.joined else ""
    return replace(bench.cluster, port=port, address=addresses, passfile=passfile)


async def prepare_member(bench: Bench, member: Member) -> Cluster:
    """The same for a named cluster, to which the machine of the run's own cluster connects."""
    cluster, lines = member.cluster, list[str]()
    if bench.plan.machines:
        cluster = replace(cluster, passfile=passfile_of(member.node))
    machine = next(
        (
            machine_plan
            for machine_plan in bench.plan.machines
            if machine_plan.name == member.node.name
        ),
        None,
    )
    if (
        machine
    ):  # the machine of the run's own cluster reaches those on it by their sockets
        address = checked(machine.host)
        port = await free_port(bench, f"choose-port-{member.name}", member.node)
        source = await source_of(
            bench, bench.database, address, step=f"source-to-{member.name}"
        )
        lines = _hosts(("all",), [source], method_of(bench))
        cluster = replace(cluster, port=port, address=address)
    await _admit(bench, f"admit-at-{member.name}", cluster, member.node, lines)
    return cluster


def _hosts(databases: Sequence[str], sources: Sequence[str], method: str) -> list[str]:
    return [
        f"host {database} {SUPERUSER} {source} {method}"
        for source in sorted(set(sources))
        for database in databases
    ]


async def free_port(bench: Bench, step: str, node: Node) -> int:
    """A port that nobody uses there now. Raises TargetProblem `no_free_port`."""
    chosen = await bench.step(
        step, ["sh", "-c", _FREE_PORT, "port"], check=False, on=node
    )
    port = number_in(chosen.stdout.strip())
    if chosen.exit_status != 0 or port is None:
        raise TargetProblem(
            _("No free port was found on %(address)s."),
            code="no_free_port",
            remedy=_("Look at what uses the ports from 20000 to 29999 on the server."),
            address=node.address,
        )
    return port


async def _admit(
    bench: Bench, step: str, cluster: Cluster, node: Node, hosts: Sequence[str]
) -> None:
    """Replace pg_hba.conf: the socket, standbys by the socket if there are any, and hosts."""
    lines = ["local all all trust"]
    lines += ["local replication all trust"] if bench.plan.clusters else []
    argv = ["sh", "-c", _ONLY_THESE, "admit", cluster.data]
    await bench.step(step, argv, stdin="\n".join([*lines, *hosts, ""]), on=node)


async def give_password(bench: Bench) -> None:
    """Set the password in the running cluster, and store it on each other machine (PGPASSFILE).

    Raises TargetProblem `password_not_set`, `disk_full`.
    """
    generated = await bench.run("sh", "-c", _MAKE, "password", bench.directory)
    password = generated.stdout.decode().strip()
    if generated.exit_status != 0 or not password:
        raise _not_set(bench.database, generated)
    await set_password(bench, bench.database, bench.cluster)
    line = f"*:*:*:*:{password}\n".encode()
    among = bench.database_nodes if bench.plan.joined else ()
    for node in dict.fromkeys(
        (*among, *(bench.generators if bench.plan.generators else ()))
    ):
        await _leave(node, passfile_of(node), line)
    for node in among[1:]:
        await _leave(node, f"{node.directory}/password", password.encode())


async def set_password(bench: Bench, node: Node, cluster: Cluster) -> None:
    """Set the run's password in a cluster that others reach. Raises as `give_password`."""
    encryption = method_of(bench)
    if encryption != "scram-sha-256":
        encryption = "md5" if cluster.version_num >= SCRAM_SINCE else "on"
    psql = cluster.psql(database="postgres")
    words = ("sh", "-c", _SET, "set", node.directory, encryption, SUPERUSER, *psql)
    done = await bench.run(*words, on=node)
    if done.exit_status != 0:
        raise _not_set(node, done)


def passfile_of(node: Node) -> str:
    """The password file's place on a machine that connects to another machine's cluster."""
    return f"{node.directory}/pgpass"


async def _leave(node: Node, path: str, line: bytes) -> None:
    result = await node.run(["sh", "-c", _KEEP, "keep", path], stdin=line)
    if result.exit_status != 0:
        raise _not_set(node, result)


def _not_set(node: Node, reply: Answer) -> TargetProblem:
    message = reply.stderr.decode(errors="replace").strip()[-300:]
    if NO_SPACE in message:
        return node.charged(disk_full(f"{node.directory} on {node.address}", message))
    return TargetProblem(
        _(
            "On %(address)s the password for the load generators could not be set: %(said)s"
        ),
        code="password_not_set",
        remedy=_("Read the server's log with the run."),
        address=node.address,
        said=message,
    )


def method_of(bench: Bench) -> str:
    """SCRAM if the server and every client support it."""
    versions = [
        generator_plan.client_version_num for generator_plan in bench.plan.generators
    ]
    versions += [cluster_plan.version_num for cluster_plan in bench.plan.clusters]
    knows = min([bench.plan.version_num, *versions]) >= SCRAM_SINCE
    return "scram-sha-256" if knows else "md5"


async def source_of(bench: Bench, node: Node, address: str, *, step: str = "") -> str:
    """A machine's own address on the way to a database, with a full-length mask.

    Raises TargetProblem `missing_program`, `address_unknown`.
    """
    argv = ["sh", "-c", _SOURCE, "source", address]
    step_result = await bench.step(
        step or f"source-{node.name}", argv, check=False, on=node
    )
    if step_result.exit_status == NO_SUCH_PROGRAM:
        raise TargetProblem(
            _("The program ip is missing on %(address)s."),
            code="missing_program",
            remedy=_("Install iproute2 on that machine."),
            address=node.address,
        )
    source = step_result.stdout.strip()
    if not _ADDRESS.fullmatch(source):
        raise TargetProblem(
            _("%(address)s knows no way to %(database)s: %(stderr)s"),
            code="address_unknown",
            remedy=_(
                "Check the database's address on its server's page, as seen from there."
            ),
            address=node.address,
            database=address,
            stderr=step_result.stderr.strip()[-300:],
        )
    return f"{source}/{128 if ':' in source else 32}"


def checked(address: str) -> str:
    """One address, never all of a machine's: 0.0.0.0, also written 0 and 0x0, and ::."""
    if _ADDRESS.fullmatch(address) and not _EVERY_ADDRESS.fullmatch(address):
        return address
    raise TargetProblem(
        _("%(address)s is not an address on which PostgreSQL can listen."),
        code="address_unknown",
        remedy=_("Give the server an IP address or a host name."),
        address=repr(address),
    )
