"""Executing whole runs by a director, and looking at what they leave on the target."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.processes import concerning
from runs.execution.director import Director
from runs.execution.ssh.hosts import Host
from runs.execution.steps.fence import Fence, raise_if_behind
from runs.execution.watch import Order, execute_watched


def execute(director: Director):
    async def run():
        try:
            await director.execute()
        finally:
            await director.bench.close()
        assert director.reporter.kept is director.bench.findings
        return director.bench.findings

    return asyncio.run(run())


async def raised(fence: Fence, host: Host) -> None:
    """Leave the fence's token on the target, as a run does in its first step there."""
    raise_if_behind(await host.run(fence.raising))


def processes_below(folder: Path) -> list[str]:
    """Command lines of all processes that have to do with the folder."""
    lines = (" ".join(each.argv) for each in concerning(str(folder)))
    return [line for line in lines if str(folder) in line]


def left_running(folder: Path) -> list[str]:
    """What still runs after a moment in which the shell that waited for a step sees its end."""
    until = time.monotonic() + 3
    while (found := processes_below(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


# What the scripts on a target may start by name.
PROGRAMS = (
    "awk",
    "cat",
    "cut",
    "date",
    "dd",
    "df",
    "find",
    "flock",
    "getconf",
    "grep",
    "head",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "nproc",
    "readlink",
    "rm",
    "rmdir",
    "sed",
    "setsid",
    "sh",
    "sleep",
    "sort",
    "tail",
    "test",
    "touch",
    "tr",
    "wc",
)


def recorded_programs(folder: Path) -> Path:
    """Put programs into an empty folder that note their names in the file and do their work."""
    started = folder / "started"
    started.touch()
    started.chmod(0o666)
    for name in PROGRAMS:
        script = f'#!/bin/sh\necho {name} >>{started}\nexec {shutil.which(name)} "$@"\n'
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return started


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return [path.name for path in folder.iterdir()]


def watched(director: Director, orders: Iterator[Order], interval_s: float = 0.2):
    async def pulse() -> Order:
        return next(orders)

    async def run():
        try:
            await execute_watched(director, pulse, interval_s=interval_s)
        finally:
            await director.bench.close()
        return director.bench.findings

    return asyncio.run(run())


def when_measuring(director: Director, order: Order) -> Iterator[Order]:
    """Go on until pgbench has run for a second, then the order."""
    since = None
    while True:
        if director.bench.running_step == "pgbench":
            since = since or time.monotonic()
        yield order if since and time.monotonic() - since > 1 else "go_on"


def when_loaded(director: Director, act: Callable[[], object]) -> Iterator[Order]:
    """Do something once pgbench has run for a second, and let the run go on."""
    since, done = None, False
    while True:
        if director.bench.running_step == "pgbench":
            since = since or time.monotonic()
        if since and not done and time.monotonic() - since > 1:
            act()
            done = True
        yield "go_on"
