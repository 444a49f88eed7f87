"""`benchlab-pair`: two commands in turn, judged without a server, as the server would."""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from django.utils import translation

from runs.analysis import interval_words
from runs.compare.selectors.describe import verdict_words
from runs.pair import command, verdict
from runs.pair.command import main
from runs.pair.figures import Figures, FiguresDiffer, Readings, read
from runs.pair.measuring import Execution, OutOfTime, Rounds, execute, take_turns
from runs.uploads.services.uploaded_run import GivenMeasurement
from tests.history_points import commit, repeats, sha, store
from tests.release import build_pair

ROOT = Path(__file__).parents[2]
# Prints what it is told with a scatter of 0.3 %: no answer here depends on a quiet machine.
PROGRAM = """\
import random, sys
print(f"elapsed={float(sys.argv[1]) * random.gauss(1, 0.003):.3f} ms lower")
"""
FEW, MANY = 20, 500


@pytest.fixture
def takes(tmp_path):
    """A command that prints about so many milliseconds."""
    program = tmp_path / "bench.py"
    program.write_text(PROGRAM)
    return lambda milliseconds: f"{sys.executable} {program} {milliseconds}"


def random_figures(seed):
    """Rounds of two sides: of any number, noise, drift and difference."""
    random = Random(seed)
    rounds, noise = random.randint(2, 12), math.exp(random.uniform(-7, -1))
    loss, drift = random.choice((0, 0, 0.02, 0.05, 0.2, 3.0)), random.choice((0, 0.1))
    base, head = [], []
    for _round in range(rounds):
        host = 1000 * math.exp(random.gauss(0, drift))
        base.append(round(host * math.exp(random.gauss(0, noise)), 3))
        head.append(round(host * (1 + loss) * math.exp(random.gauss(0, noise)), 3))
    direction = random.choice(("higher", "lower"))
    return Figures("figure", "ms", direction, tuple(base), tuple(head))


def test_the_words_of_a_size_are_those_of_the_server():
    seen = set()
    with translation.override("en"):
        for seed in range(MANY):
            found = verdict.answer(random_figures(seed)).found
            seen.add(found.verdict)
            assert interval_words.size(found) == verdict_words.size(found), seed
    assert seen == {"faster", "slower", "same", "undecided"}


@pytest.mark.django_db
@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_pair_is_judged_as_the_server_judges_it(client, seeds):
    for seed in range(seeds):
        figures = random_figures(seed)
        # The metric of the server's history is a rate, and better high.
        figures = replace(figures, direction="higher")
        base, head = commit(2 * seed), commit(2 * seed + 1)
        for place, values in enumerate(zip(figures.base, figures.head, strict=True)):
            for side, of, value in zip(
                ("base", "head"), (base, head), values, strict=True
            ):
                (run,) = repeats(
                    of, campaign=f"pair-{seed}", tps=[value], job="github/1/pair"
                )
                store(replace(run, round=place, labels={**run.labels, "pair": side}))
        query = {
            "campaign": f"pair-{seed}",
            "base": f"revision:{sha(2 * seed)}",
            "head": f"revision:{sha(2 * seed + 1)}",
        }
        (row,) = client.get("/api/v1/compare/", query).json()["rows"]
        found = verdict.answer(figures).found
        assert row["verdict"] == found.verdict, seed
        for name in ("ratio", "low", "high"):
            assert row[name] == pytest.approx(getattr(found, name), rel=1e-9), (
                seed,
                name,
            )


def test_a_loss_is_found_and_ends_with_one(takes, tmp_path, capsys):
    files = {name: tmp_path / name for name in ("markdown", "json", "junit")}
    options = [
        part for name, path in files.items() for part in (f"--{name}", str(path))
    ]

    status = main(
        [f"base={takes(400)}", f"head={takes(440)}", "--metric", "elapsed", *options]
    )

    out = capsys.readouterr().out
    assert status == 1
    assert re.search(
        r"elapsed: head is slower than base, [\d.]+ to [\d.]+ % more\.", out
    )
    found = json.loads(files["json"].read_text())
    assert (found["verdict"], found["rounds"], found["tool"]) == ("slower", 5, "lines")
    assert found["low"] < 1.1 < found["high"] or found["ratio"] == pytest.approx(
        1.1, rel=0.02
    )
    assert found["sentence"] in files["markdown"].read_text()
    assert "<failure>" in files["junit"].read_text()


def test_the_figure_of_a_tool_is_judged_before_the_time(takes, capsys):
    assert main([f"base={takes(400)}", f"head={takes(400)}"]) in {0, 2}
    assert capsys.readouterr().out.startswith("elapsed: ")


def test_any_command_has_its_time(capsys):
    assert main(["base=sleep 0.02", "head=sleep 0.3", "--rounds", "3"]) == 1
    assert "seconds: head is slower" in capsys.readouterr().out


def test_one_command_against_itself_says_what_the_machine_can_show(takes, capsys):
    assert main([f"same={takes(400)}"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"With 5 rounds this machine shows a difference of [\d.]+ %\.", out)
    assert "slower" not in out


def test_it_goes_on_until_the_difference_would_be_seen(takes, capsys):
    sides = [f"base={takes(400)}", f"head={takes(400)}", "--metric", "elapsed"]
    assert (
        main([*sides, "--rounds", "2", "--more-until", "1%", "--most-rounds", "40"])
        == 0
    )
    rounds = int(re.search(r"With (\d+) rounds", capsys.readouterr().out).group(1))
    assert 2 <= rounds < 40


def test_looks_together_keep_the_error_of_one():
    """A difference that is just proven by one look is not by the first of many."""
    figures = random_figures(3)
    once, often = verdict.answer(figures), verdict.answer(figures, looks=range(2, 40))
    assert often.shows > once.shows


def test_a_budget_ends_it_after_a_whole_round(takes, capsys):
    sides = [f"base={takes(400)} && sleep 0.2", f"head={takes(400)} && sleep 0.2"]
    status = main([*sides, "--rounds", "50", "--budget", "2s"])
    captured = capsys.readouterr()
    assert status in {0, 2}
    assert "fit into the budget of 2 s" in captured.err
    assert int(re.search(r"With (\d+) rounds", captured.out).group(1)) < 50


def test_a_command_without_end_is_ended_with_the_budget(takes, tmp_path, capsys):
    mark = tmp_path / "rounds"
    command = f"{takes(400)}; echo >> {mark}; test $(wc -l < {mark}) -lt 7 || sleep 60"

    assert main([f"same={command}", "--rounds", "9", "--budget", "5s"]) == 0
    captured = capsys.readouterr()
    assert "The budget is over" in captured.err
    assert captured.out.startswith("With 3 rounds")


def test_ctrl_c_gives_the_verdict_of_the_whole_rounds(takes, tmp_path):
    mark = tmp_path / "rounds"
    command = f"{takes(400)}; echo >> {mark}; test $(wc -l < {mark}) -lt 7 || sleep 60"
    process = subprocess.Popen(
        [sys.executable, "-m", "runs.pair.command", f"same={command}", "--rounds", "9"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not mark.exists() or mark.read_text().count("\n") < 7:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate()

    assert process.returncode == 0
    assert out.startswith("With 3 rounds")
    assert "Stopped: the verdict is that of 3 whole rounds." in error


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["base=false", "head=true"], 3, "'false' ended with 1"),
        (["base=true"], 64, "name both sides"),
        (["base=true", "head=true", "same=true"], 64, "name both sides"),
        (["main=true", "head=true"], 64, "base=COMMAND"),
        (["base=true", "head=true", "--rounds", "1"], 64, "from 2 to 1000"),
        (
            ["base=true", "head=true", "--more-until", "much"],
            64,
            "a percentage such as 3%",
        ),
        (["base=true", "head=true", "--budget", "soon"], 64, "a time such as"),
        (["base=true", "head=true", "--metric", "tps"], 3, "There is no figure 'tps'"),
        (
            ["base=true", "head=true", "--tool", "abacus"],
            3,
            "There is no reader for 'abacus'",
        ),
        (["base=kill -9 $$", "head=true"], 3, "was ended by signal 9"),
        (
            ["base=echo 'a=1 ms lower'", "head=true"],
            3,
            "do not print the same tool's output",
        ),
    ],
)
def test_what_is_wrong_is_said(arguments, status, said, capsys):
    try:
        ended = main(arguments)
    except SystemExit as error:
        ended = error.code
    assert ended == status
    assert said in capsys.readouterr().err


def test_a_run_without_the_figures_of_the_others_is_no_run():
    def printed(text):
        return Execution(text.encode(), b"", 1.0, 0.5, 0)

    rounds = Rounds(
        [printed("a=1 ms lower\n")] * 2, [printed("a=1 ms lower\n"), printed("")]
    )
    with pytest.raises(FiguresDiffer):
        read(rounds, tool="lines")


def test_both_sides_take_turns():
    order = []
    rounds = Rounds()
    commands = {"base": "true", "head": "true"}
    for number in take_turns(commands, rounds, draw=Random(1)):
        order.append((len(rounds.base), len(rounds.head)))
        if number == 3:
            break
    assert order == [(1, 1), (2, 2), (3, 3)]


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    mark = tmp_path / "pid"
    with pytest.raises(OutOfTime, match="takes longer"):
        execute(f"sleep 60 & echo $! > {mark}; wait", timeout=1.0)
    started = Path("/proc") / mark.read_text().strip()
    for _attempt in range(100):
        if not started.exists():
            break
        time.sleep(0.05)
    assert not started.exists()


def test_the_line_of_the_guide_writes_a_comment(takes, tmp_path, monkeypatch):
    """That of ci.md, in a checkout beside that of main."""
    guide = (ROOT / "docs/ci.md").read_text()
    line = re.search(r"^benchlab-pair (base=.*)$", guide, re.MULTILINE).group(1)
    for folder, milliseconds in (("main", 400), ("topic", 440)):
        script = tmp_path / folder / "bench.sh"
        script.parent.mkdir()
        script.write_text(f"#!/bin/sh\n{takes(milliseconds)}\n")
        script.chmod(0o755)
    monkeypatch.chdir(tmp_path / "topic")

    assert main(shlex.split(line)) == 1
    assert "**elapsed: head is slower" in Path("comment.md").read_text()


def test_the_wheel_judges_without_django(tmp_path, takes):
    """Numpy and scipy are all that it needs."""
    wheel = build_pair(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "import sys; sys.modules['django'] = None; sys.argv[0] = 'benchlab-pair';"
        "from benchlab_pair.start import main; sys.exit(main())"
    )
    sides = [f"base={takes(400)}", f"head={takes(440)}", "--metric", "elapsed"]
    done = subprocess.run(
        [sys.executable, "-c", program, *sides],
        cwd=tmp_path / "installed",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "elapsed: head is slower than base" in done.stdout
    without_server = subprocess.run(
        [sys.executable, "-c", program, *sides, "--campaign", "nightly"],
        cwd=tmp_path / "installed",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert without_server.returncode == 64
    assert "Set BENCHLAB_URL" in without_server.stderr
    versions = program.replace(
        "import main; sys.exit(main", "import versions; sys.exit(versions"
    )
    helped = subprocess.run(
        [sys.executable, "-c", versions, "--", "true"],
        cwd=tmp_path / "installed",
        capture_output=True,
        text=True,
        check=False,
    )
    assert helped.returncode == 64
    assert "benchlab-versions 13..18 [options] -- COMMAND" in helped.stderr


def test_what_was_measured_is_judged_again_alike(tmp_path, takes, capsys):
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    sides = [f"base={takes(400)}", f"head={takes(440)}"]
    limits = ["--rounds", "4", "--most-rounds", "8", "--more-until", "5%"]
    assert main([*sides, *limits, "--json", str(first)]) == 1
    said = capsys.readouterr().out

    assert main(["--figures", str(first), "--json", str(again)]) == 1

    one, other = (json.loads(path.read_text()) for path in (first, again))
    for name in ("sentence", "verdict", "ratio", "low", "high", "looks", "figures"):
        assert one[name] == other[name]
    assert capsys.readouterr().out == said


def test_names_in_a_comment_are_no_markup():
    text = command.escaped("a|b <img> @all [x](y) `z` *w*\nend")

    assert text == r"a\|b \<img\> @" + "\u200b" + r"all \[x\](y) \`z\` \*w\* end"


# Suites: a tool that prints many figures.

SUITE = """\
import random, sys
for number in range(6):
    loss = float(sys.argv[1]) if number == 4 else 1
    print(f"bench{number}={100 * loss * random.gauss(1, 0.002):.3f} ms lower")
print(f"rows={int(sys.argv[2])} rows neutral")
"""


@pytest.fixture
def suite(tmp_path):
    """A command that prints six times, of which the fifth is so many times as long."""
    program = tmp_path / "suite.py"
    program.write_text(SUITE)
    return lambda loss, rows=7: f"{sys.executable} {program} {loss} {rows}"


def test_a_further_figure_that_is_slower_is_a_regression(suite, tmp_path, capsys):
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    comment = tmp_path / "comment.md"

    files = ["--json", str(first), "--markdown", str(comment)]
    assert main([f"base={suite(1)}", f"head={suite(1.1)}", *files]) == 1

    said = capsys.readouterr().out
    assert re.search(
        r"Of 5 further figures: bench4 is [\d.]+( to [\d.]+)? % more\.", said
    )
    told = json.loads(first.read_text())
    assert told["metric"] == "bench0"
    assert told["verdict"] != "slower"
    assert told["exit_code"] == 1
    assert {
        name for name, found in told["further"].items() if found["verdict"] == "slower"
    } == {"bench4"}
    assert "| bench4 (ms) |" in comment.read_text()
    # A job that may comment says the same, and the figure without a better end is no obstacle.
    assert main(["--figures", str(first), "--json", str(again)]) == 1
    assert json.loads(again.read_text())["further"] == told["further"]


def test_a_figure_that_somebody_chose_is_judged_alone(suite, tmp_path, capsys):
    first = tmp_path / "first.json"
    chosen = ["--metric", "bench1", "--json", str(first)]

    status = main([f"base={suite(1)}", f"head={suite(1.1)}", *chosen])

    assert status in {0, 2}
    assert "further" not in capsys.readouterr().out
    assert main(["--figures", str(first)]) == status


@pytest.mark.django_db
def test_a_suite_is_judged_as_the_server_judges_it(client):
    random = Random(3)
    loss_of = {"bench2": 1.05, "bench5": 0.9}
    figures = []
    for name in (f"bench{number}" for number in range(8)):
        base = tuple(random.gauss(100, 0.5) for _round in range(5))
        head = tuple(loss_of.get(name, 1) * random.gauss(100, 0.5) for _ in range(5))
        figures.append(Figures(name, "ms", "lower", base, head))
    readings = Readings("lines", tuple(figures))
    for place in range(5):
        for side, of in (("base", commit(0)), ("head", commit(1))):
            (run,) = repeats(of, campaign="suite", tps=[1], job="github/1/pair")
            measurements = tuple(
                GivenMeasurement(
                    figures.name,
                    getattr(figures, side)[place],
                    unit="ms",
                    direction="lower",
                )
                for figures in readings.figures
            )
            labels = {**run.labels, "pair": side}
            store(replace(run, round=place, labels=labels, measurements=measurements))

    body = client.get(
        "/api/v1/compare/",
        {
            "campaign": "suite",
            "base": f"revision:{sha(0)}",
            "head": f"revision:{sha(1)}",
        },
    ).json()

    first = readings.named("bench0")
    found = verdict.answer(first, further=readings.further(first))
    answers = {first.name: found.found} | {
        further.figures.name: further.found for further in found.further
    }
    assert body["exit_code"] == found.exit_code == 1
    for row in body["rows"]:
        answer = answers[row["metric"]]
        assert row["verdict"] == answer.verdict
        for name in ("ratio", "low", "high"):
            assert row[name] == pytest.approx(getattr(answer, name), rel=1e-9)


def test_what_is_written_to_the_file_of_standard_output_is_read(tmp_path):
    """As --benchmark-json=/dev/stdout or --export-json /dev/stdout do, among other lines."""
    program = (
        'echo "before"; printf "elapsed=%s ms lower\\n" 5 > /dev/stdout; echo "after"'
    )

    assert execute(program).stdout == b"before\nelapsed=5 ms lower\nafter\n"


def test_a_process_that_is_left_behind_is_not_waited_for():
    began = time.monotonic()
    execution = execute("sleep 61.25 & echo elapsed=5 ms; exit 0")

    assert execution.stdout == b"elapsed=5 ms\n"
    assert execution.seconds < 5
    assert time.monotonic() - began < 30
    subprocess.run(["pkill", "-f", "^sleep 61.25$"], check=False)
