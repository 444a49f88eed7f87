"""What a campaign survives: real faults at random moments of real campaigns, counted.

    .venv/bin/python -m benchmarks.faults [--tries 20] [--only NAME ...] [--together] [--seed 1]
    .venv/bin/python -m benchmarks.faults --storm 60 --minutes 20 [--machines 3]

Starts a complete instance with two workers, and its own target: OpenSSH behind a line that can
be cut, on a small disk as root. Each try queues a campaign, injects the fault at a moment drawn
from the time that an undisturbed campaign takes, and waits. It is survived when every run has
ended once, with one result if it finished and with its load put on once, when the server is free,
and when the target holds nothing of BenchLab any more and everything else as it was. A fault that
came too late or hit nothing does not count: it is injected into another campaign. Ends with status
1 when a campaign did not survive, or a fault never hit.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchmarks import processes
from benchmarks.injections import FAULTS, Broken, Campaign, Fault
from benchmarks.storm import Storm, possible
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

PATIENCE_SECONDS = 240.0
SECONDS_BETWEEN_LOOKS = 0.5
# Where several faults hit one campaign.
SECONDS_BETWEEN_FAULTS = 3.0
SECONDS_UNTIL_FELT = 2.0
SSHD_STOPS_SECONDS_TOGETHER = 8.0
WRITING_SECONDS_TOGETHER = 2.0
# What is seen is whether each load is put on once, and not how heavy it is.
RATE_TOGETHER = 50
# Campaigns into which a fault is injected until it hits.
MOST_CAMPAIGNS = 3


@dataclass
class Row:
    """A fault's tries, and how they went. `seconds` is the longest that a campaign took.

    `hits` and `missed` count by fault; `impossible` says why a fault cannot be injected here.
    """

    fault: str
    tries: int = 0
    survived: int = 0
    states: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    impossible: dict[str, str] = field(default_factory=dict)


# What ends a cluster may end a standby as well as the primary.
OF_SEVERAL_CLUSTERS = frozenset(
    ("standby_gone", "cluster_gone", "standby_does_not_catch_up", "replication_differs")
)


class Trials:
    """Campaigns on one target of one instance, each with one fault."""

    def __init__(self, broken: Broken, options: argparse.Namespace) -> None:
        self.broken = broken
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        self._queue = own_queue
        self._runs: int = options.runs
        self._clusters: int = options.clusters
        self._random = random.Random(options.seed)
        self._seconds = 0.0
        self._over_at = 0.0

    def calm(self) -> Row:
        """An undisturbed campaign, to see how long one takes; the second one is timed."""
        row = Row("nothing")
        for _time in range(2):
            began = time.monotonic()
            self._try(row, [], runs=self._runs)
            self._seconds = self._over_at - began
        return row

    def of(self, fault: Fault, tries: int) -> Row:
        """Inject a fault that many times, each into a campaign of its own."""
        row = Row(fault.name)
        if self._possible(row, [fault]):
            for _time in range(tries):
                self._until_all_hit(row, [fault], runs=self._runs)
        return row

    def together(self, name: str, faults: Sequence[Fault]) -> Row:
        """Inject several faults into one campaign, one after the other."""
        self._seconds = SECONDS_BETWEEN_FAULTS
        row = Row(name)
        possible = self._possible(row, faults)
        # A fault that fails a run ends it soon, and one of the cluster's the next one as well.
        more = 0 if all(each.is_invisible for each in possible) else len(possible)
        self._until_all_hit(row, possible, runs=len(possible) + more)
        return row

    def _possible(self, row: Row, faults: Sequence[Fault]) -> list[Fault]:
        row.impossible = {each.name: why for each in faults if (why := each.missing(self.broken))}
        return [each for each in faults if each.name not in row.impossible]

    def _until_all_hit(self, row: Row, faults: Sequence[Fault], *, runs: int) -> None:
        """What misses is injected into one more campaign, some times."""
        left = list(faults)
        for _time in range(MOST_CAMPAIGNS):
            if not left:
                return
            left = self._try(row, left, runs=runs if left == faults else self._runs)
        row.wrong += [f"{each.name} did not hit in {MOST_CAMPAIGNS} campaigns" for each in left]

    def _try(self, row: Row, faults: Sequence[Fault], *, runs: int) -> list[Fault]:
        """One campaign with these faults; those that missed."""
        queue, began = self._queue, time.monotonic()
        self.broken.instance.keep_second_worker()
        title = f"{row.fault}, try {row.tries + 1}"[:100]
        hit = faults[0].campaign if len(faults) == 1 else Campaign(rate=RATE_TOGETHER)
        campaign = queue.queue(
            title, self.broken.server_id, repeats=runs, clusters=self._clusters, **vars(hit)
        )
        with processes.counted(self.broken.target.base) as counted:
            missed = [
                fault for fault in faults if not self._inject(fault, is_alone=len(faults) == 1)
            ]
            until = time.monotonic() + PATIENCE_SECONDS
            self._wait(lambda: queue.outcome(campaign, planned=runs).is_over, until)
            self._over_at = time.monotonic()
        for fault in faults:
            fault.mend(self.broken)
        self._wait(lambda: queue.is_idle(self.broken.server_id), until)
        seen = queue.outcome(campaign, planned=runs)
        wrong = [*seen.wrong, *self._harm(), *_misloaded(counted, seen)]
        if not seen.is_over:
            wrong.append(f"not ended after {PATIENCE_SECONDS:.0f} s")
        allowed = frozenset[str]().union(*(fault.codes for fault in faults))
        if self._clusters > 1 and allowed:
            allowed |= OF_SEVERAL_CLUSTERS
        if unexpected := seen.codes.keys() - allowed:
            wrong.append(f"a run ended with {', '.join(sorted(unexpected))}")
        row.missed.update(fault.name for fault in missed)
        row.hits.update(fault.name for fault in faults if fault not in missed)
        _note(row, seen, wrong, time.monotonic() - began, is_try=len(missed) < max(len(faults), 1))
        return missed

    def _inject(self, fault: Fault, *, is_alone: bool) -> bool:
        """Whether it hit a campaign that went on."""
        if not fault.waits_itself:
            time.sleep(self._random.uniform(0, self._seconds))
        self.broken.instance.keep_second_worker()
        began = time.monotonic()
        hit = not self._queue.is_over() and fault.inject(self.broken, self._random)
        if hit and not is_alone:
            time.sleep(SECONDS_UNTIL_FELT)
            fault.mend(self.broken)
        told = "hit" if hit else "missed"
        print(f"    {fault.name} {told} within {time.monotonic() - began:.0f} s", flush=True)
        return hit

    def _wait(self, condition: Callable[[], bool], until: float) -> None:
        while not condition() and time.monotonic() < until:
            self.broken.instance.keep_second_worker()
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _harm(self) -> list[str]:
        """What was left on the target, or changed there."""
        target, found = self.broken.target, []
        if left := target.leftovers():
            found.append(f"left on the target: {left}")
        if not target.canary.is_as_it_was():
            found.append("the canary or the files of others have changed")
        return found


def _note(row: Row, seen: Any, wrong: list[str], seconds: float, *, is_try: bool) -> None:
    """Count a campaign; one that nothing hit does not count, but must be right as well."""
    if is_try:
        row.tries += 1
        row.survived += not wrong
        row.states.update(seen.states)
        row.codes.update(seen.codes)
        row.seconds = max(row.seconds, seconds)
    row.wrong += [f"try {row.tries}: {each}" for each in wrong]
    print(
        f"{row.fault}, try {row.tries}: {seen.states} {seen.codes} in {seconds:.0f} s", flush=True
    )
    for each in wrong:
        print(f"    {each}", flush=True)


def _misloaded(counted: processes.Loads, seen: Any) -> list[str]:
    """Loads that were put on twice, or for no attempt."""
    wrong = [f"the load of {name} was put on more than once" for name in counted.doubled]
    if counted.number > seen.attempts:
        wrong.append(f"{counted.number} loads for {seen.attempts} attempts")
    if counted.number < seen.states.get("finished", 0):
        wrong.append(f"{counted.number} loads for {seen.states['finished']} finished runs")
    return wrong


@contextmanager
def _broken(options: argparse.Namespace) -> Iterator[list[Broken]]:
    """An instance and its targets; all are removed afterwards."""
    folder = options.folder or Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance = WholeInstance(folder)
    targets: list[Target] = []
    machines = []
    try:
        instance.start()
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
        from runs.services.servers import servers  # noqa: PLC0415

        account = service_account()
        bindir = postgresql_binaries((instance.var / "services").resolve(), account).postgresql18
        for number in range(options.machines if options.storm else 1):
            place = folder / f"m{number}"
            place.mkdir(mode=0o755)
            clusters = 3 if options.storm else options.clusters
            target = Target(place, account, bindir, options.faketime, clusters=clusters)
            targets.append(target)
            line = target.start(servers.public_key())
            server_id = own_queue.register(
                f"To be broken {number + 1}",
                port=line.port,
                username=target.login,
                base_dir=str(target.base),
                bindirs=[str(bindir)],
            )
            broken = Broken(instance, target, line, server_id)
            if options.together or options.storm:
                broken = replace(
                    broken,
                    frozen_s=SSHD_STOPS_SECONDS_TOGETHER,
                    writing_s=WRITING_SECONDS_TOGETHER,
                )
            machines.append(broken)
        yield machines
    finally:
        instance.stop()
        for target in targets:
            target.stop()
        if options.keep_logs:
            shutil.copytree(instance.var / "logs", options.keep_logs, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def table(rows: Sequence[Row]) -> str:
    """The result as Markdown."""
    lines = [
        "| fault | tries | survived | runs | ended with | longest |",
        "|---|--:|--:|---|---|--:|",
    ]
    for row in rows:
        states = ", ".join(f"{number} {state}" for state, number in sorted(row.states.items()))
        codes = ", ".join(f"`{code}` {number}" for code, number in sorted(row.codes.items()))
        told = states or ", ".join(row.impossible.values())
        counted = f"{row.tries} | {row.survived} | {told} | {codes}"
        lines.append(f"| {row.fault} | {counted} | {row.seconds:.0f} s |")
    return "\n".join(lines)


def _rows(trials: Trials, options: argparse.Namespace) -> Iterator[Row]:
    chosen = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    if options.together:
        yield trials.together("no run fails", [each for each in chosen if each.is_invisible])
        yield trials.together("runs may fail", [each for each in chosen if not each.is_invisible])
    else:
        yield trials.calm()
        yield from (trials.of(fault, options.tries) for fault in chosen)


def main() -> None:
    """Inject, count and print."""
    options = _options()
    rows: list[Row] = []
    with _broken(options) as (broken, *others):
        if options.storm:
            storm = Storm([broken, *others], possible(broken), options.seed)
            storm.rage(options.storm, 60 * options.minutes)
            print(storm.table(), *storm.wrong, sep="\n")
            raise SystemExit(1 if storm.wrong else 0)
        for row in _rows(Trials(broken, options), options):
            rows.append(row)
            if options.json:
                options.json.write_text(json.dumps([vars(row) for row in rows]))
    print(table(rows))
    if any(row.wrong for row in rows):
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=20, help="of each fault")
    parser.add_argument("--runs", type=int, default=2, help="of each campaign")
    parser.add_argument(
        "--clusters", type=int, default=1, help="of each run: a primary and standbys"
    )
    parser.add_argument("--only", nargs="*", help=", ".join(fault.name for fault in FAULTS))
    parser.add_argument(
        "--together", action="store_true", help="each once, in two campaigns with all of them"
    )
    parser.add_argument("--storm", type=int, default=0, help="as many, several at once")
    parser.add_argument("--minutes", type=float, default=20, help="of a storm, at most")
    parser.add_argument("--machines", type=int, default=3, help="of a storm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--folder", type=Path, help="where instance and target live, until the end")
    parser.add_argument("--keep-logs", type=Path, help="a folder for the instance's logs")
    parser.add_argument("--faketime", default="", help="libfaketimeMT.so.1, where it is elsewhere")
    return parser.parse_args()


if __name__ == "__main__":
    main()
