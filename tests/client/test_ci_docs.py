"""The snippets of docs/ci.md, each run as a CI would run it, against a real server and pgbench."""

import re
import subprocess

import pytest
import yaml

from runs.models import Run, Token
from tests.api.web_server import ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text()
SHA = "c0ffee" + 34 * "0"
CI = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SHA": SHA,
    "GITHUB_REF_NAME": "main",
    "GITHUB_STEP_SUMMARY": "summary.md",
}
GITLAB = {"GITLAB_CI": "true", "CI_COMMIT_SHA": SHA, "CI_COMMIT_REF_NAME": "main"}
JENKINS = {"JENKINS_URL": "https://j.example.org/", "GIT_COMMIT": SHA, "GIT_BRANCH": "main"}


def block(section, language):
    """The first block of a section in this language."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL).group(1)


def steps_of_github():
    (job,) = yaml.safe_load(block("GitHub Actions", "yaml"))["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def steps_of_gitlab():
    (job,) = yaml.safe_load(block("GitLab CI", "yaml")).values()
    return ["\n".join(job["script"])]


def steps_of_jenkins():
    return [re.search(r"sh '''(.*?)'''", block("Jenkins", "groovy"), re.DOTALL).group(1)]


@pytest.fixture
def run(plain, reach, connected, tmp_path):
    """Run steps as a CI does, each in a shell of its own; short, and of a small database."""

    def ran(steps, **environment):
        for step in steps:
            short = step.replace("-T 60", "-T 1").replace("-s 10", "-s 1")
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", short],
                cwd=tmp_path,
                env=plain | reach | connected | environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            # 1 is the verdict that something is slower, which may be so on a busy machine.
            is_slower = done.returncode == 1 and "### 🔴 Slower" in done.stdout
            assert is_slower or done.returncode in (0, 2), done.stdout + done.stderr
        return done

    return ran


@pytest.mark.parametrize(
    ("campaign", "steps", "environment", "repeats"),
    [
        ("gitlab", steps_of_gitlab, GITLAB, 3),
        ("jenkins", steps_of_jenkins, JENKINS, 3),
        ("curl", lambda: [block("curl alone", "sh")], {}, 1),
    ],
)
def test_a_snippet_uploads_what_was_measured(run, campaign, steps, environment, repeats):
    done = run(steps(), **environment)

    assert done.returncode == 0, done.stderr
    runs = Run.objects.filter(campaign__slug=campaign, state="finished")
    assert runs.count() == repeats
    for each in runs:
        assert each.measurements.filter(metric__name="tps", value__gt=0).exists()
        assert each.cell.levels["clients"] == 2
        assert (each.cell.revision.sha if environment else None) == (SHA if environment else None)


def test_the_snippet_of_github_compares_with_the_main_branch(run, tmp_path):
    first = run(steps_of_github(), **CI)
    topic = CI | {"GITHUB_SHA": "f00d" + 36 * "0", "GITHUB_REF_NAME": "topic"}

    done = run(steps_of_github(), **topic)

    assert Run.objects.filter(campaign__slug="actions", state="finished").count() == 6
    assert "tps" in done.stdout, first.stderr + done.stderr
    assert "|" in (tmp_path / "summary.md").read_text()


def test_the_client_is_got_as_the_page_says(run):
    assert run([block("Once", "sh")]).stdout.strip().isdigit()


def test_no_snippet_has_a_secret_in_an_argument():
    assert Token.Scope.UPLOAD in PAGE
    for found in re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL):
        assert "Bearer $" not in found
