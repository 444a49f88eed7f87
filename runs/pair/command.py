"""The program `benchlab-pair`: a verdict about two commands, without a server.

    benchlab-pair base='./bench-main.sh' head='./bench.sh'
    benchlab-pair base='...' head='...' --more-until 3% --budget 10m --markdown comment.md
    benchlab-pair same='./bench.sh'        what this machine can show
    benchlab-pair --figures pair.json --markdown comment.md     judge again what --json wrote
    benchlab-pair --campaign nightly base='...' head='...'      also upload it to BENCHLAB_URL

Exit status: 0 no regression, 1 slower, 2 undecided, 3 not comparable, 64 wrong use.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from runs.analysis.inference import Inference
from runs.pair.again import NotFigures, measured_pair
from runs.pair.figures import Figures, FiguresDiffer, Readings, read
from runs.pair.measuring import BASE, HEAD, CommandFailed, OutOfTime, Rounds, take_turns
from runs.pair.uploading import Target, Upload, UploadFailed
from runs.pair.verdict import PairAnswer, answer
from runs.patterns import re
from runs.tools.adapter import UnreadableOutput

SAME = "same"
_MARKUP = re.compile(r"[\\`*_~|#<>\[\]&]")
WRONG_USE, NOT_COMPARABLE = 64, 3
LEAST_ROUNDS = 2
# Further looks are made after so many times the first rounds.
MOST_TIMES = 4
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Limits:
    """When to stop. `precision` is half the width of the interval that is wanted, as a share."""

    rounds: int
    most_rounds: int
    precision: float | None
    budget: float | None

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of rounds after which the answer decides whether to go on."""
        if self.precision is None:
            return ()
        steps = range(self.rounds, self.most_rounds + 1, self.rounds)
        return tuple(dict.fromkeys((*steps, self.most_rounds)))


@dataclass(frozen=True)
class Result:
    """What a pair came to."""

    readings: Readings
    answer: PairAnswer
    commands: dict[str, str]
    seconds: float
    looks: tuple[int, ...] = ()
    rounds: Rounds = field(default_factory=Rounds)

    @property
    def is_same(self) -> bool:
        """Whether one command was measured as both sides."""
        return SAME in self.commands

    @property
    def sentence(self) -> str:
        """The answer; of one command what the machine can show."""
        return self.answer.noise if self.is_same else self.answer.sentence

    @property
    def exit_code(self) -> int:
        """That of the answer; one command against itself is no regression."""
        return 0 if self.is_same else self.answer.exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, judge, print; the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.figures is not None:
        return _again(parser, options)
    commands = dict(options.sides)
    if sorted(commands) not in ([BASE, HEAD], [SAME]) or len(options.sides) != len(
        commands
    ):
        parser.error(
            "name both sides, base=COMMAND and head=COMMAND, or one as same=COMMAND"
        )
    most = options.rounds if options.more_until is None else options.rounds * MOST_TIMES
    limits = Limits(
        options.rounds, options.most_rounds or most, options.more_until, options.budget
    )
    if limits.most_rounds < limits.rounds:
        parser.error("--most-rounds is less than --rounds")
    try:
        upload = _upload(options, commands)
    except UploadFailed as error:
        parser.error(f"{error}")
    try:
        result = measure(commands, limits, metric=options.metric, tool=options.tool)
    except (CommandFailed, FiguresDiffer, KeyError, UnreadableOutput) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        _tell(f"{message}")
        if isinstance(error, CommandFailed) and error.output:
            _tell(error.output)
        return NOT_COMPARABLE
    if result is None:
        _tell("There is no verdict: it takes at least two whole rounds.")
        return 2
    if upload is not None:
        _send(upload, result)
    return _written(result, options)


def _upload(options: argparse.Namespace, commands: dict[str, str]) -> Upload | None:
    """Where the pair goes, if it goes anywhere. Raises UploadFailed."""
    if not options.campaign:
        return None
    target = Target(
        options.campaign, options.scenario, options.revision, options.base_revision
    )
    return Upload(target, commands)


def _send(upload: Upload, result: Result) -> None:
    """Upload what was measured. Where that fails the verdict stands all the same."""
    try:
        address = upload.send(result.rounds, result.readings)
    except UploadFailed as error:
        _tell(f"{error}")
    else:
        _tell(f"Uploaded {2 * len(result.rounds)} runs: {address}")


def _again(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Judge the figures of a file; the exit status."""
    if options.sides:
        parser.error("--figures has been measured: no sides beside it")
    try:
        pair = measured_pair(options.figures)
        chosen = options.metric or (pair.metric if pair.is_alone else "")
        pair_answer = _answer(pair.readings, chosen, pair.looks, primary=pair.metric)
    except (NotFigures, KeyError) as error:
        _tell(f"{error.args[0]}")
        return NOT_COMPARABLE
    return _written(Result(pair.readings, pair_answer, {}, 0.0, pair.looks), options)


def _written(result: Result, options: argparse.Namespace) -> int:
    """Print it, write the files that are wanted; the exit status."""
    print(as_text(result))
    for path, form in (
        (options.markdown, as_markdown),
        (options.json, as_json),
        (options.junit, as_junit),
    ):
        if path is not None:
            path.write_text(form(result), encoding="utf-8")
    return result.exit_code


def measure(
    commands: dict[str, str], limits: Limits, *, metric: str = "", tool: str = ""
) -> Result | None:
    """Measure rounds until the limits; None without two whole ones.

    Ctrl-C ends it with the whole rounds that there are. Raises CommandFailed and FiguresDiffer.
    """
    sides = {side: commands.get(side) or commands[SAME] for side in (BASE, HEAD)}
    rounds = Rounds()
    began = time.monotonic()
    try:
        for number in take_turns(sides, rounds, budget=limits.budget):
            elapsed = time.monotonic() - began
            _tell(_progress(number, elapsed, limits))
            if number == 1:
                first = read(rounds, tool=tool)
                if metric:
                    first.named(metric)  # a wrong name is told at once
            if _is_enough(rounds, limits, metric, tool) or _is_over(
                number, elapsed, limits
            ):
                break
    except OutOfTime as error:
        _tell(f"The budget is over: {error}.")
    except KeyboardInterrupt:
        _tell(f"Stopped: the verdict is that of {len(rounds)} whole rounds.")
    if len(rounds) < LEAST_ROUNDS:
        return None
    readings_of_rounds = read(rounds, tool=tool)
    pair_answer = _answer(readings_of_rounds, metric, limits.looks)
    seconds = time.monotonic() - began
    return Result(
        readings_of_rounds, pair_answer, commands, seconds, limits.looks, rounds
    )


def as_text(result: Result) -> str:
    """What the terminal shows."""
    lines = dict.fromkeys((result.sentence, result.answer.noise))
    return "\n".join([*lines, *map(_line, _shown(result))])


def _line(figures: Figures) -> str:
    base, head = statistics.median(figures.base), statistics.median(figures.head)
    return f"  {figures.name}: {base:.6g} -> {head:.6g} {figures.unit}".rstrip()


def as_markdown(result: Result) -> str:
    """The comment of a pull request."""
    pair_answer = result.answer
    lines = [
        f"**{escaped(result.sentence)}**",
        "",
        "| figure | base | head | ratio |",
        "|---|---:|---:|---:|",
    ]
    for figures in _shown(result):
        base, head = statistics.median(figures.base), statistics.median(figures.head)
        ratio = f"{head / base:.3f}" if base else ""
        unit = f" ({figures.unit})" if figures.unit else ""
        named = escaped(f"{figures.name}{unit}")
        lines.append(f"| {named} | {base:.6g} | {head:.6g} | {ratio} |")
    lines += [
        "",
        (
            f"Medians of {pair_answer.rounds} rounds, both sides in turn on one machine. "
            f"{pair_answer.noise}"
        ),
        "",
    ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text in which Markdown finds no markup, no mention and no end of a row: names are foreign."""
    line = " ".join(text.split())
    return _MARKUP.sub(r"\\\g<0>", line).replace("@", "@\N{ZERO WIDTH SPACE}")


def as_json(result: Result) -> str:
    """All that is known, for programs."""
    pair_answer = result.answer
    return json.dumps(
        {
            "sentence": result.sentence,
            **_verdict(pair_answer.found),
            "exit_code": result.exit_code,
            "metric": pair_answer.figures.name,
            "unit": pair_answer.figures.unit,
            "shows": pair_answer.shows,
            "rounds": pair_answer.rounds,
            "rules": pair_answer.found.rules,
            "looks": list(result.looks),
            "further": {
                further.figures.name: _verdict(further.found)
                for further in pair_answer.further
            },
            "tool": result.readings.tool,
            "seconds": round(result.seconds, 3),
            "commands": result.commands,
            "figures": {
                figures.name: {
                    "unit": figures.unit,
                    "direction": figures.direction,
                    "base": list(figures.base),
                    "head": list(figures.head),
                }
                for figures in result.readings.figures
            },
        },
        indent=2,
    )


def _verdict(found: Inference) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
    }


def as_junit(result: Result) -> str:
    """One test case, which fails where the head is slower."""
    pair_answer = result.answer
    name = quoteattr(f"pair: {pair_answer.figures.name}")
    body = ""
    if result.exit_code == 1:
        body = f"<failure>{escape(result.sentence)}</failure>"
    elif result.exit_code:
        body = f"<skipped message={quoteattr(result.sentence)}/>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="benchlab-pair" tests="1"><testcase name={name} '
        f'time="{result.seconds:.3f}">{body}</testcase></testsuite>\n'
    )


def _answer(
    readings: Readings, metric: str, looks: Sequence[int], *, primary: str = ""
) -> PairAnswer:
    """Of a figure that somebody chose alone; else of all that the tool printed.

    `primary` is the one that is judged first where it is known. Raises KeyError.
    """
    if metric:
        return answer(readings.named(metric), looks=looks)
    first = readings.named(primary) if primary else readings.primary()
    return answer(first, further=readings.further(first), looks=looks)


def _is_enough(rounds: Rounds, limits: Limits, metric: str, tool: str) -> bool:
    """Whether the question is decided, or the last round is measured."""
    if len(rounds) >= limits.most_rounds:
        return True
    if limits.precision is None or len(rounds) not in limits.looks:
        return False
    # Whether to go on depends on the figure that is judged first alone.
    figures = read(rounds, tool=tool)
    first = figures.named(metric) if metric else figures.primary()
    pair_answer = answer(first, looks=limits.looks)
    if pair_answer.found.is_proven:
        return True
    return pair_answer.shows is not None and pair_answer.shows <= limits.precision


def _is_over(number: int, elapsed: float, limits: Limits) -> bool:
    """Whether a further round would take longer than the budget has."""
    return limits.budget is not None and elapsed * (number + 1) / number > limits.budget


def _progress(number: int, elapsed: float, limits: Limits) -> str:
    text = f"round {number} of {limits.most_rounds}, {elapsed:.0f} s"
    if number == 1 and limits.budget is not None:
        fit = int(limits.budget / elapsed) if elapsed else limits.most_rounds
        if fit < limits.rounds:
            text += f"; only {max(fit, 1)} rounds fit into the budget of {limits.budget:.0f} s"
    return text


def _shown(result: Result) -> list[Figures]:
    """The figure that was judged, further ones that are proven, and what every execution has."""
    judged = result.answer.figures
    proven = [answer.figures for answer in result.answer.proven]
    measured_here = [
        figures
        for figures in result.readings.figures
        if figures.name in ("seconds", "cpu_seconds", "peak_memory")
        and figures != judged
    ]
    return [judged, *proven, *measured_here]


def _tell(text: str) -> None:
    print(f"benchlab-pair: {text}", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """One that ends wrong use with its own status: 2 means that nothing is decided."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Say what is wrong, and end."""
        self.print_usage(sys.stderr)
        self.exit(WRONG_USE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="benchlab-pair",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sides", nargs="*", type=_side, metavar="SIDE=COMMAND")
    parser.add_argument(
        "--figures", type=Path, metavar="FILE", help="judge again what --json wrote"
    )
    parser.add_argument(
        "--rounds", type=number_of_rounds, default=5, help="at least so many (5)"
    )
    parser.add_argument("--most-rounds", type=number_of_rounds, help="at most so many")
    parser.add_argument(
        "--metric", default="", help="the figure to judge: tps, seconds, ..."
    )
    parser.add_argument(
        "--tool", default="", help="whose output it is; recognised otherwise"
    )
    parser.add_argument(
        "--more-until",
        type=_share,
        metavar="3%",
        help="go on until it is decided, or a difference so small would be seen",
    )
    parser.add_argument(
        "--budget", type=duration, metavar="10m", help="stop after this time"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--junit", type=Path, metavar="FILE")
    sending = parser.add_argument_group(
        "upload as well",
        "to the server of BENCHLAB_URL, with the token of BENCHLAB_TOKEN (scope upload)",
    )
    sending.add_argument("--campaign", default="", help="the campaign of the runs")
    sending.add_argument("--scenario", default="", help="of a campaign that is new")
    sending.add_argument(
        "--revision", default="", metavar="SHA", help="of the head; git's otherwise"
    )
    sending.add_argument(
        "--base-revision",
        default="",
        metavar="SHA",
        help="of the base; git's otherwise",
    )
    return parser


def _side(text: str) -> tuple[str, str]:
    name, sign, command = text.partition("=")
    if not sign or not command.strip() or name not in (BASE, HEAD, SAME):
        raise argparse.ArgumentTypeError(
            f"base=COMMAND, head=COMMAND or same=COMMAND, not {text!r}"
        )
    return name, command


def number_of_rounds(text: str) -> int:
    """A number of rounds, as an argument."""
    if not text.isdecimal() or not LEAST_ROUNDS <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(
            f"a number of rounds from 2 to 1000, not {text!r}"
        )
    return int(text)


def _share(text: str) -> float:
    try:
        percent = float(text.removesuffix("%").strip())
    except ValueError:
        percent = 0.0
    if not 0 < percent < 100:
        raise argparse.ArgumentTypeError(f"a percentage such as 3%, not {text!r}")
    return percent / 100


def duration(text: str) -> float:
    """Seconds, of "90s", "10m" or "1h"."""
    unit = UNITS.get(text[-1:], 0)
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a time such as 90s, 10m or 1h, not {text!r}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
