"""What a campaign survives: real faults at random moments of real campaigns, counted.

    .venv/bin/python -m benchmarks.faults [--tries 20] [--only NAME ...] [--seed 1] [--json FILE]

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchmarks.injections import FAULTS, Broken, Fault
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

PATIENCE_SECONDS = 240.0
SECONDS_BETWEEN_LOOKS = 0.3


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
        self._repeats: int = options.repeats
        self._random = random.Random(options.seed)
        self._calm_seconds = 0.0

    def calm(self) -> Row:
        """An undisturbed campaign, which tells how long one takes; the second one is timed."""
        row = Row("nothing")
        for _time in range(2):
            began = time.monotonic()
            self._try(row, None)
            self._calm_seconds = time.monotonic() - began
        return row

    def of(self, fault: Fault, tries: int) -> Row:
        """Inject a fault that many times."""
        row = Row(fault.name, skipped=fault.missing(self.broken))
        if not row.skipped:
            for _time in range(tries):
                self._try(row, fault)
        return row

    def _try(self, row: Row, fault: Fault | None) -> None:
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        broken, began = self.broken, time.monotonic()
        broken.instance.keep_second_worker()
        title = f"{row.fault}, try {row.tries + 1}"
        campaign = own_queue.queue(title, broken.server_id, repeats=self._repeats, duration=2)
        with _loads_counted(broken.target) as loads:
            if fault is not None:
                moment = self._random.uniform(0, self._calm_seconds)
                time.sleep(moment)
                fault.inject(broken, self._random)
            until = time.monotonic() + PATIENCE_SECONDS
            while True:
                broken.instance.keep_second_worker()
                seen = own_queue.outcome(campaign, planned=self._repeats)
                if seen.is_over or time.monotonic() > until:
                    break
                time.sleep(SECONDS_BETWEEN_LOOKS)
        if fault is not None:
            fault.mend(broken)
        while not own_queue.is_idle(broken.server_id) and time.monotonic() < until:
            broken.instance.keep_second_worker()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        wrong = [*seen.wrong, *self._harm(fault, seen.states, seen.attempts, loads)]
        if not seen.is_over:
            wrong.append(f"not ended after {PATIENCE_SECONDS:.0f} s: {seen.states}")
        _note(row, seen, wrong, time.monotonic() - began)

    def _harm(
        self, fault: Fault | None, states: dict[str, int], attempts: int, loads: set[int]
    ) -> list[str]:
        target, found = self.broken.target, []
        if left := target.leftovers():
            found.append(f"left on the target: {left}")
        if not target.canary.is_as_it_was():
            found.append("the canary or the files of others have changed")
        if len(loads) > attempts:
            found.append(f"{len(loads)} loads for {attempts} attempts")
        if (fault is None or fault.is_invisible) and set(states) != {"finished"}:
            found.append(f"a run did not finish: {states}")
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
        yield Broken(instance, target, line, server_id)
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


def main() -> None:
    """Inject, count and print."""
    options = _options()
    rows: list[Row] = []
    chosen = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    with _broken(options) as broken:
        trials = Trials(broken, options)
        rows.append(trials.calm())
        for fault in chosen:
            rows.append(trials.of(fault, options.tries))
            if options.json:
                options.json.write_text(json.dumps([asdict(row) for row in rows]))
    print(table(rows))
    if any(row.wrong for row in rows):
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=20, help="of each fault")
    parser.add_argument("--repeats", type=int, default=2, help="runs of each campaign")
    parser.add_argument("--only", nargs="*", help=", ".join(fault.name for fault in FAULTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--keep-logs", type=Path, help="a folder for the instance's logs")
    parser.add_argument("--faketime", default="", help="libfaketimeMT.so.1, where it is elsewhere")
    return parser.parse_args()


if __name__ == "__main__":
    main()
