"""Is BenchLab's figure the one that a person gets by hand, on the same files?

    .venv/bin/python -m benchmarks.by_hand [--rounds 60] [--seconds 5] [--within 2]

Starts a complete instance and an OpenSSH server as its target. One run is executed; what it
prepared is copied. Then each round measures both sides in a drawn order: BenchLab's run
(fixed-point read, one client, with its monitors, probes and logs), and by hand the copy: started,
read once, and pgbench with nothing but the script. Prints the ratio of transactions a second,
BenchLab's by the hand's, with its 95 % interval (Student's t on logarithms); it ends when that is
`--within` percent to both sides, or after `--rounds`, and prints how many runs have which
certificate: on an idle machine all should be valid.
"""

import argparse
import math
import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchlab.embedded.account import Account
from benchmarks import overhead
from benchmarks.target import Target
from benchmarks.whole_instance import with_targets
from runs.analysis.trend import margin

LEAST_ROUNDS = 10
PATIENCE_SECONDS = 90.0
SECONDS_BETWEEN_LOOKS = 0.2
TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


class ByHand:
    """The copy of a prepared cluster, and what a person types to measure it."""

    def __init__(self, folder: Path, account: Account, programs: Path, script: str):
        self.folder, self.account, self.programs = folder, account, programs
        self.data = folder / "data"
        self.script = folder / "script.sql"
        self.script.write_text(script)

    def measure(self, seconds: int) -> float:
        """Start, read the table once, measure, stop; transactions a second."""
        server = ["pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w"]
        self._serve([*server, "-o", f"-p 5432 -k {self.folder}", "start"])
        there = ["-h", str(self.folder), "-U", "benchlab"]
        try:
            read_once = (
                "SET enable_seqscan = off; SET enable_bitmapscan = off;"
                " SELECT count(abalance) FROM pgbench_accounts WHERE aid > 0"
            )
            self._run(["psql", "-X", "-q", *there, "-c", read_once, "benchlab"])
            load = ["-n", "-c", "1", "-T", str(seconds), "-s", "1", "-f"]
            printed = self._run(
                ["pgbench", *load, str(self.script), *there, "benchlab"]
            )
        finally:
            self._serve([*server, "-m", "fast", "stop"])
        figure = TPS.search(printed)
        if figure is None:
            raise SystemExit(f"pgbench printed no figure: {printed}")
        return float(figure[1])

    def _serve(self, command: Sequence[str]) -> None:
        program, *arguments = command
        # A server that goes on keeps what it was started with: no pipe that somebody reads.
        if not self.account.succeeds(str(self.programs / program), *arguments):
            raise SystemExit(f"{' '.join(command)} failed, see {self.folder}/log")

    def _run(self, command: Sequence[str]) -> str:
        program, *arguments = command
        return _printed(self.account, str(self.programs / program), *arguments)


def main() -> None:
    """Measure in turn, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--rounds", type=int, default=60, help="at most")
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument("--within", type=float, default=2.0, help="percent")
    options = parser.parse_args()
    logs: list[float] = []
    with with_targets(None, 1, is_victim=False) as (_instance, [(target, server_id)]):
        _measure_by_benchlab(server_id, options.seconds)
        by_hand = _copied(target)
        print(f"load before: {os.getloadavg()}", flush=True)
        for number in range(1, options.rounds + 1):
            figures = _round(by_hand, server_id, options.seconds)
            logs.append(math.log(figures["benchlab"] / figures["hand"]))
            told = ", ".join(f"{side} {tps:.1f}" for side, tps in figures.items())
            print(f"round {number}: {told}; {_told(logs)}", flush=True)
            if number >= LEAST_ROUNDS and _reach(logs) < math.log1p(
                options.within / 100
            ):
                break
        certificates = _certificates(server_id)
    print(f"load after: {os.getloadavg()}")
    for certificate, count in certificates.most_common():
        print(f"{count} runs of BenchLab: {certificate}")
    print(f"BenchLab / by hand, {len(logs)} rounds: {_told(logs)}")


def _round(by_hand: ByHand, server_id: int, seconds: int) -> dict[str, float]:
    """Both sides, in a drawn order."""
    sides = {
        "benchlab": lambda: _measure_by_benchlab(server_id, seconds),
        "hand": lambda: by_hand.measure(seconds),
    }
    order = random.sample(list(sides), len(sides))
    return {side: sides[side]() for side in order}


def _measure_by_benchlab(server_id: int, seconds: int) -> float:
    """One run of a campaign; transactions a second."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
    from runs.models import Measurement  # noqa: PLC0415

    campaign = own_queue.queue(
        "By hand", server_id, repeats=1, duration=seconds, remeasures=0
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while not own_queue.is_over() and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return Measurement.objects.get(run__campaign=campaign, metric__name="tps").value


def _certificates(server_id: int) -> Counter[str]:
    from runs.models import Run  # noqa: PLC0415 - Django is set up by the instance

    return overhead.counted(Run.objects.filter(server=server_id))


def _copied(target: Target) -> ByHand:
    """What the first run prepared, beside BenchLab's folder on the same disk."""
    from runs.models import Command  # noqa: PLC0415 - Django is set up by the instance

    first = Command.objects.filter(step__in=("initdb", "write-script"))
    initdb, script = (first.filter(step=step)[0] for step in ("initdb", "write-script"))
    folder = target.disk / "hand"
    folder.mkdir()
    target.account.own(folder)
    data = next(target.base.glob("clusters/*/data"))
    _printed(target.account, "cp", "-a", str(data), str(folder / "data"))
    programs = Path(initdb.argv[0]).parent
    return ByHand(folder, target.account, programs, script.stdin)


def _printed(account: Account, *command: str) -> str:
    status, printed = account.printed(*command)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}: {printed}")
    return printed


def _reach(logs: Sequence[float]) -> float:
    """Half the 95 % interval of their mean."""
    return margin([(statistics.variance(logs) / len(logs), len(logs) - 1)])


def _told(logs: Sequence[float]) -> str:
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return f"{math.exp(middle):.3f}"
    low, high = middle - _reach(logs), middle + _reach(logs)
    return f"{math.exp(middle):.3f} ({math.exp(low):.3f} to {math.exp(high):.3f})"


if __name__ == "__main__":
    main()
