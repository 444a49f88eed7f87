"""The action and the component, run as GitHub and GitLab run them, against a forge of our own."""

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from runs.access.services import projects, tokens
from runs.bisections.services import bisections
from runs.models import Bisection, Campaign, Revision, Run
from tests import factories
from tests.api.web_server import ROOT
from tests.client.forge import Forge
from tests.client.test_ci_docs import Checkout

ACTION = yaml.safe_load((ROOT / "ci" / "github" / "action.yml").read_text())
HEAD = "f" * 40
CONDITIONS = {
    "inputs.act == 'measure'": lambda act: act == "measure",
    "inputs.act == 'report'": lambda act: act == "report",
    "inputs.act == 'publish'": lambda act: act == "publish",
    "inputs.act != 'measure'": lambda act: act != "measure",
}
# Of a checkout that the job with the secrets must not run, whatever measured code has written.
PROGRAMS = (
    "benchlab-comment",
    "benchlab-upload",
    "json.py",
    "urllib.py",
    "sitecustomize.py",
)
STEAL = "import os; open({!r}, 'a').write(os.environ.get('BENCHLAB_TOKEN', ''))\n"


def planted(folder):
    """Programs that tell the token, in place of ours."""
    stolen = folder / "stolen"
    for name in PROGRAMS:
        (folder / name).write_text(STEAL.format(str(stolen)))
    return stolen


@pytest.fixture
def forge():
    with Forge() as made:
        yield made


@pytest.fixture
def here(tmp_path, plain):
    folder = tmp_path / "work"
    folder.mkdir()
    return Checkout(folder, plain)


class Actions:
    """Runs the steps of the composite action: what its expressions give is worked out here."""

    def __init__(self, here, forge, reach) -> None:
        self.here = here
        self.forge = forge
        self.given = {
            name: str(each.get("default", ""))
            for name, each in ACTION["inputs"].items()
        }
        self.given |= {
            "url": reach["BENCHLAB_URL"],
            "token": reach["BENCHLAB_TOKEN"],
            "campaign": "demo",
            "scenario": "tpcb-like",
            "run": "pgbench -n -c 2 -j 2 -T 60",
            "github-token": "secret",
        }

    def uses(self, event, *, acts=("measure", "report"), **inputs) -> int:
        """The status of the last job. The second one has no checkout, but the artifact."""
        status = 0
        for act in acts:
            inputs["act"] = act
            status = self.job(event, self.given | inputs)
            if status:
                break
        return status

    def job(self, event, given) -> int:
        sha = self.here.git("rev-parse", "HEAD")
        path = self.here.folder / "event.json"
        path.write_text(json.dumps(event))
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_SHA": sha,
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_REF_NAME": self.here.git("rev-parse", "--abbrev-ref", "HEAD"),
            "GITHUB_API_URL": self.forge.url,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_STEP_SUMMARY": "summary.md",
            "GITHUB_RUN_ID": "77",
            "GITHUB_ACTION_PATH": str(ROOT / "ci" / "github"),
        }
        for step in ACTION["runs"]["steps"]:
            if "run" not in step or not CONDITIONS[step["if"]](given["act"]):
                continue
            env = {name: expanded(text, given) for name, text in step["env"].items()}
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.here.folder,
                env=self.here.environment | runner | env,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            self.out = done.stdout + done.stderr
            if done.returncode:
                break
        return done.returncode


def expanded(text, given):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)


@pytest.fixture
def actions(here, forge, reach):
    return Actions(here, forge, reach)


PULL = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}


def test_a_pull_request_has_one_comment_that_is_edited_and_a_check(
    actions, here, forge
):
    here.replay.measure("18.6")
    assert actions.uses({}) == 0, actions.out
    assert not forge.own()
    here.commit("topic")
    here.replay.measure("18.6", factor=0.7)
    assert actions.uses(PULL) == 1, actions.out

    (comment,) = forge.own()
    text = comment["body"]
    assert text.startswith("<!-- benchlab: demo -->\n### 🔴 Slower")
    assert "| 🔴 slower" in text
    assert re.search(
        r"[▁▂▃▄▅▆▇█]{2,} \[history\]\(http://127[^)]*/campaigns/demo/history/", text
    )
    assert re.search(r"\]\(http://127[^)]*/runs/\d+/\)", text)
    assert "[CI job](https://github.com/o/r/actions/runs/77)" in text
    check = forge.checks[-1]
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "failure")
    assert text.partition("\n")[2].strip() in (here.folder / "summary.md").read_text()

    here.commit("topic")
    here.replay.measure("18.6")
    assert actions.uses(PULL) == 0, actions.out
    (comment,) = forge.own()
    assert "Slower" not in comment["body"]
    assert forge.checks[-1]["conclusion"] == "success"
    assert all(each["body"].endswith("mine") for each in forge.comments[:120])


def test_a_forge_that_is_away_loses_no_verdict(actions, here, forge):
    here.replay.measure("18.6")
    actions.uses({})
    here.commit("topic")
    forge.is_broken = True
    here.replay.measure("18.6", factor=0.7)

    assert actions.uses(PULL) == 1
    assert "no comment: " in actions.out


def test_a_fork_without_secrets_is_reported_by_a_second_job(actions, here, forge):
    here.replay.measure("18.6")
    assert actions.uses({}) == 0, actions.out
    main = here.git("rev-parse", "HEAD")
    here.commit("topic")
    here.replay.measure("18.6", factor=0.7)
    assert actions.uses(PULL, token="") == 0, actions.out
    assert Run.objects.count() == 3

    # What a fork may have written into its artifact.
    kept = sorted((here.folder / ".benchlab").glob("*.json"))
    assert len(kept) == 3
    hostile = json.loads(kept[0].read_text())
    hostile["url"] = "http://evil.example.org"
    hostile["body"] |= {
        "job": Run.objects.first().labels["job"],
        "campaign": "other",
        "server": "lab",
        "labels": {"job_url": "http://evil"},
    }
    hostile["body"]["revision"] = {"sha": main, "ref": "main"}
    kept[0].write_text(json.dumps(hostile))
    forge.pulls = [
        {
            "number": 7,
            "html_url": "https://github.com/o/r/pull/7",
            "merge_commit_sha": "e" * 40,
            "head": {"sha": HEAD, "ref": "topic", "user": {"login": "fork"}},
            "base": {"sha": main},
        }
    ]
    event = {
        "head_branch": "topic",
        "head_sha": HEAD,
        "html_url": "https://github.com/o/r/actions/1",
        "head_repository": {"owner": {"login": "fork"}},
    }

    assert actions.uses({"workflow_run": event}, acts=["publish"]) == 0, actions.out

    (comment,) = forge.own()
    # Whatever job the fork names: it is its own, and nobody knows yet how jobs scatter.
    assert "between one job of each" in comment["body"]
    made = Revision.objects.get(sha="e" * 40)
    assert (made.ref, made.parents[0]) == ("fork:topic", main)
    runs = Run.objects.filter(cell__revision=made)
    assert [run.campaign.slug for run in runs] == ["demo"] * 3
    assert {run.labels["job_url"] for run in runs} == {
        "https://github.com/o/r/actions/1"
    }
    assert Run.objects.filter(cell__revision__sha=main).count() == 3


# What the two sides of a pair take, of what each checkout has built, with a scatter of 0.3 %.
BENCH = """\
import random
print(f"elapsed={float(open('built').read()) * random.gauss(1, 0.003):.3f} ms lower")
"""
PAIR = {
    "pair": "true",
    "rounds": "4",
    "run": "python3 bench.py",
    "build": "cp cost built",
    "upload-options": "--tool lines",
}


def takes(here, milliseconds, branch):
    """A commit of a program that takes so long."""
    if branch != "main":
        here.git("checkout", "-q", "-B", branch, "main")
    (here.folder / "bench.py").write_text(BENCH)
    (here.folder / "cost").write_text(str(milliseconds))
    here.git("add", "bench.py", "cost")
    here.commit("main")
    return here.git("rev-parse", "HEAD")


def test_a_pair_is_checked_out_built_and_measured_in_turn(actions, here, forge):
    base = takes(here, 200, "main")
    takes(here, 230, "slow")
    assert actions.uses(PULL, **PAIR) == 1, actions.out

    (comment,) = forge.own()
    assert "### 🔴 Slower" in comment["body"]
    assert f"Base: [{base[:12]}" in comment["body"]
    assert Run.objects.filter(cell__revision__sha=base).count() == 4
    assert len(set(Run.objects.values_list("labels__job", flat=True))) == 1
    assert here.git("worktree", "list").count("\n") == 0

    # A fork's figures of our commit are in a campaign of their own.
    Run.objects.all().delete()
    head = takes(here, 200, "fork")
    assert actions.uses(PULL, token="", **PAIR) == 0, actions.out
    pull = {
        "number": 7,
        "html_url": "https://github.com/o/r/pull/7",
        "merge_commit_sha": head,
        "head": {"sha": HEAD, "ref": "topic", "user": {"login": "fork"}},
        "base": {"sha": base},
    }
    forge.pulls = [pull]
    event = {
        "head_branch": "topic",
        "head_sha": HEAD,
        "html_url": "https://github.com/o/r/actions/1",
        "head_repository": {"owner": {"login": "fork"}},
    }
    assert actions.uses({"workflow_run": event}, acts=["publish"]) == 0, actions.out
    assert set(Run.objects.values_list("campaign__slug", flat=True)) == {"demo-forks"}
    assert Run.objects.filter(cell__revision__sha=base).count() == 4
    assert Revision.objects.get(sha=base).ref != "main"


def test_the_first_commit_has_no_other_side_and_a_shallow_checkout_says_so(
    actions, here
):
    (here.folder / "bench.py").write_text(BENCH)
    (here.folder / "cost").write_text("10")
    assert actions.uses({}, **PAIR) == 0, actions.out
    assert Run.objects.count() == 3

    (here.folder / ".git" / "shallow").write_text(here.git("rev-parse", "HEAD") + "\n")
    assert actions.uses({}, **PAIR) == 64
    assert "fetch-depth 0" in actions.out


def test_the_component_of_gitlab_comments_once_and_sets_a_status(
    here, forge, reach, tmp_path
):
    spec, jobs = yaml.safe_load_all(
        (ROOT / "ci" / "gitlab" / "benchlab.yml").read_text()
    )
    given = {
        name: str((each or {}).get("default", ""))
        for name, each in spec["spec"]["inputs"].items()
    }
    given |= {
        "url": reach["BENCHLAB_URL"],
        "campaign": "demo",
        "scenario": "tpcb-like",
        "run": "pgbench -n -c 2 -j 2 -T 60",
    }

    def folder_of(name):
        """The second job has no checkout, but what somebody has left there, and the artifact."""
        if name == "benchlab-measure":
            return here.folder
        assert jobs[name]["variables"]["GIT_STRATEGY"] == "none"
        assert jobs["benchlab-measure"]["artifacts"]["paths"] == [".benchlab"]
        folder = tmp_path / "report"
        shutil.copytree(
            here.folder / ".benchlab", folder / ".benchlab", dirs_exist_ok=True
        )
        planted(folder)
        return folder

    def pipeline(merge_request="", *, is_fork=False):
        runner = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{forge.url}/api/v4",
            "CI_PROJECT_ID": "3",
            "CI_COMMIT_SHA": here.git("rev-parse", "HEAD"),
            "CI_JOB_URL": "https://gitlab.test/j/1",
            "CI_COMMIT_REF_NAME": here.git("rev-parse", "--abbrev-ref", "HEAD"),
            "CI_MERGE_REQUEST_IID": merge_request,
        }
        secrets = {"BENCHLAB_TOKEN": reach["BENCHLAB_TOKEN"], "GITLAB_TOKEN": "secret"}
        for name, job in jobs.items():
            variables = {
                key: re.sub(
                    r"\$\[\[ inputs\.([\w-]+) \]\]", lambda of: given[of[1]], text
                )
                for key, text in job["variables"].items()
            }
            more = secrets if name == "benchlab-report" and not is_fork else {}
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", "\n".join(job["script"])],
                cwd=folder_of(name),
                env=here.environment | runner | variables | more,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            if done.returncode:
                break
        return done.returncode, done.stdout + done.stderr

    here.replay.measure("17.8")
    assert pipeline()[0] == 0
    here.commit("topic")
    here.replay.measure("17.8", factor=0.7)
    assert pipeline("7")[0] == 1
    here.commit("topic")
    here.replay.measure("17.8")
    status, out = pipeline("7")
    assert status == 0, out

    (comment,) = forge.own()
    assert "[CI job](https://gitlab.test/j/1)" in comment["body"]
    assert "Slower" not in comment["body"]
    assert [each["conclusion"] for each in forge.checks] == [
        "success",
        "failed",
        "success",
    ]

    given["decide-server"] = "lab"
    here.commit("fork")
    here.replay.measure("17.8")
    status, out = pipeline("7", is_fork=True)
    assert (status, "nothing is decided here" in out) == (0, True), out
    assert not (tmp_path / "report" / "stolen").exists()

    # Programs that are not those of the component's release are not run.
    given["comment-sha256"] = "0" * 64
    here.replay.measure("17.8")
    status, out = pipeline("7")
    assert (status, "benchlab-comment of http://127" in out) == (1, True), out


def test_the_component_knows_its_programs_and_actions_are_pinned_by_commit():
    spec, jobs = yaml.safe_load_all(
        (ROOT / "ci" / "gitlab" / "benchlab.yml").read_text()
    )
    for name in ("comment", "upload"):
        program = (ROOT / "script" / f"benchlab-{name}").read_bytes()
        stated = spec["spec"]["inputs"][f"{name}-sha256"]["default"]
        assert stated == hashlib.sha256(program).hexdigest(), (
            f"write it into benchlab.yml: {name}"
        )
    assert jobs["benchlab-report"]["environment"]["name"] == "$[[ inputs.environment ]]"

    # BenchLab's own stands for a copy of its repository.
    texts = [
        path.read_text()
        for path in (ROOT / "ci/github/action.yml", ROOT / "docs/ci.md")
    ]
    used = re.findall(r"uses: (?!example/benchlab)(\S+)", "\n".join(texts))
    assert len(used) >= 5
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each)] == []


def test_what_measures_has_no_secret():
    for step in ACTION["runs"]["steps"]:
        if step["if"] == "inputs.act == 'measure'":
            assert "token" not in json.dumps(step).lower()
    page = (
        (ROOT / "docs" / "ci.md").read_text().partition("\n## In the pull request\n")[2]
    )
    jobs = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])["jobs"]
    assert "secrets." not in json.dumps(jobs["pgbench"])
    assert jobs["report"]["environment"] == "benchlab"


def test_an_undecided_verdict_is_decided_by_measuring_both_in_turn(
    actions, here, forge
):
    here.replay.measure("18.6", noise=0.04)
    assert actions.uses({}) == 0, actions.out
    main = here.git("rev-parse", "HEAD")
    here.commit("topic")
    here.replay.measure("18.6", noise=0.05, factor=0.97)
    topic = here.git("rev-parse", "HEAD")
    lab = factories.server("lab")
    for sha in (main, topic):
        number = factories.version_num("18.4")
        more = {"has_psql": True, "pgbench_version_num": number}
        factories.installation(lab, "18.4", bindir=f"/builds/pg-{sha[:10]}/bin", **more)
    scopes = ["read", "upload", "queue"]
    token = tokens.create(name="decide", scopes=scopes, project=projects.default()).text
    inputs = {"token": token, "decide-server": "lab"}
    inputs["decide-options"] = "--levels clients=2 --poll 0.2 --patience 1"

    with ThreadPoolExecutor(1) as workers:
        status = workers.submit(actions.uses, PULL, **inputs)
        measure_slower(topic)
        assert status.result(timeout=60) == 1, actions.out

    (comment,) = forge.own()
    assert "### 🔴 Slower" in comment["body"]
    assert "Measured in turn on lab" in comment["body"]
    assert f"**`{topic[:12]}` made it slower**" in comment["body"]
    assert [each["conclusion"] for each in forge.checks[-2:]] == ["neutral", "failure"]


def test_what_cannot_be_decided_ends_as_the_table_says(actions, here, monkeypatch):
    here.replay.measure("18.6", noise=0.04)
    assert actions.uses({}) == 0, actions.out
    here.commit("topic")
    here.replay.measure("18.6", noise=0.05, factor=0.97)
    scopes = ["read", "upload", "queue"]
    token = tokens.create(name="decide", scopes=scopes, project=projects.default()).text
    inputs = {"token": token, "decide-server": "lab"}
    inputs["decide-options"] = "--levels clients=2 --poll 0.2 --patience 1"
    lab = factories.server("lab")

    # No build there: nothing to compare with. A server that is not there: wrong use.
    assert actions.uses(PULL, **inputs) == 3, actions.out
    assert "lab has no installation of" in actions.out
    again = {"acts": ["report"]}  # with what the first job has measured
    assert actions.uses(PULL, **again, **inputs | {"decide-server": "away"}) == 64, (
        actions.out
    )
    for sha in (here.git("rev-parse", "main"), here.git("rev-parse", "topic")):
        more = {"has_psql": True, "pgbench_version_num": factories.version_num("18.4")}
        factories.installation(lab, "18.4", bindir=f"/builds/pg-{sha[:10]}/bin", **more)
    reading = tokens.create(
        name="less", scopes=["read", "upload"], project=projects.default()
    ).text
    assert actions.uses(PULL, **again, **inputs | {"token": reading}) == 77, actions.out

    # A job that is ended, and one that has waited long enough, leave nothing that measures.
    short = inputs | {"decide-options": "--levels clients=2 --poll 0.1 --patience 0.01"}
    assert actions.uses(PULL, **again, **short) == 75, actions.out
    assert [each.state for each in Bisection.objects.all()] == ["cancelled"]


def test_a_job_that_is_ended_leaves_nothing_that_measures(monkeypatch):
    program = runpy.run_path(str(ROOT / "script" / "benchlab-comment"))
    with pytest.raises(program["Ending"]) as ending:
        program["_stopped"](15, None)
    assert ending.value.status == 143


def test_the_options_of_deciding_in_the_docs_are_words_without_quotes():
    page = (ROOT / "docs" / "ci.md").read_text()
    words = re.search(r"decide-options: (.+)", page)[1].split()
    parsed = runpy.run_path(str(ROOT / "script" / "benchlab-comment"))["parsed"]

    given = parsed(["decide", "--server", "lab", *words, "--campaign", "nightly"])

    assert given.levels == ["clients=8"]
    assert given.commits == ["9b1d0c77aa01", "c02f6b3199de"]
    assert given.campaign == "nightly"


def measure_slower(sha):
    """What workers do: finish the runs that were queued, those of a commit at 95 %."""
    deadline = time.monotonic() + 60
    while not (found := Campaign.objects.filter(origin="executed").first()):
        assert time.monotonic() < deadline, "nothing is queued"
        time.sleep(0.2)
    for number, run in enumerate(found.runs.select_related("cell").order_by("pk")):
        level = 0.95 if sha[:10] in run.cell.levels["bindir"] else 1.0
        factories.finish(run, tps=1000 * level * (1 + 0.001 * (number % 3 - 1)))
    Campaign.objects.filter(pk=found.pk).update(state="finished")
    bisections.go_on()
