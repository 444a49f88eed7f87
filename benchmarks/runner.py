"""BenchLab against bare pgbench: the same arguments on the same cluster, in turn.

    .venv/bin/python -m benchmarks.runner [--pairs 5] [--duration 10] [--scale 10] [--clients 2]

Starts the embedded SSH target and creates one cluster. In each pair the engine executes a complete
run over SSH (start, prewarm, pgbench, collect, stop), and bare pgbench runs the same load on the
same cluster; which one goes first alternates. Prints the ratio of TPS of each pair with its median,
and what the engine adds to a run beyond the scenario's own steps, in seconds. Claim, worker and
results database are not involved: `benchmarks.overhead` measures a complete instance.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.binaries import PostgreSQLBinaries, postgresql_binaries
from benchlab.embedded.target import EmbeddedTarget
from runs.execution import ssh
from runs.execution.connection import Line
from runs.execution.director import Director
from runs.execution.nodes import Place
from runs.execution.plan import RunPlan
from runs.execution.postgres import DATABASE, PORT, SUPERUSER
from runs.execution.target_facts import version_num
from runs.scenarios import registry
from runs.scenarios.fixed_point_read import SCRIPT
from runs.scenarios.pgbench_procedure import PREWARM_BY_READING
from runs.tools import pgbench
from tests.ssh.recording import RecordingReporter

# Steps that anybody who measures by hand would take as well.
OWN_STEPS = frozenset(
    ("initdb", "load", "checkpoint-after-load", "prewarm", "pgbench", "start", "stop")
)
READ = registry.get("fixed-point-read")


def main() -> None:
    """Measure and print."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o711)
    account = service_account()
    target = EmbeddedTarget(folder / "t", folder / "keys", account=account)
    private, public = ssh.generate_private_key()
    try:
        with target:
            target.authorized_keys.write_text(public + "\n")
            binaries = postgresql_binaries(folder, account)
            _compare(options, target, private, binaries, account)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compare(
    options: argparse.Namespace,
    target: EmbeddedTarget,
    private: str,
    binaries: PostgreSQLBinaries,
    account: Account,
) -> None:
    plan = _plan(options, target, binaries)
    _through_benchlab(plan, 0, target, private)  # makes the shared cluster; not counted
    ratios, overheads = [], []
    for pair in range(1, options.pairs + 1):
        if pair % 2:
            ours, overhead = _through_benchlab(plan, pair, target, private)
            bare = _bare(plan, account, target)
        else:
            bare = _bare(plan, account, target)
            ours, overhead = _through_benchlab(plan, pair, target, private)
        ratios.append(ours / bare)
        overheads.append(overhead)
        print(
            f"pair {pair}: BenchLab {ours:9.1f} tps, bare pgbench {bare:9.1f} tps, "
            f"ratio {ours / bare:.3f}, added {overhead:.2f} s"
        )
    print(
        f"ratio: median {statistics.median(ratios):.3f} "
        f"(from {min(ratios):.3f} to {max(ratios):.3f}); "
        f"added to a run: median {statistics.median(overheads):.2f} s"
    )


def _through_benchlab(
    plan: RunPlan, number: int, target: EmbeddedTarget, private: str
) -> tuple[float, float]:
    """(TPS, seconds beyond the scenario's own steps) of one run by the engine."""
    reporter = RecordingReporter()
    address = ssh.Address("127.0.0.1", target.port, target.user)

    async def connect() -> ssh.Host:
        return await ssh.connect(address, host_key=target.host_key, private_key=private)

    async def run() -> float:
        director = Director(
            plan=plan,
            attempt=number,
            instance="benchmark",
            places=[Place(Line(connect))],
            procedure=READ.procedure,
            reporter=reporter,
            disk_bytes=0,
            taken_over=False,
        )
        await director.execute()
        await director.bench.close()
        return director.bench.findings.measurements["tps"]

    began = time.monotonic()
    tps = asyncio.run(run())
    own = sum(step.seconds for step in reporter.commands if step.name in OWN_STEPS)
    return tps, time.monotonic() - began - own


def _bare(plan: RunPlan, account: Account, target: EmbeddedTarget) -> float:
    """TPS of pgbench started by hand on the same cluster, started and warmed in the same way."""
    data = f"{plan.base_dir}/clusters/{plan.cluster_key}/data"
    sockets = Path(plan.base_dir) / "bare"
    sockets.mkdir(exist_ok=True)
    account.own(sockets)
    control = (f"{plan.bindir}/pg_ctl", "-w", "-D", data)
    options = ("-l", f"{sockets}/log", "-o", f"-p {PORT} -k {sockets}")
    _as(account, target, *control, "start", *options)
    try:
        warm = (f"{plan.client_bindir}/psql", "-h", str(sockets), "-U", SUPERUSER, "-f")
        _as(account, target, *warm, _file(sockets / "warm.sql", PREWARM_BY_READING), DATABASE)
        printed = _as(account, target, *_load(plan, sockets))
    finally:
        _as(account, target, *control, "stop", "-m", "fast")
    tps = pgbench.parse(printed, "", exit_status=0).tps
    if tps is None:
        raise SystemExit(f"bare pgbench gave no result:\n{printed}")
    return tps


def _load(plan: RunPlan, sockets: Path) -> tuple[str, ...]:
    return pgbench.benchmark(
        plan.client_bindir,
        pgbench.Connection(str(sockets), PORT, SUPERUSER, DATABASE),
        client_version=plan.client_version_num,
        scripts=[pgbench.Script(_file(sockets / "script.sql", SCRIPT))],
        clients=plan.levels["clients"],
        duration_s=plan.parameters["duration"],
        scale=plan.parameters["scale"],
    )


def _file(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o644)
    return str(path)


def _as(account: Account, target: EmbeddedTarget, *argv: str) -> str:
    with tempfile.TemporaryFile() as out:
        with account.spawn(
            argv, env=account.environment(target.home), cwd=target.home, stdout=out
        ) as process:
            status = process.wait()
        out.seek(0)
        printed = out.read().decode()
    if status != 0:
        raise subprocess.CalledProcessError(status, argv, printed)
    return printed


def _plan(
    options: argparse.Namespace, target: EmbeddedTarget, binaries: PostgreSQLBinaries
) -> RunPlan:
    program = [os.fspath(binaries.postgresql18 / "postgres"), "--version"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    version = version_num(printed) or 180000
    return RunPlan(
        run_id=1,
        campaign="benchmark",
        scenario=READ.slug,
        host="127.0.0.1",
        port=target.port,
        username=target.user,
        base_dir=os.fspath(target.base_dir),
        bindir=os.fspath(binaries.postgresql18),
        version_num=version,
        client_bindir=os.fspath(binaries.postgresql18),
        client_version_num=version,
        settings={"shared_buffers": "512MB", "autovacuum": "off"},
        initdb_options=(),
        levels={"version": "18", "clients": options.clients},
        parameters={"scale": options.scale, "duration": options.duration},
        cluster_key="benchmark",
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--duration", type=int, default=10, help="seconds")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--clients", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
