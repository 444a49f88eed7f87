"""Two sides measured in turn in one job, against a real server: `benchlab-upload --pair`."""

import json
import os
import re
import subprocess

import pytest

from runs.models import Campaign, Run

# Prints what it is told with a scatter of 0.3 %: no answer here depends on a quiet machine.
PROGRAM = """\
import random, sys
print(f"elapsed={float(sys.argv[1]) * random.gauss(1, 0.003):.3f} ms lower")
"""
NEW = ("--campaign", "pairs", "--scenario", "tpcb-like", "--tool", "lines")


@pytest.fixture
def checkout(tmp_path, plain):
    """Two commits, the second on a branch that left main; gives the shas of both."""
    (tmp_path / "bench.py").write_text(PROGRAM)

    def git(*argv):
        identity = {
            f"GIT_{who}_{what}": f"{who}@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        done = subprocess.run(
            ["git", *argv],
            cwd=tmp_path,
            env=plain | identity,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main", ".")
    git("commit", "-q", "--allow-empty", "-m", "base")
    git("checkout", "-q", "-b", "topic")
    git("commit", "-q", "--allow-empty", "-m", "head")
    return git("rev-parse", "main"), git("rev-parse", "topic")


def takes(milliseconds):
    return f"python3 bench.py {milliseconds}"


def test_a_loss_of_a_twentieth_is_found_in_five_rounds(upload, reach, checkout):
    base, head = checkout
    # Another job has measured the base as well, on its own and much faster.
    for _repeat in range(3):
        upload(
            *NEW,
            "--revision",
            base,
            "--ref",
            "main",
            "--",
            "sh",
            "-c",
            takes(200),
            **reach,
        )

    done = upload(
        *NEW,
        "--compare",
        "main",
        "--rounds",
        5,
        "--pair",
        f"base={takes(400)}",
        f"head={takes(420)}",
        **reach,
    )

    assert done.status == 1, done.err
    assert "### 🔴 Slower" in done.out
    low, high = re.search(r"([\d.]+)(?: to ([\d.]+))? % more", done.out).groups()
    # Of 20 such intervals one leaves the true 5 out.
    assert 2 < float(low) <= float(high or low) < 8
    runs = list(Run.objects.filter(labels__has_key="pair").order_by("pk"))
    assert [run.cell.revision.sha for run in runs].count(head) == 5
    assert {run.cell.revision.sha for run in runs} == {base, head}
    assert len({run.labels["job"] for run in runs}) == 1
    assert [run.round for run in runs] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [int(run.labels["order"]) for run in runs] == list(range(1, 11))
    sides = [run.labels["pair"] for run in runs]
    assert sides == (sides[:2] + sides[1::-1]) * 2 + sides[:2]


def test_what_does_not_differ_is_told_the_same_by_one_command_against_itself(
    upload, reach, checkout
):
    done = upload(*NEW, "--pair", f"same={takes(600)}", **reach)

    assert done.status == 0, done.out + done.err
    assert "### ⚪ The same" in done.out
    assert re.search(r"within [\d.]+ %", done.out)
    assert re.search(r"5 rounds here leave up to [\d.]+ % open", done.err)
    assert set(Campaign.objects.values_list("slug", flat=True)) == {"pairs-same"}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_both_sides_at_the_same_time_have_half_of_the_cores_each(
    upload, reach, checkout, tmp_path
):
    said = (
        "import os; print('cores=%d cores neutral' % len(os.sched_getaffinity(0)));"
        "open('used','a').write(','.join(map(str, sorted(os.sched_getaffinity(0)))) + '\\n')"
    )
    command = f'sleep 0.3 && {takes(300)} && python3 -c "{said}"'

    done = upload(
        *NEW,
        "--together",
        "--rounds",
        2,
        "--pair",
        f"base={command}",
        f"head={command}",
        **reach,
    )

    assert done.status in (0, 1, 2), done.err
    runs = list(Run.objects.order_by("pk"))
    for one, other in (runs[:2], runs[2:]):
        assert max(one.started_at, other.started_at) < min(
            one.finished_at, other.finished_at
        )
    used = [
        set(line.split(",")) for line in (tmp_path / "used").read_text().splitlines()
    ]
    assert len(used) == 4
    assert len({frozenset(each) for each in used}) == 2
    assert not used[0] & next(each for each in used if each != used[0])


def test_a_pair_is_kept_without_a_token_and_sent_by_another_job(
    upload, reach, checkout, tmp_path
):
    folder = tmp_path / "spool"
    sides = (f"base={takes(10)}", f"head={takes(10)}")
    url = {"BENCHLAB_URL": reach["BENCHLAB_URL"]}

    kept = upload(
        *NEW, "--keep", "--spool", folder, "--rounds", 2, "--pair", *sides, **url
    )

    assert kept.status == 0, kept.err
    bodies = [
        json.loads(path.read_text())["body"] for path in sorted(folder.glob("*.json"))
    ]
    assert [body["round"] for body in bodies] == [0, 0, 1, 1]
    assert upload("--send-spool", "--spool", folder, **reach).status == 0
    assert Run.objects.count() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pair", "base=true"), "--pair takes base=COMMAND and head=COMMAND"),
        (
            ("--pair", "base=true", "head=true", "--rounds", "1"),
            "--rounds must be 2 or more",
        ),
        (
            ("--pair", "base=true", "head=true", "--no-revision"),
            "a pair has two commits",
        ),
        (
            ("--pair", "base=true", "head=true", "--revision", "4f1c09d2a7be"),
            "the commit of the base is not known here",
        ),
        (
            ("--pair", "same=true", "--round", "1"),
            "measures by its own commands and rounds",
        ),
    ],
)
def test_what_is_no_pair_is_told_before_anything_runs(
    upload, nobody_there, options, message
):
    done = upload(*NEW, *options, **nobody_there)

    assert done.status == 64
    assert message in done.err


@pytest.fixture
def nobody_there():
    return {"BENCHLAB_URL": "http://127.0.0.1:9", "BENCHLAB_TOKEN": "blab_x"}


def test_a_side_that_fails_is_stored_and_there_is_no_verdict(upload, reach, checkout):
    sides = ("base=echo elapsed=1 ms; exit 3", f"head={takes(10)}")

    done = upload(*NEW, "--rounds", 2, "--pair", *sides, **reach)

    assert done.status == 70, done.err
    assert "there is no verdict" in done.err
    assert Run.objects.count() == 4


# `benchlab-pair` judges by itself, and uploads what it measured where a campaign is named.
NAMED = ("--campaign", "pairs", "--scenario", "tpcb-like", "--rounds", 3)


def ratio_of_server(client, base, head):
    query = {
        "campaign": "pairs",
        "base": f"revision:{base}",
        "head": f"revision:{head}",
    }
    (row,) = [
        row
        for row in client.get("/api/v1/compare/", query).json()["rows"]
        if row["metric"] in {"elapsed", "seconds"}
    ]
    return row


def test_a_pair_judged_here_is_uploaded_and_judged_alike(
    client, pair, reach, checkout, tmp_path
):
    base, head = checkout
    written = tmp_path / "pair.json"

    done = pair(
        *NAMED,
        "--json",
        written,
        f"base={takes(400)}",
        f"head={takes(440)}",
        **reach,
    )

    assert done.status == 1, done.err
    assert f"Uploaded 6 runs: {reach['BENCHLAB_URL']}/campaigns/pairs/" in done.err
    told = json.loads(written.read_text())
    row = ratio_of_server(client, base, head)
    assert row["verdict"] == told["verdict"] == "slower"
    for name in ("ratio", "low", "high"):
        assert row[name] == pytest.approx(told[name], rel=1e-9)
    runs = Run.objects.order_by("pk")
    assert [run.labels["order"] for run in runs] == list("123456")
    assert [run.round for run in runs] == [0, 0, 1, 1, 2, 2]


def test_a_command_that_prints_no_figures_is_uploaded_with_its_time(
    client, pair, reach, checkout
):
    done = pair(*NAMED, "base=sleep 0.02", "head=sleep 0.3", **reach)

    assert done.status == 1, done.err
    assert ratio_of_server(client, *checkout)["verdict"] == "slower"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "which server?"),
        ({"BENCHLAB_URL": "http://127.0.0.1:1"}, "no token"),
    ],
)
def test_what_an_upload_lacks_is_told_before_anything_is_measured(
    pair, checkout, tmp_path, environment, reason
):
    done = pair(*NAMED, "base=touch ran", "head=touch ran", **environment)

    assert done.status == 64
    assert reason in done.err
    assert not (tmp_path / "ran").exists()


def test_a_server_that_is_away_leaves_the_verdict_and_keeps_the_runs(
    pair, reach, checkout
):
    away = reach | {"BENCHLAB_URL": "http://127.0.0.1:1"}

    done = pair(*NAMED, f"base={takes(400)}", f"head={takes(440)}", **away)

    assert done.status == 1
    assert "elapsed: head is slower than base" in done.out
    assert "cannot be reached" in done.err
    assert "benchlab-upload --send-spool" in done.err
    assert not Run.objects.exists()
