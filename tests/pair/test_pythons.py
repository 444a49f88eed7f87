"""The wheel of benchlab-pair runs on Python 3.9 to 3.13, and answers alike on all of them."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.release import build_pair

ROOT = Path(__file__).parents[2]
OLDEST = "3.9"
VERSIONS = (OLDEST, "3.10", "3.11", "3.12", "3.13")
# Each sees the installed modules alone: what a program imports, judged tables, and samples read.
IMPORTED = """
import sys
from runs.tools import registry
import runs.pair.command, runs.pair.frame, runs.pair.mcp_server, runs.pair.versions
registry.every()
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "runs"))
"""
ANSWERED = """
import json, sys
from random import Random
from runs.pair import verdict
from runs.pair.figures import Figures
from runs.tools import monitors, reader, registry
from runs.tools.adapter import UnreadableOutput

def rows(name):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

def reading(tool, text):
    adapter, files = registry.find(tool), {"raw": text.encode()}
    if adapter is None:
        return monitors.read({tool: text.encode()})
    try:
        return reader.tool_of(files), reader.read(adapter, files)
    except UnreadableOutput as refused:
        return refused.code, str(refused)

random = Random(73)
for table in range(int(sys.argv[2])):
    base, head = (
        tuple(round(random.gauss(mean, 3), 3) for _round in range(2 + table % 11))
        for mean in (100, 100 + random.choice((0, 2, 10)))
    )
    found = verdict.answer(Figures("tps", "tx/s", "higher", base, head)).found
    limits = (found.ratio, found.low, found.high)
    print(table, found.verdict, *(f"{limit:.9f}" for limit in limits))
for row in rows("tools.jsonl"):
    print(row["tool"], row["file"], *reading(row["tool"], row["text"]))
for row in rows("pgbench.jsonl")[:: int(sys.argv[3])]:
    print(row["version"], row["case"], *reading("pgbench", row["stdout"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_pair(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel):
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "benchlab_pair"


def answered(python, folder, code, *arguments):
    done = subprocess.run(
        [python, "-W", "error", "-c", code, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def interpreter(version):
    """A Python of this version that the machine has, else the test is skipped."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = (f"python{version}", *pyenv.glob(f"versions/{version}.*/bin/python"))
    for candidate in candidates:
        try:
            subprocess.run([candidate, "--version"], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return str(candidate)
    return pytest.skip(f"this machine has no Python {version}")


@pytest.fixture
def installed(wheel, tmp_path):
    """Install the wheel with its packages for an interpreter, and give its Python."""

    def install(version):
        base = interpreter(version)
        uv = str(Path(sys.executable).parent / "uv")
        python = tmp_path / "venv/bin/python"
        create = [uv, "venv", "--quiet", "--python", base, tmp_path / "venv"]
        subprocess.run(create, check=True)
        install_wheel = [uv, "pip", "install", "--quiet", "--only-binary", ":all:"]
        done = subprocess.run(
            [*install_wheel, "--python", python, wheel],
            capture_output=True,
            text=True,
            check=False,
        )
        if "error sending request" in done.stderr:
            pytest.skip(f"no network brings numpy for Python {version}")
        assert done.returncode == 0, done.stderr
        return python

    return install


def modules(folder):
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for path in folder.glob("runs/**/*.py")
    }


def test_the_wheel_has_what_its_programs_import_and_no_more(unpacked):
    imported = set(answered(sys.executable, unpacked, IMPORTED).split())

    assert not imported - modules(unpacked)
    unused = {name for name in modules(unpacked) - imported if "tools" not in name}
    # They stand where the package itself does, too.
    assert unused == {"runs.pair.package", "runs.pair.start"}


def test_ruff_reads_what_is_installed_as_code_of_the_oldest_python():
    """Else its rules would rewrite such a file into what only newer ones understand."""
    wheel = tomllib.loads((ROOT / "runs/pair/pyproject.toml").read_text())
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    sources = wheel["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    paths = {
        (ROOT / "runs/pair" / source).resolve().relative_to(ROOT) for source in sources
    }
    installed = {
        f"{path}/**/*.py" if (ROOT / path).is_dir() else str(path)
        for path in paths
        if path.parts[0] == "runs" and path.suffix != ".csv"
    }
    targets = ruff["per-file-target-version"]

    assert wheel["project"]["requires-python"] == f">={OLDEST}"
    oldest = {name for name, target in targets.items() if target == "py39"}
    lacking = installed - oldest
    assert lacking == {"runs/pair/package.py", "runs/pair/start.py"}  # below runs/pair
    assert oldest - installed == {"script/benchlab-verify"}


def test_nothing_that_is_installed_needs_a_newer_python(unpacked):
    vermin = Path(sys.executable).parent / "vermin"
    done = subprocess.run(
        [vermin, f"-t={OLDEST}-", "--no-tips", "--violations", "-vvv", unpacked],
        capture_output=True,
        text=True,
        check=False,
    )
    # `re` of Python 3.9 and 3.10 lacks what our patterns are made of.
    own = [
        path.relative_to(unpacked)
        for path in unpacked.glob("runs/**/*.py")
        if re.search(r"^(import re|from re import)\b", path.read_text(), re.MULTILINE)
    ]

    assert (done.returncode, own) == (0, [Path("runs/pair/frame.py")]), done.stdout


@pytest.mark.parametrize(
    "version",
    [OLDEST, *(pytest.param(name, marks=pytest.mark.slow) for name in VERSIONS[1:])],
)
def test_each_python_judges_and_reads_as_ours_does(
    version, installed, unpacked, request
):
    python = installed(version)
    everything = version != OLDEST or request.config.getoption("-m") != "not slow"
    tables, every = (500, 1) if everything else (20, 10)
    arguments = (ROOT / "tests/samples", tables, every)

    expected = answered(sys.executable, unpacked, ANSWERED, *arguments).split("\n")
    (packages,) = python.parent.parent.glob("lib/*/site-packages/benchlab_pair")
    said = answered(str(python), packages, ANSWERED, *arguments).split("\n")
    # The last digits of the clock are the scatter.
    prints = "date +'elapsed={}0.%N ms lower'"
    slower = subprocess.run(
        [
            python.parent / "benchlab-pair",
            f"base={prints.format(10)}",
            f"head={prints.format(11)}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(expected) > 100 + tables
    assert [line for line in said if line not in expected] == []
    assert len(said) == len(expected)
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "elapsed: head is slower than base" in slower.stdout
