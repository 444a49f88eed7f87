"""What a campaign survives: real faults at random moments of real campaigns, counted.

    .venv/bin/python -m benchmarks.faults [--tries 20] [--only NAME ...] [--together] [--seed 1]

Starts a whole instance with two workers, and a target of its own: OpenSSH behind a line that can
be cut, on a small disk as root. Each try queues a campaign, injects the fault at a moment drawn
from the time that an undisturbed campaign takes, and waits. It is survived when every run has
ended once, with one result if it finished, when the server is free, and when the target holds
nothing of BenchLab any more and everything else as it was. Ends with status 1 when one was not.
"""

import argparse
import json
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchmarks.injections import FAULTS, SSHD_STOPS_SECONDS, Broken, Campaign, Fault
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

PATIENCE_SECONDS = 240.0
SECONDS_BETWEEN_LOOKS = 0.3
# Where several faults hit one campaign.
SECONDS_BETWEEN_FAULTS = 4.0
SECONDS_UNTIL_FELT = 3.0
SSHD_STOPS_SECONDS_TOGETHER = 8.0


@dataclass
class Row:
    """A fault's tries, and how they went. `seconds` is the longest that a campaign took."""

    fault: str
    tries: int = 0
    survived: int = 0
    states: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""


class Trials:
    """Campaigns on one target of one instance, each with one fault."""

    def __init__(self, broken: Broken, options: argparse.Namespace) -> None:
        self.broken = broken
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        self._queue = own_queue
        self._runs: int = options.runs
        self._random = random.Random(options.seed)
        self._seconds = 0.0

    def calm(self) -> Row:
        """An undisturbed campaign, which tells how long one takes; the second one is timed."""
        row = Row("nothing")
        for _time in range(2):
            began = time.monotonic()
            self._try(row, [], runs=self._runs)
            self._seconds = time.monotonic() - began
        return row

    def of(self, fault: Fault, tries: int) -> Row:
        """Inject a fault that many times, each into a campaign of its own."""
        row = Row(fault.name, skipped=fault.missing(self.broken))
        if not row.skipped:
            for _time in range(tries):
                self._try(row, [fault], runs=self._runs)
        return row

    def together(self, name: str, faults: Sequence[Fault]) -> Row:
        """Inject several faults into one campaign, one after the other."""
        self._seconds = SECONDS_BETWEEN_FAULTS
        possible = [fault for fault in faults if not fault.missing(self.broken)]
        row = Row(f"{name}: {', '.join(fault.name for fault in possible)}")
        self._try(row, possible, runs=len(possible) + 1)
        return row

    def _try(self, row: Row, faults: Sequence[Fault], *, runs: int) -> None:
        queue, began = self._queue, time.monotonic()
        self.broken.instance.keep_second_worker()
        title = f"{row.fault}, try {row.tries + 1}"[:100]
        hit = faults[0].campaign if len(faults) == 1 else Campaign()
        campaign = queue.queue(title, self.broken.server_id, repeats=runs, **vars(hit))
        with _loads_counted(self.broken.target) as loads:
            for fault in faults:
                self._inject(fault, is_alone=len(faults) == 1)
            until = time.monotonic() + PATIENCE_SECONDS
            self._wait(lambda: queue.outcome(campaign, planned=runs).is_over, until)
        for fault in faults:
            fault.mend(self.broken)
        self._wait(lambda: queue.is_idle(self.broken.server_id), until)
        seen = queue.outcome(campaign, planned=runs)
        wrong = [*seen.wrong, *self._harm()]
        if len(loads) > seen.attempts:
            wrong.append(f"{len(loads)} loads for {seen.attempts} attempts")
        if not seen.is_over:
            wrong.append(f"not ended after {PATIENCE_SECONDS:.0f} s")
        allowed = frozenset[str]().union(*(fault.codes for fault in faults))
        if unexpected := seen.codes.keys() - allowed:
            wrong.append(f"a run ended with {', '.join(sorted(unexpected))}")
        _note(row, seen, wrong, time.monotonic() - began)

    def _inject(self, fault: Fault, *, is_alone: bool) -> None:
        if not fault.waits_itself:
            time.sleep(self._random.uniform(0, self._seconds))
        self.broken.instance.keep_second_worker()
        fault.inject(self.broken, self._random)
        if not is_alone:
            time.sleep(SECONDS_UNTIL_FELT)
            fault.mend(self.broken)

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


def _note(row: Row, seen: Any, wrong: list[str], seconds: float) -> None:
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


@contextmanager
def _loads_counted(target: Target) -> Iterator[set[int]]:
    """The pgbench processes that put load on meanwhile, by number."""
    seen: set[int] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            seen.update(target.load_generators())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@contextmanager
def _broken(options: argparse.Namespace) -> Iterator[Broken]:
    """An instance and its target, and nothing of both afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance = WholeInstance(folder)
    target = None
    try:
        instance.start()
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
        from runs.services import servers  # noqa: PLC0415

        own_queue.cancel_first_campaign()
        account = service_account()
        bindir = postgresql_binaries((instance.var / "services").resolve(), account).postgresql18
        target = Target(folder, account, bindir, options.faketime)
        line = target.start(servers.public_key())
        server_id = own_queue.register(
            "To be broken",
            port=line.port,
            username=target.login,
            base_dir=str(target.base),
            bindirs=[str(bindir)],
        )
        frozen_s = SSHD_STOPS_SECONDS_TOGETHER if options.together else SSHD_STOPS_SECONDS
        yield Broken(instance, target, line, server_id, frozen_s)
    finally:
        instance.stop()
        if target is not None:
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
        counted = f"{row.tries} | {row.survived} | {row.skipped or states} | {codes}"
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
    with _broken(options) as broken:
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
    parser.add_argument("--only", nargs="*", help=", ".join(fault.name for fault in FAULTS))
    parser.add_argument(
        "--together", action="store_true", help="each once, in two campaigns with all of them"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--keep-logs", type=Path, help="a folder for the instance's logs")
    parser.add_argument("--faketime", default="", help="libfaketimeMT.so.1, where it is elsewhere")
    return parser.parse_args()


if __name__ == "__main__":
    main()
