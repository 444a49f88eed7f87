"""How fast a transaction log of pgbench (`-l`) is read, on one core.

    .venv/bin/python -m benchmarks.pgbench_log [--lines 5000000] [--rounds 5] [--log FILE]

Makes a log like that of `pgbench -S -c 16 -l` (or takes a file), and in each round counts its lines
with `wc -l`, passes over its bytes with numpy once, and reads it. Prints the lines a second of
each, by the best CPU time of the rounds, and the ratios: wall times change with the machine and its
load, ratios of the same run hardly. The budget is 2,000,000 lines a second.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from runs.tools.pgbench.transaction_log import read_transaction_log

BUDGET = 2_000_000


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        path = options.log or _made(Path(folder) / "pgbench_log.1", options.lines)
        content = path.read_bytes()
        lines = content.count(b"\n")
        seconds = _best(
            options.rounds,
            {
                "wc -l": lambda: _count(path),
                "numpy pass": lambda: np.count_nonzero(np.frombuffer(content, np.uint8) == 10),
                "read": lambda: read_transaction_log({"log": content}),
            },
        )
    print(f"{lines:,} lines, {len(content) / 1e6:.0f} MB, {options.rounds} rounds")
    for name, taken in seconds.items():
        rate = lines / max(taken, 1e-9)
        ratio = taken / max(seconds["numpy pass"], 1e-9)
        print(f"{name:>12}: {rate:>14,.0f} lines/s, {ratio:6.1f} times the numpy pass")
    print(f"  the budget: {lines / seconds['read'] / BUDGET:.1f} times {BUDGET:,} lines/s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--log", type=Path)
    return parser.parse_args()


def _made(path: Path, lines: int) -> Path:
    """Write a log with latencies of 0.02 to 50 ms, 40,000 transactions a second."""
    random = np.random.default_rng(1)
    latencies = np.minimum(random.lognormal(5, 1.2, lines), 50_000).astype(int).tolist()
    ends = np.cumsum(random.integers(1, 50, lines)).tolist()
    with path.open("w") as log:
        for number, (latency, end) in enumerate(zip(latencies, ends, strict=True)):
            seconds, microseconds = divmod(end, 1_000_000)
            log.write(
                f"{number % 16} {number // 16 + 1} {latency} 0 "
                f"{1_795_000_000 + seconds} {microseconds}\n"
            )
    return path


def _best(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least CPU seconds of each work; they take turns, so that all see the same load."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            before = _cpu_seconds()
            work()
            best[name] = min(best[name], _cpu_seconds() - before)
    return best


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _count(path: Path) -> None:
    subprocess.run(["wc", "-l", str(path)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
