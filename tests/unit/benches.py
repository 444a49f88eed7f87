"""A real bench of machines that nobody connects to, for what is concluded after the load."""

from runs.execution.bench import Bench
from runs.execution.director import Director
from runs.execution.nodes import Place
from runs.execution.plan import GeneratorPlan, RunPlan
from runs.execution.ssh.hosts import Host
from runs.execution.ssh.reconnecting import Line
from runs.scenarios import registry
from tests.ssh.recording import RecordingReporter


def bench_of(*generators: str) -> Bench:
    """The bench of a run with these load generators, or with the load from the database's own."""
    plan = RunPlan(
        run_id=7,
        campaign="test",
        scenario="fixed-point-read",
        host="192.0.2.1",
        port=22,
        username="benchlab",
        base_dir="/lab",
        bindir="/usr/lib/postgresql/18/bin",
        version_num=180004,
        client_bindir="/usr/lib/postgresql/18/bin",
        client_version_num=180004,
        settings={},
        initdb_options=(),
        levels={"version": "18.4", "clients": 2},
        parameters={"scale": 1, "duration": 3},
        cluster_key="shared",
        generators=tuple(_generator(name) for name in generators),
    )
    director = Director(
        plan=plan,
        attempt=1,
        instance="test",
        places=[Place(Line(_nobody)) for _machine in ("db", *generators)],
        procedure=registry.get(plan.scenario).procedure,
        reporter=RecordingReporter(),
        disk_bytes=0,
        taken_over=False,
    )
    return director.bench


def codes(bench: Bench) -> list[str]:
    """The codes of the notes that a bench has."""
    return [note.code for note in bench.findings.notes]


async def _nobody() -> Host:
    raise AssertionError("nothing of this asks a machine")


def _generator(name: str) -> GeneratorPlan:
    return GeneratorPlan(
        name=name,
        server_id=2,
        host="192.0.2.2",
        port=22,
        username="benchlab",
        base_dir="/lab",
        client_bindir="/usr/lib/postgresql/18/bin",
        client_version_num=180004,
        address_of_database="192.0.2.1",
    )
