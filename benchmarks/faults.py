"""What a campaign survives: real faults at random moments of real campaigns, counted.

    .venv/bin/python -m benchmarks.faults [--only NAME ...] [--seed 1]
    .venv/bin/python -m benchmarks.faults --storm 60 --minutes 20 [--machines 3]

Starts a complete instance with two workers, and its own target: OpenSSH behind a line that can
be cut, on a small disk as root. Each fault is injected once, into two campaigns: first those of
which no run may fail, then the others. A campaign is survived when every run has ended once, with
one result if it finished and with its load put on once, when the server is free, and when the
target holds nothing of BenchLab any more and everything else as it was. A fault that came too late
or hit nothing does not count: it is injected into another campaign. Ends with status 1 when a
campaign did not survive, or a fault never hit.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.injections import FAULTS, Broken, Fault
from benchmarks.storm_faults import OF_STORMS
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance, with_targets

PATIENCE_SECONDS = 240.0
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_FAULTS = 3.0
SECONDS_UNTIL_FELT = 2.0
# What is seen is whether each load is put on once, and not how heavy it is.
RATE = 50
# Of a campaign into which is injected again what has missed.
FEW_RUNS = 2
# Campaigns into which a fault is injected until it hits.
MOST_CAMPAIGNS = 3


@dataclass
class Row:
    """How campaigns with some faults went.

    `hits` and `missed` count by fault; `impossible` says why a fault cannot be injected here.
    """

    name: str
    tries: int = 0
    survived: int = 0
    states: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    impossible: dict[str, str] = field(default_factory=dict)


class Trials:
    """Campaigns on one target of one instance."""

    def __init__(self, broken: Broken, seed: int) -> None:
        self.broken = broken
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        self._queue = own_queue
        self._random = random.Random(seed)

    def of(self, name: str, faults: Sequence[Fault]) -> Row:
        """Inject faults into one campaign, one after the other; what misses into further ones."""
        impossible = {
            each.name: why for each in faults if (why := each.missing(self.broken))
        }
        row = Row(name, impossible=impossible)
        left = [each for each in faults if each.name not in impossible]
        # A fault that fails a run ends it soon, and one of the cluster's the next one as well.
        more = 0 if all(each.is_invisible for each in left) else len(left)
        runs = len(left) + more
        for _time in range(MOST_CAMPAIGNS):
            if left:
                left, runs = self._try(row, left, runs), FEW_RUNS
        row.wrong += [
            f"{each.name} did not hit in {MOST_CAMPAIGNS} campaigns" for each in left
        ]
        return row

    def _try(self, row: Row, faults: Sequence[Fault], runs: int) -> list[Fault]:
        """One campaign with these faults; those that missed."""
        queue, server, began = self._queue, self.broken.server_id, time.monotonic()
        title = f"{row.name}, try {row.tries + 1}"
        campaign = queue.queue(title, server, repeats=runs, rate=RATE)
        with processes.counted(self.broken.target.base) as counted:
            missed = [fault for fault in faults if not self._inject(fault)]
            until = time.monotonic() + PATIENCE_SECONDS
            self._wait(queue.is_over, until)
        is_over = queue.is_over()
        self._wait(lambda: queue.is_idle(server), until)
        seen = queue.outcome(campaign_id=campaign)
        wrong = [*seen.wrong, *self.broken.harm(), *_misloaded(counted, seen)]
        if not is_over:
            wrong.append(f"not ended after {PATIENCE_SECONDS:.0f} s")
        if seen.states.total() != runs:
            wrong.append(f"{seen.states.total()} runs instead of {runs}")
        allowed = frozenset[str]().union(*(fault.codes for fault in faults))
        if unexpected := seen.codes.keys() - allowed:
            wrong.append(f"a run ended with {', '.join(sorted(unexpected))}")
        row.missed.update(fault.name for fault in missed)
        row.hits.update(fault.name for fault in faults if fault not in missed)
        # One that nothing hit does not count, but must be right as well.
        is_try = len(missed) < len(faults)
        _note(row, seen, wrong, time.monotonic() - began, is_try=is_try)
        return missed

    def _inject(self, fault: Fault) -> bool:
        """Whether it hit a campaign that went on."""
        if not fault.waits_itself:
            time.sleep(self._random.uniform(0, SECONDS_BETWEEN_FAULTS))
        hit = not self._queue.is_over() and fault.inject(self.broken, self._random)
        if hit:
            time.sleep(SECONDS_UNTIL_FELT)
        fault.mend(self.broken)
        print(f"    {fault.name} {'hit' if hit else 'missed'}", flush=True)
        return hit

    def _wait(self, condition: Callable[[], bool], until: float) -> None:
        while not condition() and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _note(
    row: Row, seen: Any, wrong: list[str], seconds: float, *, is_try: bool
) -> None:
    """Count a campaign."""
    if is_try:
        row.tries += 1
        row.survived += not wrong
        row.states.update(seen.states)
        row.codes.update(seen.codes)
    row.wrong += [f"try {row.tries}: {each}" for each in wrong]
    told = f"{row.name}, try {row.tries}: {dict(seen.states)} {dict(seen.codes)}"
    print(f"{told} in {seconds:.0f} s", *wrong, sep="\n    ", flush=True)


def _misloaded(counted: processes.Loads, seen: Any) -> list[str]:
    """Loads that were put on twice, or for no attempt."""
    wrong = [
        f"the load of {name} was put on more than once" for name in counted.doubled
    ]
    if counted.number > seen.attempts:
        wrong.append(f"{counted.number} loads for {seen.attempts} attempts")
    if counted.number < seen.states["finished"]:
        wrong.append(
            f"{counted.number} loads for {seen.states['finished']} finished runs"
        )
    return wrong


def table(rows: Sequence[Row]) -> str:
    """The result as Markdown."""
    lines = [
        "| faults | tries | survived | runs | ended with |",
        "|---|--:|--:|---|---|",
    ]
    for row in rows:
        states = ", ".join(
            f"{number} {state}" for state, number in sorted(row.states.items())
        )
        codes = ", ".join(
            f"`{code}` {number}" for code, number in sorted(row.codes.items())
        )
        lines.append(
            f"| {row.name} | {row.tries} | {row.survived} | {states} | {codes} |"
        )
        lines += [f"| {name} | | | {why} | |" for name, why in row.impossible.items()]
    return "\n".join(lines)


def main() -> None:
    """Inject, count and print."""
    options = _options()
    if options.storm:
        raise SystemExit(_storm(options))
    with with_targets(options.folder, 1) as (instance, targets):
        [(target, server_id)] = targets
        trials = Trials(Broken(instance, target, server_id), options.seed)
        chosen = [
            fault for fault in FAULTS if not options.only or fault.name in options.only
        ]
        rows = [
            trials.of(
                name, [each for each in chosen if each.is_invisible == is_invisible]
            )
            for name, is_invisible in (("no run fails", True), ("runs may fail", False))
        ]
    if options.json:
        options.json.write_text(json.dumps([vars(row) for row in rows]))
    print(table(rows))
    raise SystemExit(any(row.wrong for row in rows))


# By which names the machines of a storm are registered.
NAME = "target-{number}.storm.test"
OWN_MOUNTS = "STORM_HAS_OWN_MOUNTS"


def _storm(options: argparse.Namespace) -> int:
    """Let it rage; 1 if something was wrong."""
    names = _own_names(options.machines)
    addresses = _addresses(options.machines) if names else {}
    with ExitStack() as stack:
        if names:
            stack.callback(shutil.rmtree, names.parent)
        instance, targets = stack.enter_context(
            with_targets(
                options.folder, options.machines, clusters=3, addresses=addresses
            )
        )
        from benchmarks.storm import Storm  # noqa: PLC0415 - needs Django set up

        machines = _neighbours(instance, targets, names, addresses)
        chosen = [
            fault
            for fault in OF_STORMS
            if not options.only or fault.name in options.only
        ]
        possible = [
            fault
            for fault in chosen
            if not all(fault.missing(machine) for machine in machines)
        ]
        storm = Storm(machines, possible, options.seed)
        storm.rage(options.storm, 60 * options.minutes)
        print(storm.table(), *storm.wrong, sep="\n", flush=True)
        if options.keep:
            input("Enter ends it.")
        return int(bool(storm.wrong))


def _addresses(number: int) -> dict[int, str]:
    return {place: NAME.format(number=place + 1) for place in range(number)}


def _neighbours(
    instance: WholeInstance,
    targets: Sequence[tuple[Target, int]],
    names: Path | None,
    addresses: Mapping[int, str],
) -> list[Broken]:
    machines = [
        Broken(instance, target, server_id, name=addresses.get(number, ""), names=names)
        for number, (target, server_id) in enumerate(targets)
    ]
    for machine in machines:
        machine.neighbours.extend(each for each in machines if each is not machine)
    return machines


def _own_names(number: int) -> Path | None:
    """A file of names that this process and what it starts see as /etc/hosts; None without root.

    For that it executes itself again, in a mount namespace of its own.
    """
    if os.getuid() != 0:
        return None
    if OWN_MOUNTS not in os.environ:
        os.environ[OWN_MOUNTS] = "1"
        module = [sys.executable, "-m", "benchmarks.faults", *sys.argv[1:]]
        words = ["unshare", "--mount", "--propagation", "private", *module]
        os.execvp(words[0], words)
    names = Path(tempfile.mkdtemp(prefix="bl-names-"), "hosts")
    names.parent.chmod(0o755)
    lines = [f"127.0.0.1 {name}\n" for name in _addresses(number).values()]
    names.write_text("".join([Path("/etc/hosts").read_text(), "\n", *lines]))
    subprocess.run(["mount", "--bind", str(names), "/etc/hosts"], check=True)
    return names


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "--only", nargs="*", help=", ".join(fault.name for fault in OF_STORMS)
    )
    parser.add_argument("--storm", type=int, default=0, help="as many, several at once")
    parser.add_argument("--minutes", type=float, default=20, help="of a storm, at most")
    parser.add_argument("--machines", type=int, default=3, help="of a storm")
    parser.add_argument("--keep", action="store_true", help="wait before the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument(
        "--folder", type=Path, help="where instance and target live, until the end"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
