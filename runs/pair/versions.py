"""The program `benchlab-versions`: one command on every version of PostgreSQL of this machine.

    benchlab-versions 13..18 -- ./bench.sh
    benchlab-versions 13..18 --setup 'pgbench -i -s 10' -- pgbench -T 10 -c 4
    benchlab-versions 13,18 --setup 'psql -f dump.sql' --rounds 5 -- ./run-tests.sh
    benchlab-versions --campaign-run SLUG        repeats a campaign of a BenchLab here, and uploads

Each version gets a fresh cluster, whose data --setup makes once. In each round every version is
measured once, in a drawn order, on a copy of its data. The command finds its server by PGHOST,
PGPORT, PGUSER, PGPASSWORD and PGDATABASE; PATH begins with the programs of the newest version, so
that only the servers differ (those of the version itself are in $BENCHLAB_BINDIR). What the command
prints is read as `benchlab-pair` reads it; of any other command the time is judged.

Exit status: 0 the newest version is no slower than the oldest, 1 slower, 2 undecided, 3 not
comparable, 64 wrong use.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runs.analysis.inference import (
    MINIMUM_EFFECT,
    SIGNIFICANCE,
    Inference,
    Model,
    Pair,
    judge,
)
from runs.analysis.inference.rounding import resolution
from runs.analysis.interval_words import size
from runs.pair import repeating
from runs.pair.clusters import (
    Cluster,
    ClusterFailed,
    Installation,
    installed,
    major_of,
    server_account,
)
from runs.pair.command import (
    LEAST_ROUNDS,
    NOT_COMPARABLE,
    Parser,
    duration,
    number_of_rounds,
)
from runs.pair.figures import Figures, FiguresDiffer, read
from runs.pair.measuring import CommandFailed, Execution, OutOfTime, Rounds, execute
from runs.pair.uploading import Target, UploadFailed, VersionsUpload
from runs.pair.verdict import CAMPAIGN, EXITS, cell, decided
from runs.patterns import re
from runs.tools.adapter import UnreadableOutput

_RANGE = re.compile(r"(\d{1,2}(?:\.\d)?)\.\.(\d{1,2}(?:\.\d)?)")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,62}=[^\n\r\0]{0,1000}")
MOST_VERSIONS = 20


@dataclass(frozen=True)
class Order:
    """What is measured: a shell's command line on each installation."""

    command: str
    installations: tuple[Installation, ...]
    setup: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    only_reads: bool = False
    rounds: int = 3
    budget: float | None = None
    upload: VersionsUpload | None = None


@dataclass
class Measured:
    """The executions of each version, by major, and why a version has none."""

    executions: dict[str, list[Execution]]
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def majors(self) -> list[str]:
        """The versions that went through, the oldest first."""
        return [major for major in self.executions if major not in self.failed]

    @property
    def rounds(self) -> int:
        """Whole rounds: of each version that went through there is one execution."""
        return min((len(self.executions[major]) for major in self.majors), default=0)


@dataclass(frozen=True)
class Step:
    """A version against the oldest one."""

    base: str
    head: str
    found: Inference
    values: tuple[float, ...]

    @property
    def sentence(self) -> str:
        """Which way, and by how much."""
        head = f"PostgreSQL {self.head}"
        if words := decided(self.found, head=head, base=self.base):
            return words
        if self.found.verdict == "undecided":
            return f"{head} against {self.base} is undecided, {size(self.found)}"
        return f"{head} against {self.base}: no verdict"


@dataclass(frozen=True)
class VersionsAnswer:
    """What the rounds say of one figure. The intervals hold for all steps together, at 95 %."""

    figure: str
    unit: str
    base: str
    base_values: tuple[float, ...]
    steps: tuple[Step, ...]
    rounds: int
    failed: Mapping[str, str]
    seconds: float

    @property
    def sentence(self) -> str:
        """The newest version against the oldest, and which ones did not go through."""
        parts = [f"{self.figure}: {self.steps[-1].sentence}"]
        parts += [f"it fails on PostgreSQL {major}" for major in self.failed]
        return "; ".join(parts) + "."

    @property
    def exit_code(self) -> int:
        """That of the newest version."""
        return EXITS.get(self.steps[-1].found.verdict, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, judge, print; the exit status."""
    parser = _parser()
    given_arguments = list(sys.argv[1:] if arguments is None else arguments)
    if any(word.split("=", 1)[0] == repeating.FLAG for word in given_arguments):
        return repeating.repeat(given_arguments)
    if "--" not in given_arguments:
        parser.error("write the command after --, as in: 13..18 -- ./bench.sh")
    place = given_arguments.index("--")
    options, words = (
        parser.parse_args(given_arguments[:place]),
        given_arguments[place + 1 :],
    )
    if not words:
        parser.error("there is no command after --")
    command = words[0] if len(words) == 1 else shlex.join(words)
    try:
        order = Order(
            command=command,
            installations=_chosen(options.versions, options.bindir),
            setup=options.setup,
            settings=dict(options.set),
            only_reads=options.only_reads,
            rounds=options.rounds,
            budget=options.budget,
            upload=_upload(options, command),
        )
        server_account()
    except (ValueError, ClusterFailed, UploadFailed) as error:
        parser.error(str(error))
    began = time.monotonic()
    try:
        measured = measure(order)
        versions_answer = judged(
            measured,
            metric=options.metric,
            tool=options.tool,
            seconds=time.monotonic() - began,
        )
    except (ClusterFailed, FiguresDiffer, KeyError, UnreadableOutput) as error:
        _tell(str(error.args[0] if isinstance(error, KeyError) else error))
        return NOT_COMPARABLE
    if versions_answer is None:
        _tell(
            "There is no verdict: it takes two versions and two whole rounds at least."
        )
        return 2
    print(as_text(versions_answer))
    if order.upload is not None:
        _send(order.upload, measured, options.tool)
    if options.markdown is not None:
        options.markdown.write_text(as_markdown(versions_answer), encoding="utf-8")
    if options.json is not None:
        options.json.write_text(as_json(versions_answer, order), encoding="utf-8")
    return versions_answer.exit_code


def _upload(options: argparse.Namespace, command: str) -> VersionsUpload | None:
    if not options.campaign:
        return None
    return VersionsUpload(Target(options.campaign, options.scenario), command)


def _send(upload: VersionsUpload, measured: Measured, tool: str) -> None:
    """Upload all whole rounds, and say where they are."""
    executions = {
        major: measured.executions[major][: measured.rounds]
        for major in measured.majors
    }
    first = executions[measured.majors[0]]
    try:
        address = upload.send(executions, read(Rounds(first, first), tool=tool).tool)
    except UploadFailed as failed:
        _tell(str(failed))
        return
    _tell(f"uploaded: {address}")


def measure(order: Order) -> Measured:
    """All rounds; Ctrl-C and the budget end it with the whole rounds that there are.

    A version whose server, setup or command fails is left out, with the reason. Nothing is left
    behind. Raises ClusterFailed where no folder can be made.
    """
    measured = Measured(
        {installation.major: [] for installation in order.installations}
    )
    until = None if order.budget is None else time.monotonic() + order.budget
    with _ended_by_signals(), _folder() as folder:
        try:
            prepared = _prepared(order, folder, measured, until)
            draw = random.Random()  # noqa: S311 - an order, no secret
            for number in range(1, order.rounds + 1):
                majors = draw.sample(measured.majors, len(measured.majors))
                for major in majors:
                    _measure_one(order, prepared[major], measured, until)
                _tell(f"round {number} of {order.rounds}")
        except OutOfTime as error:
            _tell(f"The budget is over: {error}.")
        except KeyboardInterrupt:
            _tell("Stopped: the verdict is that of the whole rounds.")
    return measured


def _prepared(
    order: Order, folder: Path, measured: Measured, until: float | None
) -> dict[str, Cluster]:
    """A stopped cluster of each version with its data."""
    prepared: dict[str, Cluster] = {}
    for installation in order.installations:
        major = installation.major
        cluster = Cluster(installation, folder / f"made-{major}")
        try:
            cluster.make(order.settings)
            cluster.start()
            if order.setup:
                _execute(order, order.setup, cluster, until)
            if order.upload is not None:
                order.upload.ask(cluster)
            cluster.stop()
        except (ClusterFailed, CommandFailed) as error:
            _leave_out(measured, major, error)
            cluster.remove()
            continue
        prepared[major] = cluster
        _tell(f"PostgreSQL {installation.version} is ready")
    return prepared


def _measure_one(
    order: Order, prepared: Cluster, measured: Measured, until: float | None
) -> None:
    """Execute the command once, on the version's own cluster or on a copy of it."""
    major = prepared.installation.major
    copy = prepared.folder.with_name(f"run-{major}")
    try:
        cluster = prepared if order.only_reads else prepared.copied_to(copy)
    except ClusterFailed as error:
        _leave_out(measured, major, error)
        return
    try:
        cluster.start()
        measured.executions[major].append(
            _execute(order, order.command, cluster, until)
        )
    except (ClusterFailed, CommandFailed) as error:
        _leave_out(measured, major, error)
    finally:
        if order.only_reads:
            cluster.stop()
        else:
            cluster.remove()


def _execute(
    order: Order, command: str, cluster: Cluster, until: float | None
) -> Execution:
    newest = order.installations[-1].bindir
    path = f"{newest}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, **cluster.environment(), "PATH": path}
    left = None if until is None else until - time.monotonic()
    return execute(command, timeout=left, environment=environment)


def _leave_out(measured: Measured, major: str, error: Exception) -> None:
    said = str(error)
    if isinstance(error, CommandFailed) and error.output:
        said = f"{said}: {error.output.strip()}"
    measured.failed[major] = said
    _tell(f"PostgreSQL {major} is left out: {said}")


def judged(
    measured: Measured, *, metric: str = "", tool: str = "", seconds: float = 0.0
) -> VersionsAnswer | None:
    """Each version against the oldest; None without two versions and two whole rounds.

    Raises what `figures.read` raises, and KeyError for a figure that nobody printed.
    """
    count, majors = measured.rounds, measured.majors
    if count < LEAST_ROUNDS or len(majors) < 2:
        return None
    base, *heads = majors
    figures_of: dict[str, Figures] = {}
    for head in heads:
        rounds = Rounds(
            measured.executions[base][:count], measured.executions[head][:count]
        )
        readings = read(rounds, tool=tool)
        name = metric or (figures_of[heads[0]].name if figures_of else "")
        figures_of[head] = readings.named(name) if name else readings.primary()
    first = figures_of[heads[0]]
    values = [first.base, *(figures_of[head].head for head in heads)]
    unit = resolution([value for of_version in values for value in of_version])
    model = Model([cell(of_version, unit) for of_version in values], turns={CAMPAIGN})
    inferences = judge(
        model,
        [Pair(0, place) for place in range(1, len(values))],
        direction=first.direction,
        effect=MINIMUM_EFFECT,
        significance=SIGNIFICANCE,
    )
    steps = tuple(
        Step(base, head, inference, of_version)
        for head, inference, of_version in zip(heads, inferences, values[1:])
    )
    return VersionsAnswer(
        first.name, first.unit, base, first.base, steps, count, measured.failed, seconds
    )


def as_text(found: VersionsAnswer) -> str:
    """What the terminal shows."""
    lines = [found.sentence]
    base = f"{statistics.median(found.base_values):.6g} {found.unit}".rstrip()
    lines.append(f"  {found.base:>5}  {base}")
    for step in found.steps:
        value = f"{statistics.median(step.values):.6g} {found.unit}".rstrip()
        lines.append(f"  {step.head:>5}  {value}  {_interval(step)}")
    return "\n".join(lines)


def as_markdown(found: VersionsAnswer) -> str:
    """A table for a pull request or a page."""
    unit = f" ({found.unit})" if found.unit not in ("", found.figure) else ""
    lines = [
        f"**{found.sentence}**",
        "",
        f"| PostgreSQL | {found.figure}{unit} | against {found.base} | 95 % interval |",
        "|---|---:|---:|---|",
        f"| {found.base} | {statistics.median(found.base_values):.6g} | | |",
    ]
    for step in found.steps:
        ratio = "" if step.found.ratio is None else f"{step.found.ratio:.3f}"
        value = f"{statistics.median(step.values):.6g}"
        lines.append(f"| {step.head} | {value} | {ratio} | {_interval(step)} |")
    for major, why in found.failed.items():
        lines.append(f"| {major} | fails: {_one_line(why)} | | |")
    conditions = (
        f"Medians of {found.rounds} rounds, all versions in turn on one machine; "
        "the intervals hold for all rows together."
    )
    lines += ["", conditions, ""]
    return "\n".join(lines)


def as_json(found: VersionsAnswer, order: Order) -> str:
    """All that is known, for programs."""
    return json.dumps(
        {
            "sentence": found.sentence,
            "exit_code": found.exit_code,
            "metric": found.figure,
            "unit": found.unit,
            "base": found.base,
            "base_values": list(found.base_values),
            "rounds": found.rounds,
            "seconds": round(found.seconds, 3),
            "command": order.command,
            "installations": {
                installation.major: installation.version
                for installation in order.installations
            },
            "versions": {
                step.head: {
                    "verdict": step.found.verdict,
                    "ratio": step.found.ratio,
                    "low": step.found.low,
                    "high": step.found.high,
                    "values": list(step.values),
                }
                for step in found.steps
            },
            "failed": dict(found.failed),
        },
        indent=2,
    )


def _interval(step: Step) -> str:
    verdict = step.found.verdict.replace("_", " ")
    if step.found.low is None or step.found.high is None:
        return verdict
    return f"{step.found.low:.3f} to {step.found.high:.3f}, {verdict}"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:200]


def _chosen(wanted: str, bindirs: Sequence[Path]) -> tuple[Installation, ...]:
    """The installations of "13..18" or "13,18". Raises ValueError with what there is."""
    installation_of_major = installed(bindirs)
    there = ", ".join(installation_of_major) or "none"
    if bounds := _RANGE.fullmatch(wanted):
        first, last = (float(bound) for bound in bounds.groups())
        chosen = [
            installation
            for major, installation in installation_of_major.items()
            if first <= float(major) <= last
        ]
    else:
        majors = [major_of(word) for word in wanted.split(",") if word.strip()]
        missing = [major for major in majors if major not in installation_of_major]
        if missing:
            raise ValueError(
                f"PostgreSQL {', '.join(missing)} is not installed here; there are: {there}. "
                "--bindir names further folders."
            )
        chosen = [
            installation_of_major[major]
            for major in installation_of_major
            if major in majors
        ]
    if not 2 <= len(chosen) <= MOST_VERSIONS:
        raise ValueError(
            f"{wanted} gives {len(chosen)} versions of those installed ({there}); it takes from 2 "
            f"to {MOST_VERSIONS}. --bindir names further folders."
        )
    return tuple(chosen)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that the servers' account can enter; with all in it removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="benchlab-versions-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        for made in sorted(folder.iterdir()):
            _removed(made)
        shutil.rmtree(folder, ignore_errors=True)


def _removed(folder: Path) -> None:
    """Stop what runs in a cluster's folder, whoever has left it there."""
    try:
        pid = int((folder / "data/postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, signal.SIGQUIT)
    except (OSError, ValueError):
        return


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: nothing stays behind."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(text: str) -> None:
    print(f"benchlab-versions: {text}", file=sys.stderr)


def _setting(text: str) -> tuple[str, str]:
    if not _SETTING.fullmatch(text):
        raise argparse.ArgumentTypeError(f"NAME=VALUE, not {text!r}")
    name, _sign, value = text.partition("=")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="benchlab-versions",
        usage="%(prog)s 13..18 [options] -- COMMAND [ARGUMENT ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("versions", help="13..18, or 13,15,18")
    parser.add_argument(
        "--setup",
        default="",
        metavar="COMMAND",
        help="makes the data, once a version: pgbench -i, psql -f dump.sql, pg_restore",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of all servers; may be given several times",
    )
    parser.add_argument(
        "--only-reads",
        action="store_true",
        help="the command changes nothing: no copy of the data for each execution",
    )
    parser.add_argument(
        "--bindir",
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="programs of a further version; may be given several times",
    )
    parser.add_argument(
        "--rounds", type=number_of_rounds, default=3, help="of all versions (3)"
    )
    parser.add_argument(
        "--budget", type=duration, metavar="10m", help="stop after this time"
    )
    parser.add_argument(
        "--metric", default="", help="the figure to judge: tps, seconds, ..."
    )
    parser.add_argument(
        "--tool", default="", help="whose output it is; recognised otherwise"
    )
    parser.add_argument(
        "--campaign",
        default="",
        metavar="NAME",
        help="upload all runs to the server of BENCHLAB_URL, with the token of BENCHLAB_TOKEN",
    )
    parser.add_argument(
        "--scenario",
        default="",
        help="with --campaign: what the command does, in a word",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
