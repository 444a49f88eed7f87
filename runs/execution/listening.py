"""A cluster that load generators reach: where they know it, one free port, only they, by password.

The password is made on the database's machine for one run, and goes from there to the generators
through this worker's memory. It is in no argument list, step, log or record; both files that hold
it go with the run's folders.
"""

import re
from dataclasses import replace

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.nodes import Node
from runs.execution.postgres import DATABASE, SUPERUSER, Cluster
from runs.execution.ssh import Answer, Host
from runs.execution.steps import NO_SPACE, disk_full
from runs.wording import gettext_noop as _

SCRAM_SINCE = 100000
# A generator gives up after so long without a sign of the database; shorter cuts it lives through.
SECONDS_OF_SILENCE = 60
# What goes into pg_ctl's -o, which a shell reads, and into pg_hba.conf.
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
# Idempotent: another worker finds the password that the first one made.
_MAKE = r"""
umask 077
export LC_ALL=C
[ -s "$1/password" ] || {
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$1/password.new" &&
        mv "$1/password.new" "$1/password"
} || exit 1
cat "$1/password"
"""
# The server must not write the statement into its log, whatever its settings are.
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
    """Choose a port, and let only the generators in; the cluster as it is to be started.

    It listens on each address by which a generator knows the database. The cluster must not be
    running. Raises TargetProblem `address_unknown`, `no_free_port`.
    """
    known_by = [_checked(each.address_of_database) for each in bench.plan.generators]
    chosen = await bench.step("choose-port", ["sh", "-c", _FREE_PORT, "port"], check=False)
    if chosen.exit_status != 0:
        raise TargetProblem(
            f"No free port was found on {bench.database.address}.",
            code="no_free_port",
            remedy=_("Look at what uses the ports from 20000 to 29999 on the server."),
        )
    ways = zip(bench.generators, known_by, strict=True)
    sources = [await _source(bench, node, address) for node, address in ways]
    method = _method(bench)
    lines = ["local all all trust"]
    lines += [f"host {DATABASE} {SUPERUSER} {each} {method}" for each in sorted(set(sources))]
    argv = ["sh", "-c", _ONLY_THESE, "admit", bench.cluster.data]
    await bench.step("admit-generators", argv, stdin="\n".join([*lines, ""]))
    addresses = ",".join(dict.fromkeys(known_by))
    return replace(bench.cluster, port=int(chosen.stdout), address=addresses)


async def give_password(bench: Bench) -> None:
    """Set the password in the running cluster, and leave it on each generator (PGPASSFILE).

    Raises TargetProblem `password_not_set`, `disk_full`.
    """
    made = await bench.run("sh", "-c", _MAKE, "password", bench.directory)
    password = made.stdout.decode().strip()
    if made.exit_status != 0 or not password:
        raise _not_set(bench.database, made)
    encryption = "scram-sha-256" if _method(bench) == "scram-sha-256" else "on"
    if encryption == "on" and bench.plan.version_num >= SCRAM_SINCE:
        encryption = "md5"
    done = await bench.run(
        "sh", "-c", _SET, "set", bench.directory, encryption, SUPERUSER,
        *bench.cluster.psql(),
    )  # fmt: skip
    if done.exit_status != 0:
        raise _not_set(bench.database, done)
    line = f"*:*:*:*:{password}\n".encode()
    for node in bench.generators:
        await _leave(node, line)


def passfile(node: Node) -> str:
    """Where the password lies on a generator."""
    return f"{node.directory}/pgpass"


async def _leave(node: Node, line: bytes) -> None:
    async def act(host: Host) -> Answer:
        return await host.run(["sh", "-c", _KEEP, "keep", passfile(node)], stdin=line)

    kept = await node.on_host(act)
    if kept.exit_status != 0:
        raise _not_set(node, kept)


def _not_set(node: Node, answer: Answer) -> TargetProblem:
    said = answer.stderr.decode(errors="replace").strip()[-300:]
    if NO_SPACE in said:
        return disk_full(f"{node.directory} on {node.address}", said)
    return TargetProblem(
        f"On {node.address} the password for the load generators could not be set: {said}",
        code="password_not_set",
        remedy=_("Read the server's log with the run."),
    )


def _method(bench: Bench) -> str:
    """SCRAM where the server and every client know it."""
    versions = [each.client_version_num for each in bench.plan.generators]
    knows = min([bench.plan.version_num, *versions]) >= SCRAM_SINCE
    return "scram-sha-256" if knows else "md5"


async def _source(bench: Bench, node: Node, address: str) -> str:
    """The generator's own address on the way to the database, with its whole length as mask.

    Raises TargetProblem `missing_program`, `address_unknown`.
    """
    argv = ["sh", "-c", _SOURCE, "source", address]
    found = await bench.step(f"source-{node.name}", argv, check=False, on=node)
    if found.exit_status == NO_SUCH_PROGRAM:
        raise TargetProblem(
            f"The program ip is missing on {node.address}.",
            code="missing_program",
            remedy=_("Install iproute2 on the load generator."),
        )
    source = found.stdout.strip()
    if not _ADDRESS.fullmatch(source):
        raise TargetProblem(
            f"{node.address} knows no way to {bench.database.address}: "
            f"{found.stderr.strip()[-300:]}",
            code="address_unknown",
            remedy=_("Check the database's address on its server's page, as seen from there."),
        )
    return f"{source}/{128 if ':' in source else 32}"


def _checked(address: str) -> str:
    """One address, never all of a machine: 0.0.0.0, which is also written 0 and 0x0, and ::."""
    if _ADDRESS.fullmatch(address) and not _EVERY_ADDRESS.fullmatch(address):
        return address
    raise TargetProblem(
        f"{address!r} is not an address on which PostgreSQL can listen.",
        code="address_unknown",
        remedy=_("Give the server an IP address or a host name."),
    )
