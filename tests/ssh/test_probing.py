"""The facts of a run's machines, reported at its start, and the skew of their clocks."""

import asyncio
from dataclasses import replace

import pytest

from runs.execution import failure_causes
from runs.execution.director import Director
from runs.execution.errors import TargetProblem
from runs.execution.machine import (
    clock_skew,
    machine_facts,
    probing,
    target_facts,
    treating,
)
from runs.execution.ssh.ssh import SSHHost
from tests.ssh.directing import execute, left_running

pytestmark = pytest.mark.openssh


# The facts of a run's machines, reported at its start; failures there do not fail the run.


def steady(system: machine_facts.OperatingSystem) -> machine_facts.OperatingSystem:
    """Without the setting that tests of profiles change on this machine meanwhile."""
    kept = {
        k: v
        for k, v in system.kernel_settings.items()
        if k != "kernel.perf_event_paranoid"
    }
    return replace(system, kernel_settings=kept)


def probe(
    director: Director, *, clean_up: bool = False
) -> dict[str, target_facts.Facts | None]:
    """Probe the machines of a run that has started; return what was reported."""

    async def look() -> None:
        bench = director.bench
        try:
            for node in bench.nodes:
                await node.claim()
                await failure_causes.make_folders_noting_boot(
                    node, [node.steps_directory]
                )
            async with probing.probing(bench) as probed:
                await probed
        finally:
            if clean_up:
                await director.clean_up()
            await bench.close()

    asyncio.run(look())
    return director.reporter.machines


@pytest.mark.probes
def test_a_run_tells_the_same_of_its_machine_as_an_inspection(direct, plan, on_host):
    told = probe(direct(plan))["db"]
    inspected = on_host(
        lambda host: target_facts.discover(host, [], base_dir=plan.base_dir)
    )
    assert told.hardware.fingerprint == inspected.hardware.fingerprint
    assert steady(told.operating_system) == steady(inspected.operating_system)


@pytest.mark.probes
def test_who_takes_a_run_over_tells_what_was_told_at_its_begin(
    direct, plan, monkeypatch
):
    """The run may have set the machine otherwise since."""
    told = probe(direct(plan))
    monkeypatch.setattr(target_facts, "machine_probe", lambda base_dir: ["false"])
    assert probe(direct(plan, taken_over=True)) == told


@pytest.mark.probes
@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "echo '== uname'; exit 3"],
        ["sh", "-c", "kill -9 $PPID $$"],
        ["sleep", "60"],
    ],
    ids=["fails", "is killed", "hangs"],
)
def test_a_probe_that_fails_is_an_event_and_costs_the_run_nothing(
    direct, plan, monkeypatch, argv, base_dir
):
    monkeypatch.setattr(target_facts, "machine_probe", lambda base_dir: argv)
    monkeypatch.setattr(probing, "LIMIT_SECONDS", 1)
    director = direct(plan)
    assert probe(director, clean_up=True) == {"db": None}
    [(code, message)] = director.reporter.events
    assert code == "facts_unknown"
    assert plan.host in message
    assert left_running(base_dir) == []


@pytest.mark.probes
@pytest.mark.usefixtures("prepared")
def test_the_machine_is_looked_at_before_it_is_treated(direct, treated, monkeypatch):
    seen = {}

    async def treat(bench):
        seen.update(bench.reporter.machines)
        raise TargetProblem("so far")

    monkeypatch.setattr(treating, "treat_machines", treat)
    with pytest.raises(TargetProblem, match="so far"):
        execute(direct(treated(cold_cache=True)))
    assert seen["db"].hardware.memory_bytes


@pytest.mark.probes
@pytest.mark.usefixtures("prepared")
def test_the_machine_is_looked_at_before_the_load(direct, plan, monkeypatch):
    """However long that takes."""
    quick = target_facts.machine_probe(plan.base_dir)
    slow = ["sh", "-c", 'sleep 3; exec "$@"', "slow", *quick]
    monkeypatch.setattr(target_facts, "machine_probe", lambda base_dir: slow)
    director = direct(plan)
    seen = {}

    async def measuring(name):
        seen[name] = dict(director.reporter.machines)
        if name == "measuring":
            raise TargetProblem("so far")

    director.reporter.phase = measuring
    with pytest.raises(TargetProblem, match="so far"):
        execute(director)
    assert seen["preparing"] == {}
    assert seen["measuring"]["db"].hardware.memory_bytes


# Clock skew over a real connection: halved round trips, with a bound on the error.


def test_the_same_clock_has_no_skew_beyond_its_uncertainty(on_host):
    skew = on_host(clock_skew.measure)
    assert abs(skew.skew_s) <= skew.uncertainty_s < 0.5


def test_a_clock_that_is_ahead_is_told_by_how_much(on_host, monkeypatch):
    ahead = ("sh", "-c", "echo $(($(date +%s) + 90)).5")
    monkeypatch.setattr(clock_skew, "_NOW", ahead)
    assert 88 < on_host(clock_skew.measure).skew_s < 92


def test_a_quick_answer_is_enough_and_of_slow_ones_the_quickest_counts(
    on_host, monkeypatch
):
    asked = []
    run = SSHHost.run

    async def counted(self, *words, **options):
        asked.append(words)
        return await run(self, *words, **options)

    monkeypatch.setattr(SSHHost, "run", counted)
    monkeypatch.setattr(clock_skew, "QUICK_SECONDS", 10.0)
    on_host(clock_skew.measure)
    assert len(asked) == 1
    monkeypatch.setattr(clock_skew, "QUICK_SECONDS", 0.0)
    on_host(clock_skew.measure)
    assert len(asked) == 1 + clock_skew.SAMPLES


def test_a_clock_without_fractions_is_no_guess(on_host, monkeypatch):
    monkeypatch.setattr(clock_skew, "_NOW", ("echo", "17.%N"))
    assert on_host(clock_skew.measure) is None
