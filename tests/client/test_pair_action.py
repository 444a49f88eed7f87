"""The action and the component of benchlab-pair, run as GitHub and GitLab run them: no BenchLab."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from tests.api.web_server import ROOT
from tests.client.forge import BOT, Forge

ACTION = yaml.safe_load((ROOT / "ci/github/pair/action.yml").read_text())
BENCH = """\
import random
print(f"elapsed={VALUE * random.gauss(1, 0.003):.3f} ms lower")
"""
RUN = f"{sys.executable} bench.py"


@pytest.fixture
def forge():
    with Forge() as running:
        yield running


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


class Runner:
    """A checkout of two commits, and the jobs of a workflow."""

    def __init__(self, folder, forge):
        self.folder, self.forge = folder / "work", forge
        self.folder.mkdir()
        self.temporary = folder / "temporary"
        programs = self.temporary / "benchlab-pair/bin"
        programs.mkdir(parents=True)
        # What the step `Install` makes: the wheel has its own test (tests/pair).
        program = programs / "benchlab-pair"
        program.write_text(
            f"#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m runs.pair.command"
            ' "$@"\n'
        )
        program.chmod(0o755)
        git(self.folder, "init", "-q", "-b", "main")
        self.commit(400)

    def commit(self, value):
        (self.folder / "bench.py").write_text(BENCH.replace("VALUE", str(value)))
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", str(value))

    def job(self, act, event=None, **inputs):
        """The status of a job, after which `out` has what it said."""
        given = {
            name: each.get("default", "") for name, each in ACTION["inputs"].items()
        }
        given |= {"act": act, "run": RUN, "github-token": "secret", **inputs}
        path = self.temporary / "event.json"
        path.write_text(json.dumps(event or {}))
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT / "ci/github/pair"),
            "GITHUB_API_URL": self.forge.url,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ID": "77",
            "GITHUB_SHA": git(self.folder, "rev-parse", "HEAD"),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary.md"),
            "RUNNER_TEMP": str(self.temporary),
        }
        plain = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BENCHLAB", "GITHUB", "GITLAB", "CI"))
        }
        status = 0
        for step in ACTION["runs"]["steps"]:
            if step.get("if") != f"inputs.act == '{act}'" or "run" not in step:
                continue
            env = {
                name: re.sub(
                    r"\$\{\{ inputs\.([\w-]+) \}\}", lambda name: given[name[1]], text
                )
                for name, text in step["env"].items()
            }
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                env=plain | runner | env,
                capture_output=True,
                text=True,
                check=False,
            )
            self.out, status = done.stdout + done.stderr, done.returncode
        return status

    @property
    def figures(self):
        return self.folder / ".benchlab/pair.json"


@pytest.fixture
def runner(tmp_path, forge):
    return Runner(tmp_path, forge)


PULL = {"pull_request": {"number": 7, "head": {"sha": "f" * 40}}}


def test_a_loss_is_red_and_one_comment_is_edited(runner, forge):
    runner.commit(440)

    assert runner.job("measure") == 1, runner.out
    assert not forge.calls
    assert runner.job("tell", PULL) == 1, runner.out
    assert runner.job("tell", PULL) == 1, runner.out

    (comment,) = forge.own()
    assert comment["body"].startswith("<!-- benchlab: pair -->\n**elapsed: head is ")
    assert "slower than base" in comment["body"]
    assert forge.checks[-1]["conclusion"] == "failure"
    assert forge.checks[-1]["head_sha"] == "f" * 40
    assert forge.checks[-1]["details_url"].endswith("/o/r/actions/runs/77")
    assert "slower" in (runner.temporary / "summary.md").read_text()
    assert git(runner.folder, "worktree", "list").count("\n") == 0


def test_no_loss_is_green(runner, forge):
    runner.commit(380)

    assert runner.job("measure", build="true") == 0, runner.out
    assert runner.job("tell", PULL) == 0, runner.out

    assert forge.checks[-1]["conclusion"] == "success"


def test_a_build_that_fails_in_one_checkout_ends_the_job(runner):
    runner.commit(380)

    assert runner.job("measure", build="grep -q 380 bench.py") != 0
    assert not runner.figures.exists()


def test_without_the_parent_it_says_what_the_checkout_needs(runner):
    assert runner.job("measure") == 64
    assert "fetch-depth: 2" in runner.out


# Forks: the first job runs their code, and can write anything


FORK = {
    "workflow_run": {
        "head_repository": {"owner": {"login": "stranger"}},
        "head_branch": "topic",
        "head_sha": "e" * 40,
    }
}


def pull_of_fork(forge):
    forge.pulls.append(
        {
            "number": 7,
            "head": {
                "ref": "topic",
                "sha": "e" * 40,
                "user": {"login": "stranger"},
            },
        }
    )


def test_a_forks_figures_are_told_in_its_own_pull_request(runner, forge):
    runner.commit(440)
    runner.job("measure")
    pull_of_fork(forge)

    assert runner.job("tell", FORK) == 1, runner.out

    (comment,) = forge.own()
    assert comment["user"] == BOT
    assert forge.checks[-1]["head_sha"] == "e" * 40


def written(runner, **changed):
    """What a fork's job might have written."""
    base = [400.0, 401.0, 399.0, 400.5]
    figure = {"unit": "ms", "direction": "lower", "base": base, "head": base}
    whole = {"metric": "elapsed", "figures": {"elapsed": figure}, "looks": []}
    runner.figures.parent.mkdir(exist_ok=True)
    runner.figures.write_text(json.dumps(whole | changed))
    return figure


NAMES = (
    "a|b",
    "<img src=x>",
    "@all",
    "[x](y)",
    "`y`",
    "see https://evil.example",
    "WWW.evil.example",
    "x" * 100,
    "",
    "a\nb",
)


def test_no_text_of_a_fork_gets_into_the_comment(runner, forge):
    pull_of_fork(forge)
    figure = written(runner)
    for name in NAMES:
        written(runner, metric=name, figures={name: figure})
        assert runner.job("tell", FORK) == 3, name
    assert not forge.own()

    written(runner, sentence="**Merge this now**", commands={"base": "evil"})
    runner.job("tell", FORK)

    (comment,) = forge.own()
    assert "Merge" not in comment["body"]
    assert "evil" not in comment["body"]


@pytest.mark.parametrize(
    "changed",
    [
        {"figures": {}},
        {"figures": []},
        {"figures": {"elapsed": {"unit": "ms"}}},
        {"metric": "other"},
        {"looks": ["x"]},
        {"looks": [True]},
        {"looks": 5},
    ],
)
def test_what_are_no_figures_is_no_verdict(runner, forge, changed):
    pull_of_fork(forge)
    written(runner, **changed)

    assert runner.job("tell", FORK) == 3, runner.out
    assert not forge.own()


@pytest.mark.parametrize(
    "changed",
    [
        {"base": [1.0]},
        {"base": [1.0, 2.0]},
        {"base": ["x"] * 4},
        {"base": [float("nan")] * 4},
        {"base": [True] * 4},
        {"direction": "sideways"},
        {"unit": "x" * 200},
        {"unit": None},
    ],
)
def test_figures_that_are_none_are_no_verdict(runner, forge, changed):
    pull_of_fork(forge)
    figure = written(runner)
    written(runner, figures={"elapsed": figure | changed})

    assert runner.job("tell", FORK) == 3, runner.out
    assert not forge.own()


def test_a_link_to_another_file_tells_nothing_of_it(runner, forge, tmp_path):
    pull_of_fork(forge)
    secret = tmp_path / "secret"
    secret.write_bytes(b"top secret \xff")
    runner.figures.parent.mkdir()
    runner.figures.symlink_to(secret)

    assert runner.job("tell", FORK) == 3
    assert "top secret" not in runner.out
    assert not forge.own()


def test_the_job_that_comments_runs_nothing_of_the_other(runner, forge):
    runner.commit(440)
    runner.job("measure")
    for name in ("json.py", "sitecustomize.py", "numpy.py", "benchlab-pair"):
        (runner.folder / name).write_text("raise SystemExit(99)")

    assert runner.job("tell", PULL) == 1, runner.out


# GitLab


def component():
    spec, jobs = yaml.safe_load_all((ROOT / "ci/gitlab/pair.yml").read_text())
    return spec["spec"]["inputs"], jobs


def test_the_component_states_the_sha_of_its_program():
    inputs, _jobs = component()
    program = (ROOT / "script/benchlab-comment").read_bytes()

    assert inputs["comment-sha256"]["default"] == hashlib.sha256(program).hexdigest()


def test_the_component_measures_and_tells(runner, forge):
    inputs, jobs = component()
    runner.commit(440)
    given = {
        name: str((each or {}).get("default", "")) for name, each in inputs.items()
    }
    given["comment-url"] = f"file://{ROOT}/script/benchlab-comment"
    values = {
        "RUN": RUN,
        "BUILD": "",
        "METRIC": "",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(runner.folder, "rev-parse", "HEAD^1"),
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": git(runner.folder, "rev-parse", "HEAD"),
        "CI_PROJECT_ID": "3",
        "CI_API_V4_URL": f"{forge.url}/api/v4",
        "CI_JOB_URL": "https://gitlab.example/jobs/1",
        "GITLAB_CI": "true",
        "GITLAB_TOKEN": "secret",
    }
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BENCHLAB", "GITHUB", "GITLAB", "CI"))
    }

    def job(name):
        # The first line installs; what it makes is here already.
        script = "\n".join(jobs[name]["script"][1:])
        script = script.replace(
            "/tmp/benchlab-pair", f"{runner.temporary}/benchlab-pair"
        )
        script = script.replace("/tmp/", f"{runner.temporary}/")
        script = re.sub(
            r"\$\[\[ inputs\.([\w-]+) \]\]", lambda name: given[name[1]], script
        )
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=runner.folder,
            env=plain | values,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    assert job("benchlab-pair")[0] == 1
    status, out = job("benchlab-pair-tell")
    assert status == 1, out
    (note,) = forge.own()
    assert "slower than base" in note["body"]
    assert "GITLAB_TOKEN" not in json.dumps(jobs["benchlab-pair"])
    assert jobs["benchlab-pair-tell"]["variables"]["GIT_STRATEGY"] == "none"
