"""What verdicts of benchlab-pair are worth on this machine: real pgbench, with and without a loss.

    .venv/bin/python -m benchmarks.pairs [--pairs 200] [--planted 50] [--rounds 12] [--seconds 2]

First the loss is calibrated: the head's transactions do more work, and long slices in turn say how
much fewer there are; the work is corrected until that is `--loss` percent, or its 95 % interval
has that, and the measured loss is printed. Then benchlab-pair judges pairs as a user would start
it: `--pairs` of a load against itself, and among them `--planted` with the loss. One table at the
end, also after Ctrl-C or SIGTERM. A pair takes at most 2 x rounds x seconds: up to three and a half
hours in all, of an otherwise idle machine. PostgreSQL is that of the packages, or of --bindir.
"""

import argparse
import contextlib
import json
import math
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

SCRIPT = """\
\\set aid random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT count(*) FROM generate_series(1, :work);
"""
BASE_WORK = 2000
CALIBRATIONS = 4
# How far from the wanted loss, in percent of it, a calibration may be.
CLOSE = 5.0
SLICE_SECONDS = 5
SETTINGS = {"shared_buffers": "128MB", "fsync": "off", "autovacuum": "off"}
SEEN = "3%"


@dataclass(frozen=True)
class Loss:
    """A measured loss of transactions, in percent, with its 95 % interval."""

    percent: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.percent:.2f} % ({self.low:.2f} to {self.high:.2f})"


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
    parser.add_argument(
        "--calibration", type=int, default=300, help="seconds of each measurement"
    )
    parser.add_argument("--bindir", type=Path, help="PostgreSQL's programs")
    options = parser.parse_args()
    planted = options.pairs // 4 if options.planted is None else options.planted
    same, slower = Judged(), Judged()
    loss: Loss | None = None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bl-pairs-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with contextlib.suppress(KeyboardInterrupt), _load(folder, options.bindir):
            work, loss = _calibrated(folder, options)
            print(f"The planted loss is {loss}, by generate_series up to {work}")
            print(
                f"in place of {BASE_WORK}. Load before: {_load_average()}", flush=True
            )
            for number, is_planted in enumerate(_order(options.pairs, planted), 1):
                judged = slower if is_planted else same
                head = work if is_planted else BASE_WORK
                _judge(judged, folder, head, options)
                _tell(
                    f"pair {number} of {options.pairs + planted}: "
                    f"same {dict(same.verdicts)}, planted {dict(slower.verdicts)}"
                )
    _print(same, slower, loss)


def _print(same: Judged, slower: Judged, loss: Loss | None) -> None:
    print(f"Load after: {_load_average()}\n")
    print("| head | pairs | slower (95 %) | faster | neither | rounds | shows |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, judged in (("the same", same), (f"loses {loss}", slower)):
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


# The calibration


def _calibrated(folder: Path, options: argparse.Namespace) -> tuple[int, Loss]:
    """The work with which so many percent of the transactions are lost, and the measured loss."""
    wanted = options.loss / (100 - options.loss)  # longer by this share
    # A row of generate_series takes so little that a first guess is a share of all the work.
    work = round(BASE_WORK * (1 + 2 * wanted))
    for number in range(CALIBRATIONS):
        loss = _loss(folder, work, options.calibration)
        _tell(f"calibration {number + 1}: work {work} loses {loss}")
        is_close = abs(loss.percent - options.loss) <= options.loss * CLOSE / 100
        if is_close or loss.low <= options.loss <= loss.high:
            break
        longer = loss.percent / (100 - loss.percent)
        if longer <= 0:
            work += work - BASE_WORK
        else:
            work = BASE_WORK + max(1, round((work - BASE_WORK) * wanted / longer))
    return work, loss


def _loss(folder: Path, work: int, seconds: int) -> Loss:
    """Of slices in turn, base and head, then head and base."""
    logs = []
    for number in range(max(3, seconds // (2 * SLICE_SECONDS))):
        works = [BASE_WORK, work] if number % 2 else [work, BASE_WORK]
        rates = {each: _tps(_command(folder, each, SLICE_SECONDS)) for each in works}
        logs.append(math.log(rates[work] / rates[BASE_WORK]))
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    reach = float(sp.special.stdtrit(len(logs) - 1, 0.975)) * error
    low, middle, high = (
        -100 * math.expm1(log) for log in (mean + reach, mean, mean - reach)
    )
    return Loss(middle, low, high)


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
    judged: Judged, folder: Path, work: int, options: argparse.Namespace
) -> None:
    """Start benchlab-pair, and keep what it says."""
    answer = folder / "pair.json"
    sides = [
        f"base={_command(folder, BASE_WORK, options.seconds)}",
        f"head={_command(folder, work, options.seconds)}",
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
