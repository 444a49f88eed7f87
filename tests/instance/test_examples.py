"""Every request and command that the guides show works on a fresh instance, as it stands there.

Those of docs/deployment.md, docs/ci.md and docs/target-setup.md have tests of their own.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.instance.conftest import REPOSITORY, environment, new_token

pytestmark = pytest.mark.instance

GUIDES = (
    "docs/api.md",
    "docs/reports.md",
    "docs/export-format.md",
    "docs/seals.md",
    "docs/observation.md",
    pytest.param(
        "docs/scaling.md", marks=pytest.mark.slow
    ),  # exports all there is, twice
)
PLACE = "http://localhost:8000"
SHOWN = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the guides begin with a word of their own: what it stands for, and where it is executed.
ELSEWHERE = {
    "sh first.sh": "tests/web/runs: the script of a run, executed",
    "benchlab-versions --campaign-run": "tests/client/test_campaign_run.py",
    "manage.py acknowledge": "tests/domain/services/seals: an amendment, acknowledged",
}
# A run's output by pgbench 18.6, for the one command that needs a database of its own.
SAMPLE = ("18.6", "a_tpcb_j1")
SAYS = "#!/bin/sh\ncat <<'END'\n{}\nEND\n"


def blocks(guide: str) -> list[str]:
    text = (REPOSITORY / guide).read_text()
    plain = [block for language, block in SHOWN.findall(text) if not language]
    return [block for block in plain if not block.startswith(tuple(ELSEWHERE))]


def command(folder, name: str, text: str) -> None:
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)


@pytest.fixture(scope="module")
def reader(instance, tmp_path_factory):
    """Who follows the guides: a folder, the programs, and an environment with tokens."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    manage = f'#!/bin/sh\nexec {sys.executable} {REPOSITORY}/manage.py "$@"\n'
    command(folder, "manage.py", manage)
    samples = (REPOSITORY / "tests/samples/pgbench.jsonl").read_text().splitlines()
    said = next(
        each
        for each in map(json.loads, samples)
        if (each["version"], each["case"]) == SAMPLE
    )
    command(folder, "pgbench", SAYS.format(said["stdout"]))
    shown = SHOWN.findall((REPOSITORY / "docs/api.md").read_text())
    described = next(block for language, block in shown if language == "json")
    (folder / "run.json").write_text(described)

    variables = environment(instance) | {
        "CURL_HOME": str(folder),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "CI_JOB_ID": "17",
    }
    subprocess.run(
        [folder / "bin/manage.py", "create_project", "lab"], env=variables, check=True
    )
    variables["TOKEN"] = new_token(instance, "--scopes", "admin", "examples")
    of_the_project = ("--project", "lab", "--scopes", "admin", "lab")
    variables["BENCHLAB_TOKEN"] = new_token(instance, *of_the_project)
    yield folder, variables
    # What the guide queues would be measured beside the tests that follow, unless it has ended.
    stop = f"curl -XPOST -H 'Authorization: Bearer {variables['TOKEN']}' {instance.url}/api/v1"
    subprocess.run(
        ["sh", "-c", f"{stop}/campaigns/16-and-18/cancel/"], env=variables, check=False
    )


@pytest.mark.parametrize("guide", GUIDES)
def test_every_example_works_as_it_stands(guide, reader, instance, first_campaign):
    folder, variables = reader
    [key] = (instance.var / "seals").glob("*.pub")
    ours = {
        PLACE: instance.url,
        "/srv/parquet": f"{folder}/parquet",
        "3f0c….pub": str(key),
    }
    ours |= {"script/": f"{REPOSITORY}/script/"}
    # Eighteen runs of a minute would take both processors from the tests beside them.
    quick = '"remeasures": 0, "parameters": {"scale": 1, "duration": 1}}'
    ours['[1, 2, 4]}, "repeats": 3}'] = f'[1]}}, "repeats": 1, {quick}'
    ours["BENCHLAB_VAR=var .venv/bin/python manage.py"] = "manage.py"
    for block in blocks(guide):
        text = re.sub(r"blab_(4f1c09d2a7be_\.\.\.|…)", variables["TOKEN"], block)
        for shown, here in ours.items():
            text = text.replace(shown, here)
        done = subprocess.run(
            ["sh", "-ec", text],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
