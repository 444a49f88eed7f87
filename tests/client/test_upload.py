"""The upload client against a real server, and without one."""

import ast
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchlab.embedded.embedded_server import free_port
from runs.access.services import tokens
from runs.models import Artifact, Run, Upload
from runs.queue.services import artifacts
from tests.api.web_server import WebServer
from tests.client.conftest import CLIENT
from tests.client.forge import Proxy
from tests.unit.tools.pgbench.samples import sample

# A file that somebody has of a run of pgbench.
GOOD = Path(os.environ["BENCHLAB_TEST_FOLDER"]) / "pgbench.out"
NEW = ("--campaign", "nightly", "--scenario", "tpcb-like", "--no-revision")
STORED = (
    201,
    {"Content-Type": "application/json"},
    b'{"url": "u", "state": "finished"}',
)
TOKEN = "blab_0123456789ab_secret"


@pytest.fixture(scope="module", autouse=True)
def good_output():
    GOOD.write_text(sample("18.6/a_simple_update").stdout)


@pytest.fixture
def nobody() -> str:
    """An address at which nobody answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def waiting(tmp_path, kind="json"):
    return sorted((tmp_path / "cache" / "benchlab-upload").glob(f"*.{kind}"))


# Against a real server


def test_a_commands_output_is_uploaded_with_what_is_known_of_machine_and_server(
    upload, reach, connected
):
    subprocess.run(
        ["pgbench", "-i", "-q"],
        env=os.environ | connected,
        capture_output=True,
        check=True,
    )

    done = upload(
        "--campaign",
        "nightly",
        "--scenario",
        "tpcb-like",
        "--level",
        "scale=1",
        "--label",
        "by=test",
        "--revision",
        "4F1C09D2A7BE",
        "--ref",
        "main",
        "--",
        "pgbench",
        "-n",
        "-c",
        "2",
        "-T",
        "1",
        "-P",
        "1",
        **reach,
        **connected,
    )

    run = Run.objects.get()
    assert (done.status, run.state) == (0, "finished"), done.err
    assert done.out.splitlines()[-1] == f"{reach['BENCHLAB_URL']}/runs/{run.pk}/"
    assert "tps = " in done.out
    assert "progress: 1.0 s" in done.err
    assert run.cell.levels["clients"] == 2
    assert run.cell.revision.sha == "4f1c09d2a7be"
    assert run.labels["by"] == "test"
    assert run.hardware.threads == os.cpu_count()
    assert run.environment.architecture == os.uname().machine
    assert run.server_version.startswith("18.")
    assert run.settings.settings["shared_buffers"]["setting"].endswith("MB")
    assert run.measurements.filter(metric__name="tps", value__gt=0).exists()
    assert run.finished_at > run.started_at


def test_settings_that_say_where_the_server_is_or_may_be_secret_stay_there(
    upload, connected, reach
):
    done = upload(*NEW, "--dry-run", str(GOOD), **connected, **reach)

    sent = json.loads(done.out)["postgresql"]["settings"]
    assert {"work_mem", "server_version", "max_connections"} <= set(sent)
    assert not {"data_directory", "port", "primary_conninfo", "archive_command"} & set(
        sent
    )
    assert connected["PGPASSWORD"] not in done.out + done.err


def test_files_are_uploaded_with_their_logs(upload, reach, tmp_path, settings):
    settings.ARTIFACTS_DIR = (
        Path(os.environ["BENCHLAB_VAR"]) / "artifacts"
    )  # the server's
    output = tmp_path / "pgbench.out"
    output.write_text(GOOD.read_text())
    (tmp_path / "notes.txt").write_text("idle machine")

    done = upload(*NEW, "--tool", "pgbench", output, "notes.txt", **reach)

    assert done.status in (0, 70), done.err
    kept = Artifact.objects.get(name="stdout")
    assert artifacts.open_artifact(kept).read().decode() == GOOD.read_text()
    assert Artifact.objects.filter(name="notes.txt").exists()


def test_standard_input_is_uploaded(upload, reach):
    done = upload(*NEW, "-", stdin=GOOD.read_text(), **reach)

    assert done.status == 0, done.err
    assert Run.objects.get().state == "finished"


def test_a_command_that_fails_is_stored_as_failed_and_told(upload, reach, connected):
    done = upload(*NEW, "--", "pgbench", "-n", "no_such_database", **reach, **connected)

    run = Run.objects.get()
    assert (done.status, run.state) == (70, "failed")
    assert f"/runs/{run.pk}/" in done.out
    assert not run.measurements.exists()


def test_what_the_server_refuses_is_told_field_by_field_and_kept(
    upload, reach, tmp_path
):
    done = upload("--campaign", "nightly", "--no-revision", str(GOOD), **reach)

    assert done.status == 65
    assert "/scenario: The campaign nightly is new" in done.err
    assert len(waiting(tmp_path, "refused")) == 1
    assert waiting(tmp_path) == []
    assert not Run.objects.exists()


def test_a_token_without_the_scope_keeps_the_upload(
    upload, reach, project_token, tmp_path
):
    done = upload(
        *NEW, str(GOOD), **(reach | {"BENCHLAB_TOKEN": project_token("read")})
    )

    assert done.status == 77
    assert "upload" in done.err
    assert len(waiting(tmp_path)) == 1


@pytest.fixture
def project_token(token):
    """A token of some scopes."""
    from runs.access.services import projects

    def made(*scopes):
        return tokens.create(
            name="other", scopes=scopes, project=projects.default()
        ).text

    return made


def test_a_server_that_was_away_gets_the_upload_once_when_it_is_back(
    upload, transactional_db, token, tmp_path
):
    port = free_port()
    reach = {"BENCHLAB_URL": f"http://127.0.0.1:{port}", "BENCHLAB_TOKEN": token}

    away = upload(*NEW, "--tries", "2", str(GOOD), **reach)

    assert away.status == 75
    assert "cannot be reached" in away.err
    (kept,) = waiting(tmp_path)
    assert token not in kept.read_text()
    # What reached the server without its answer reaching us is sent again, and stored once.
    copy = kept.with_name("00000000000000000001-again.json")
    copy.write_text(kept.read_text())
    with WebServer(tmp_path, port):
        back = upload("--send-spool", **reach)
    assert back.status == 0, back.err
    assert "sent 2 that had waited" in back.err
    assert waiting(tmp_path) == []
    assert Run.objects.count() == Upload.objects.count() == 1


def test_what_waited_is_sent_with_the_next_upload(upload, web, token, nobody, tmp_path):
    reach = {"BENCHLAB_URL": nobody, "BENCHLAB_TOKEN": token}
    upload(*NEW, "--tries", "1", str(GOOD), **reach)
    (kept,) = waiting(tmp_path)
    url = f"http://127.0.0.1:{web.port}"
    kept.write_text(kept.read_text().replace(nobody, url))

    done = upload(*NEW, str(GOOD), **(reach | {"BENCHLAB_URL": url}))

    assert done.status == 0, done.err
    assert not waiting(tmp_path)
    assert Run.objects.count() == 1  # the same text


def test_what_waits_for_another_server_goes_on_waiting(upload, reach, nobody, tmp_path):
    upload(*NEW, "--tries", "1", str(GOOD), **(reach | {"BENCHLAB_URL": nobody}))

    assert upload("--send-spool", **reach).status == 0
    assert len(waiting(tmp_path)) == 1
    assert not Run.objects.exists()


# Away and back


def test_a_server_that_is_away_may_be_no_failure(upload, nobody, tmp_path):
    reach = {"BENCHLAB_URL": nobody, "BENCHLAB_TOKEN": TOKEN}
    done = upload(
        *NEW, "--tries", "1", "--away-ok", "--spool", "here", str(GOOD), **reach
    )

    assert done.status == 0
    assert len(list((tmp_path / "here").glob("*.json"))) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_it_tries_again_with_the_same_key_after_the_time_that_the_server_names(
    upload, status
):
    answers = [(status, {"Retry-After": "1"}, b"busy")] * 2
    with Proxy(*answers, STORED) as proxy:
        started = time.monotonic()
        done = upload(*NEW, str(GOOD), BENCHLAB_URL=proxy.url, BENCHLAB_TOKEN=TOKEN)

    assert done.status == 0, done.err
    assert time.monotonic() - started >= 2
    sent = [(headers["Idempotency-Key"], body) for _path, headers, body in proxy.asked]
    assert len(sent) == 3
    assert len({key for key, _body in sent}) == 1
    assert "trying again in 1 s" in done.err


def test_an_answer_that_is_not_benchlabs_keeps_the_upload(upload, tmp_path):
    with Proxy((404, {"Content-Type": "text/html"}, b"<p>nothing here")) as proxy:
        done = upload(*NEW, str(GOOD), BENCHLAB_URL=proxy.url, BENCHLAB_TOKEN=TOKEN)

    assert done.status == 65
    assert "is the address right?" in done.err
    assert len(waiting(tmp_path)) == 1


def test_a_token_is_not_carried_on_to_another_server(upload):
    with Proxy(STORED) as other:
        lead = (307, {"Location": f"{other.url}/api/v1/uploads/"}, b"")
        with Proxy(lead) as proxy:
            done = upload(*NEW, str(GOOD), BENCHLAB_URL=proxy.url, BENCHLAB_TOKEN=TOKEN)

    assert done.status == 64
    assert f"redirects to {other.url}" in done.err
    assert other.asked == []


# The verdict


def test_the_verdict_is_printed_kept_and_is_the_exit_status(upload, tmp_path):
    verdict = json.dumps({"overall": "slower", "exit_code": 1}).encode()
    json_answer = (200, {"Content-Type": "application/json"}, verdict)
    markdown = (200, {"Content-Type": "text/markdown"}, b"**slower**: tps -7 %")
    with Proxy(STORED, json_answer, markdown) as proxy:
        done = upload(
            "--campaign",
            "nightly",
            "--revision",
            "abcdef0",
            "--compare",
            "main",
            "--markdown",
            "verdict.md",
            str(GOOD),
            BENCHLAB_URL=proxy.url,
            BENCHLAB_TOKEN=TOKEN,
        )

    assert done.status == 1, done.err
    assert "**slower**: tps -7 %" in done.out
    assert (tmp_path / "verdict.md").read_text() == "**slower**: tps -7 %\n"
    asked = [path for path, _headers, _body in proxy.asked]
    query = "campaign=nightly&base=history%3Amain&head=revision%3Aabcdef0"
    assert asked[1:] == [
        f"/api/v1/compare/?{query}",
        f"/api/v1/compare/?{query}&format=md",
    ]


def test_a_job_is_run_once_more_as_a_job_of_its_own(upload):
    with Proxy(STORED, STORED, STORED) as proxy:
        done = upload(
            "--campaign",
            "nightly",
            "--revision",
            "abcdef0",
            "--job",
            "ci/7",
            "--again",
            "3",
            "--",
            "cat",
            str(GOOD),
            BENCHLAB_URL=proxy.url,
            BENCHLAB_TOKEN=TOKEN,
        )

    assert done.status == 0, done.err
    jobs = [
        json.loads(gzip.decompress(body))["job"]
        for _path, _headers, body in proxy.asked
    ]
    assert len(jobs) == 3
    assert len(set(jobs)) == 1
    assert re.fullmatch("ci/7/again-[0-9a-f]{8}", jobs[0])


@pytest.mark.parametrize(
    ("exit_code", "options", "status"),
    [
        (2, (), 2),
        (2, ("--undecided-ok",), 0),
        (3, ("--undecided-ok",), 3),
        (0, (), 0),
        (0, ("--strict",), 2),
    ],
)
def test_undecided_may_pass_and_nothing_else_does(upload, exit_code, options, status):
    overall = {0: "no_sign", 2: "undecided", 3: "not_comparable"}[exit_code]
    verdict = json.dumps({"exit_code": exit_code, "overall": overall}).encode()
    json_answer = (200, {"Content-Type": "application/json"}, verdict)
    with Proxy(
        STORED, json_answer, (200, {"Content-Type": "text/markdown"}, b"words")
    ) as proxy:
        done = upload(
            "--campaign",
            "nightly",
            "--revision",
            "abcdef0",
            "--compare",
            "main",
            "--metric",
            "tps",
            "--effect",
            "5",
            *options,
            str(GOOD),
            BENCHLAB_URL=proxy.url,
            BENCHLAB_TOKEN=TOKEN,
        )

    assert done.status == status, done.err
    assert "&metric=tps&effect=5" in proxy.asked[1][0]


# What it knows of CI and git


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_SHA": "a" * 40,
                "GITHUB_REF_NAME": "main",
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_RUN_ID": "7",
            },
            (
                "main",
                f"https://github.com/o/r/commit/{'a' * 40}",
                "https://github.com/o/r/actions/runs/7",
            ),
        ),
        (
            {
                "GITLAB_CI": "true",
                "CI_COMMIT_SHA": "a" * 40,
                "CI_COMMIT_REF_NAME": "main",
                "CI_PROJECT_URL": "https://gl.example.org/o/r",
                "CI_JOB_URL": "https://gl.example.org/o/r/-/jobs/7",
            },
            (
                "main",
                f"https://gl.example.org/o/r/-/commit/{'a' * 40}",
                "https://gl.example.org/o/r/-/jobs/7",
            ),
        ),
        (
            {
                "JENKINS_URL": "https://j.example.org/",
                "GIT_COMMIT": "a" * 40,
                "GIT_BRANCH": "origin/main",
                "BUILD_URL": "https://j.example.org/job/7/",
            },
            ("main", None, "https://j.example.org/job/7/"),
        ),
        (
            {
                "BUILDKITE": "true",
                "BUILDKITE_COMMIT": "a" * 40,
                "BUILDKITE_BRANCH": "main",
                "BUILDKITE_BUILD_URL": "https://buildkite.com/o/p/builds/7",
            },
            ("main", None, "https://buildkite.com/o/p/builds/7"),
        ),
    ],
)
def test_the_commit_and_the_job_are_those_of_the_ci(upload, environment, expected):
    done = upload("--campaign", "nightly", "--dry-run", str(GOOD), **environment)

    sent = json.loads(done.out)
    revision = sent["revision"]
    assert revision["sha"] == "a" * 40
    assert (revision["ref"], revision.get("url"), sent["labels"]["job_url"]) == expected


JENKINS = {"JENKINS_URL": "https://j.example.org/", "GIT_COMMIT": "a" * 40}
REMOTE = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "remote.upstream.url",
    "GIT_CONFIG_VALUE_0": "git@example.org:o/p.git",
}
GITLAB = {"GITLAB_CI": "true", "CI_COMMIT_SHA": "a" * 40, "CI_COMMIT_REF_NAME": "main"}
AZURE = {"TF_BUILD": "True", "BUILD_SOURCEVERSION": "a" * 40}
DRONE = {"DRONE": "true", "DRONE_COMMIT_SHA": "a" * 40, "DRONE_BRANCH": "main"}
WOODPECKER = {
    "CI_SYSTEM_NAME": "woodpecker",
    "CI_COMMIT_SHA": "a" * 40,
    "CI_COMMIT_BRANCH": "main",
}


@pytest.mark.parametrize(
    ("environment", "branch"),
    [
        (JENKINS | {"GIT_BRANCH": "origin/main"}, "main"),
        (JENKINS | {"GIT_BRANCH": "refs/heads/main"}, "main"),
        (JENKINS | {"GIT_BRANCH": "refs/remotes/upstream/main"}, "main"),
        (JENKINS | REMOTE | {"GIT_BRANCH": "upstream/main"}, "main"),
        (JENKINS | REMOTE | {"GIT_BRANCH": "feature/main"}, "feature/main"),
        (JENKINS | {"CHANGE_BRANCH": "main", "CHANGE_FORK": "eve"}, "eve:main"),
        (JENKINS | {"CHANGE_BRANCH": "topic"}, "topic"),
        (GITLAB, "main"),
        (
            GITLAB
            | {
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "eve/p",
                "CI_MERGE_REQUEST_PROJECT_PATH": "o/p",
            },
            "eve/p:main",
        ),
        (
            GITLAB
            | {
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "eve/tools/p",
                "CI_MERGE_REQUEST_PROJECT_PATH": "o/tools/p",
            },
            "eve/tools/p:main",
        ),
        (
            GITLAB
            | {
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "o/p",
                "CI_MERGE_REQUEST_PROJECT_PATH": "o/p",
            },
            "main",
        ),
        (AZURE | {"BUILD_SOURCEBRANCH": "refs/heads/main"}, "main"),
        (
            AZURE
            | {
                "BUILD_SOURCEBRANCH": "refs/pull/7/merge",
                "SYSTEM_PULLREQUEST_SOURCEBRANCH": "refs/heads/main",
                "SYSTEM_PULLREQUEST_ISFORK": "True",
                "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER": "7",
            },
            "fork-7:main",
        ),
        (JENKINS | {"GIT_BRANCH": "detached"}, None),
        (
            JENKINS | {"GIT_BRANCH": "origin/main", "GERRIT_CHANGE_NUMBER": "7"},
            "pull-7:main",
        ),
        (
            JENKINS
            | {
                "GIT_BRANCH": "origin/main",
                "gitlabSourceNamespace": "eve",
                "gitlabTargetNamespace": "o",
            },
            "eve:main",
        ),
        (DRONE | {"DRONE_BRANCH": "main"}, "main"),
        (
            DRONE | {"DRONE_SOURCE_BRANCH": "main", "DRONE_PULL_REQUEST": "7"},
            "pull-7:main",
        ),
        (
            WOODPECKER
            | {"CI_COMMIT_SOURCE_BRANCH": "topic", "CI_COMMIT_PULL_REQUEST": "7"},
            "pull-7:topic",
        ),
        (
            {
                "APPVEYOR": "True",
                "APPVEYOR_REPO_COMMIT": "a" * 40,
                "APPVEYOR_REPO_BRANCH": "main",
                "APPVEYOR_REPO_NAME": "o/p",
                "APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH": "main",
                "APPVEYOR_PULL_REQUEST_HEAD_REPO_NAME": "eve/p",
            },
            "eve/p:main",
        ),
        (
            {
                "SEMAPHORE": "true",
                "SEMAPHORE_GIT_SHA": "a" * 40,
                "SEMAPHORE_GIT_BRANCH": "main",
                "SEMAPHORE_GIT_PR_BRANCH": "topic",
                "SEMAPHORE_GIT_REPO_SLUG": "o/p",
                "SEMAPHORE_GIT_PR_SLUG": "o/p",
            },
            "topic",
        ),
        (
            {
                "BITBUCKET_BUILD_NUMBER": "7",
                "BITBUCKET_COMMIT": "a" * 40,
                "BITBUCKET_BRANCH": "x",
            },
            "x",
        ),
        (
            {
                "CIRRUS_CI": "true",
                "CIRRUS_CHANGE_IN_REPO": "a" * 40,
                "CIRRUS_BRANCH": "main",
            },
            "main",
        ),
        (
            {
                "CODEBUILD_BUILD_ID": "p:1",
                "CODEBUILD_RESOLVED_SOURCE_VERSION": "a" * 40,
                "CODEBUILD_WEBHOOK_HEAD_REF": "refs/heads/main",
                "CODEBUILD_WEBHOOK_TRIGGER": "pr/7",
            },
            "pull-7:main",
        ),
        ({"TEAMCITY_VERSION": "2025.03", "BUILD_VCS_NUMBER": "a" * 40}, None),
        (
            {
                "BUILDKITE": "true",
                "BUILDKITE_COMMIT": "a" * 40,
                "BUILDKITE_BRANCH": "main",
                "BUILDKITE_REPO": "git@github.com:o/p.git",
                "BUILDKITE_PULL_REQUEST_REPO": "https://github.com/eve/p.git",
            },
            "eve/p:main",
        ),
    ],
)
def test_a_branch_has_one_spelling_and_a_forks_main_is_not_main(
    upload, environment, branch
):
    done = upload("--campaign", "nightly", "--dry-run", str(GOOD), **environment)

    assert json.loads(done.out)["revision"].get("ref") == branch


@pytest.mark.parametrize(
    ("head", "branch"),
    [("eve/r", "eve/r:main"), ("o/r", "main"), (None, "pull-7:main")],
)
def test_a_fork_on_github_is_the_one_of_the_event(upload, tmp_path, head, branch):
    event = tmp_path / "event.json"
    if head:
        event.write_text(
            json.dumps({"pull_request": {"head": {"repo": {"full_name": head}}}})
        )
    environment = {
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_ACTIONS": "true",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_HEAD_REF": "main",
        "GITHUB_EVENT_PATH": str(event),
    }

    done = upload("--campaign", "nightly", "--dry-run", str(GOOD), **environment)

    assert json.loads(done.out)["revision"]["ref"] == branch


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        (
            "workflow_run",
            {
                "workflow_run": {
                    "head_repository": {"full_name": "eve/r"},
                    "head_branch": "main",
                }
            },
            "eve/r:main",
        ),
        ("issue_comment", {"issue": {"number": 7, "pull_request": {}}}, "pull-7"),
        (
            "pull_request_target",
            {"pull_request": {"head": {"repo": {"full_name": "o/r"}, "ref": "topic"}}},
            "topic",
        ),
    ],
)
def test_a_request_that_main_measures_for_github_is_not_main(
    upload, tmp_path, name, event, expected
):
    event.get("workflow_run", {})["head_sha"] = "b" * 40
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REF_NAME": "main",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(path),
    }
    if name != "workflow_run":  # that has no tree
        git = [
            "git",
            "-C",
            str(tmp_path),
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
        ]
        subprocess.check_call([*git, "init", "-q"])
        subprocess.check_call([*git, "commit", "-q", "--allow-empty", "-m", "x"])

    done = upload("--campaign", "nightly", "--dry-run", str(GOOD), **environment)

    revision = json.loads(done.out)["revision"]
    assert revision["ref"] == expected
    assert revision["sha"] != "a" * 40


def test_without_ci_the_commit_is_that_of_the_working_tree(upload, tmp_path):
    def git(*argv):
        argv = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *argv]
        return subprocess.check_output(argv, cwd=tmp_path, text=True).strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("checkout", "-q", "-b", "topic")
    for number in range(2):
        git("commit", "-q", "--allow-empty", "-m", f"{number} {'x' * 300}\n\nmore")

    done = upload("--campaign", "nightly", "--dry-run", str(GOOD))
    compared = upload(
        "--campaign", "nightly", "--compare", "main", "--dry-run", str(GOOD)
    )
    asked = upload(
        "--campaign", "nightly", "--dry-run", str(GOOD), CHANGE_TARGET="main"
    )
    alone = upload("--campaign", "nightly", "--no-author", "--dry-run", str(GOOD))
    git("checkout", "-q", "main")
    on_main = upload(
        "--campaign", "nightly", "--compare", "main", "--dry-run", str(GOOD)
    )
    git("checkout", "-q", "topic")

    revision = json.loads(done.out)["revision"]
    assert (revision["sha"], revision["ref"]) == (git("rev-parse", "HEAD"), "topic")
    assert revision["parents"] == [git("rev-parse", "HEAD~1")]
    assert revision["committed_at"] == git("show", "-s", "--format=%cI")
    assert revision["author"] == "t"
    assert revision["subject"].startswith("1 xxx")
    assert (len(revision["subject"]), revision["subject"][-1]) == (200, "…")
    assert "merge_base" not in revision
    assert "author" not in json.loads(alone.out)["revision"]
    base = {
        "sha": git("rev-parse", "main"),
        "committed_at": git("show", "-s", "--format=%cI", "main"),
    }
    assert json.loads(compared.out)["revision"]["merge_base"] == base
    assert json.loads(asked.out)["revision"]["merge_base"] == base
    assert "merge_base" not in json.loads(on_main.out)["revision"]


def test_outside_of_git_there_is_no_revision(upload):
    done = upload("--campaign", "nightly", "--dry-run", str(GOOD))

    assert "revision" not in json.loads(done.out)


def test_a_server_elsewhere_is_not_given_this_machines_hardware(upload):
    away = {"PGHOST": "db.invalid", "PGCONNECT_TIMEOUT": "1"}

    auto = upload(*NEW, "--dry-run", str(GOOD), **away)
    always = upload(*NEW, "--dry-run", "--host-facts", "always", str(GOOD), **away)

    assert "hardware" not in json.loads(auto.out)
    assert "runs on another machine" in auto.err
    assert "the server's settings are left out" in auto.err
    assert json.loads(always.out)["hardware"]["memory_bytes"] > 0


# Secrets, signals, and words


def test_the_command_does_not_see_the_token(upload):
    done = upload(
        *NEW, "--dry-run", "--", "env", BENCHLAB_TOKEN=TOKEN, BENCHLAB_TOKEN_FILE="x"
    )

    assert "PATH=" in done.out
    assert TOKEN not in done.out + done.err


def test_a_token_may_be_in_a_file(upload, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    with Proxy(STORED) as proxy:
        done = upload(*NEW, "--token-file", "token", str(GOOD), BENCHLAB_URL=proxy.url)

    assert done.status == 0, done.err
    assert proxy.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"


def test_who_ends_the_client_ends_the_command_and_its_result_is_still_told(
    plain, tmp_path
):
    with Proxy(STORED) as proxy:
        argv = [
            sys.executable,
            str(CLIENT),
            *NEW,
            "--",
            "sh",
            "-c",
            "echo started; exec sleep 60",
        ]
        client = subprocess.Popen(
            argv,
            cwd=tmp_path,
            env=plain | {"BENCHLAB_URL": proxy.url, "BENCHLAB_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert client.stdout.readline() == b"started\n"
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=30)

    assert len(proxy.asked) == 1


def test_a_failure_may_be_on_standard_error_alone(upload, tmp_path):
    (out := tmp_path / "out").touch()
    (err := tmp_path / "err").write_text("FATAL: no connection\n")

    done = upload("--campaign", "c", "--dry-run", "--stderr", str(err), str(out))

    assert json.loads(done.out)["raw"]["stderr"] == "FATAL: no connection\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--campaign is missing"),
        (["--campaign", "c"], "give a FILE"),
        (["--campaign", "c", "--"], "no command after --"),
        (["--campaign", "c", "out", "--", "true"], "files or a command"),
        (["--campaign", "c", "no_such_file"], "no_such_file: No such file"),
        (["--campaign", "c", "--", "no_such_command"], "no_such_command cannot be run"),
        (["--campaign", "c", "-"], "standard input is empty"),
        (["--campaign", "c", "--level", "clients", "-"], "'clients' is not NAME=VALUE"),
        (
            ["--campaign", "c", "--dsn", "postgresql://u:p@h/d", "-"],
            "--dsn has a password",
        ),
        (
            ["--campaign", "c", "--dsn", "host=h password=p", "-"],
            "--dsn has a password",
        ),
        (
            ["--campaign", "c", "--url", "bench.example.org", "-"],
            "must begin with https://",
        ),
        (
            ["--campaign", "c", "--url", "https://u:p@bench.example.org", "-"],
            "leave it out",
        ),
        (["--send-spool", "out"], "no new run"),
    ],
)
def test_wrong_use_is_told_with_what_to_do(upload, argv, message):
    done = upload(*argv, BENCHLAB_URL="http://127.0.0.1:9", BENCHLAB_TOKEN=TOKEN)

    assert done.status == 64
    assert message in done.err
    assert "Traceback" not in done.err


def test_what_is_missing_is_told_before_the_command_runs(upload, tmp_path):
    for environment in ({}, {"BENCHLAB_URL": "http://127.0.0.1:9"}):
        done = upload(*NEW, "--", "touch", "ran", **environment)
        assert done.status == 64
    assert "BENCHLAB_TOKEN" in done.err
    assert not (tmp_path / "ran").exists()


def test_it_is_one_file_that_an_older_python_reads():
    tree = ast.parse(CLIENT.read_text(), feature_version=(3, 8))

    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    imported |= {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_the_server_gives_the_client_away_and_its_checksum_stands_beside_the_tokens(
    client, admin_client, tmp_path
):
    served = client.get("/download/benchlab-upload")
    (tmp_path / "benchlab-upload").write_bytes(served.content)

    told = subprocess.check_output(
        ["sha256sum", "benchlab-upload"], cwd=tmp_path, text=True
    )

    assert served.content == CLIENT.read_bytes()
    assert told.strip() in admin_client.get("/tokens/").content.decode()


def test_a_reader_that_has_enough_ends_the_client_quietly(tmp_path):
    """As `benchlab-upload ... | head` does."""
    command = f"{sys.executable} {CLIENT} --campaign one --dry-run {GOOD} | head -c 1"
    environment = {**os.environ, "HOME": str(tmp_path)}

    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )

    assert done.stdout == b"{"
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
