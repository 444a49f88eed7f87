"""What stands in the way of a release.

Every command of docs/deployment.md is executed by a test.

Blocks are executed as they stand, by the tests that this names for their heading: what is added to
a block is executed as well, and a block below a new heading fails here.
"""

import gettext
import hashlib
import io
import os
import re
import runpy
import subprocess
import sys
import zipfile
from datetime import date
from importlib import metadata

import pytest
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from benchlab import extras
from tests import release
from tests.deployment import guide
from tests.migrated import ROOT
from tests.release import problems_of_changelog, problems_of_version

TODAY = date(2026, 11, 22)
GOOD = "# Changelog\n\n## 0.2.0 (2026-11-22)\n\n- A thing.\n\n## 0.1.0 (2026-11-20)\n\n- Another.\n"


def test_a_dated_section_of_the_version_is_good():
    assert problems_of_changelog(GOOD, "0.2.0", TODAY) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("## 0.2.0 (2026-11-22)", "## Unreleased", "begins with Unreleased"),
        ("0.2.0", "0.3.0", "begins with 0.3.0"),
        (" (2026-11-22)", "", "has no date"),
        ("2026-11-22", "2026-11-23", "dated in the future"),
        ("- A thing.", "", "is empty"),
    ],
)
def test_any_other_changelog_is_not(old, new, told):
    [problem] = problems_of_changelog(GOOD.replace(old, new), "0.2.0", TODAY)
    assert told in problem


def test_a_version_comes_after_the_last_one():
    assert problems_of_version("0.10.0", "v0.9.1") == []
    assert problems_of_version("0.1.0", None) == []
    assert problems_of_version("0.2.0", "v0.2.0") == [
        "Version 0.2.0 does not come after v0.2.0."
    ]


def test_a_wheel_holds_what_runs_and_its_command_runs_it(tmp_path):
    wheel = release.build(tmp_path)
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    [of_pair] = tmp_path.glob("benchlab_pair-*.whl")
    assert lines == [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in (wheel, of_pair)
    ]

    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    home = tmp_path / "benchlab_home"
    folders = ["benchlab", "extras", "runs", "templates", "static", "locale"]
    tracked = subprocess.run(
        ["git", "ls-files", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert [each for each in tracked if not (home / each).is_file()] == []
    assert list(home.glob("locale/*/LC_MESSAGES/django.mo"))
    [described] = tmp_path.glob("benchlab-*.dist-info/METADATA")
    needed = re.findall(
        r"^Requires-Dist: (django==\S+)", described.read_text(), re.MULTILINE
    )
    assert needed == [f"django=={pins(LOCK)['django']}"]

    assert re.findall(
        r"^Requires-Dist: boto3==\S+; extra == .s3.",
        described.read_text(),
        re.MULTILINE,
    )

    entry = "from benchlab_home.command import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", entry, "manage", "check"],
        cwd="/",
        env=os.environ
        | {"BENCHLAB_VAR": str(tmp_path / "var"), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no issues" in told.stdout, told.stderr


LOCK = (ROOT / "requirements.lock").read_text()


def pins(text: str) -> dict[str, str]:
    found = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, re.MULTILINE
    )
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_what_installs_the_packages_has_its_hash_for_linux_and_macos():
    """Without the hashes a first start would run whatever the index has under that name."""
    text = (ROOT / "script/lib/uv.txt").read_text()
    assert re.search(r"^uv==[\d.]+ \\$", text, re.MULTILINE)
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= 6
    script = (ROOT / "script/lib/environment.sh").read_text()
    assert '--require-hashes --only-binary=:all: -r "$root/script/lib/uv.txt"' in script


def test_each_lock_has_what_its_requirements_ask_for_with_hashes_and_extras_fit_the_rest():
    for file in (ROOT / "requirements.txt", *(ROOT / "extras").glob("*.txt")):
        text = file.with_suffix(".lock").read_text()
        asked, locked = pins(file.read_text()), pins(text)
        wrong = {
            name: version
            for name, version in asked.items()
            if locked.get(name) != version
        }
        assert not wrong, "run script/requirements"
        shared = pins(LOCK).keys() & locked.keys()
        assert {name: locked[name] for name in shared} == {
            name: pins(LOCK)[name] for name in shared
        }
        blocks = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
        assert len(blocks) == len(locked)
        assert [
            block.split()[0] for block in blocks if "--hash=sha256:" not in block
        ] == []


def test_an_extra_that_is_missing_is_named_with_what_installs_it(tmp_path, monkeypatch):
    assert [extras.missing(each.stem) for each in extras.FOLDER.glob("*.txt")] == [
        [],
        [],
        [],
    ]
    monkeypatch.setattr(metadata, "distributions", list)
    assert extras.missing("s3") == ["django-storages", "boto3"]
    assert os.access(ROOT / extras.command("s3").split()[0], os.X_OK)
    monkeypatch.setattr(extras, "SCRIPT", tmp_path / "absent")
    assert extras.command("s3") == "benchlab extra s3"


def test_an_extra_is_installed_by_its_command_once(tmp_path):
    variables = os.environ | {"BENCHLAB_VENV": str(tmp_path / "venv")}
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True
    )
    (tmp_path / "venv/bin/uv").symlink_to(f"{sys.prefix}/bin/uv")
    words = [ROOT / "script/extra", "archive-export"]
    told = subprocess.run(
        words, env=variables, check=True, capture_output=True, text=True
    )
    assert "installing the extra archive-export, 61 MB" in told.stderr
    subprocess.run([tmp_path / "venv/bin/python", "-c", "import duckdb"], check=True)
    again = subprocess.run(
        words, env=variables, check=True, capture_output=True, text=True
    )
    assert again.stderr == ""


# What uv and pip print where they reach no index, a dead proxy, a full disk.
FAILURES = {
    "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution": (
        "connect this machine, set https_proxy, or PIP_INDEX_URL"
    ),
    "ProxyError('Cannot connect to proxy.', NewConnectionError('[Errno 111] refused'))": (
        "the proxy http://dead:1 brings no packages: correct https_proxy"
    ),
    "cause: Failed to copy to x: No space left on device (os error 28)": "set BENCHLAB_VENV",
}


@pytest.mark.parametrize("printed", FAILURES)
def test_packages_that_do_not_come_are_one_line_with_the_remedy(tmp_path, printed):
    (tmp_path / "log").write_text(
        f"WARNING: Retrying\n{printed}\nERROR: No matching distribution\n"
    )
    script = f". {ROOT}/script/lib/environment.sh; venv=/v; log={tmp_path}/log; explain"
    told = subprocess.run(
        ["sh", "-c", script],
        env={"https_proxy": "http://dead:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    [line] = told.stderr.splitlines()
    assert (told.returncode, FAILURES[printed] in line) == (1, True), line


CATALOGUE = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"

#, python-format
msgctxt "of a run"
msgid "%(n)d \\"run\\"\\n"
msgid_plural ""
"%(n)d \\t"
"runs"
msgstr[0] "\\\\ 一"
msgstr[1] "二"
#, fuzzy
msgid "guessed"
msgstr "x"
msgid "not yet"
msgstr ""
#~ msgid "gone"
#~ msgstr "y"
"""


@pytest.fixture
def compile_all():
    return runpy.run_path(str(ROOT / "script/lib/catalog.py"))["compile_all"]


def test_translations_are_compiled_as_babel_compiles_them(compile_all, tmp_path):
    folder = tmp_path / "ja" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    for text in (
        CATALOGUE,
        *(each.read_text() for each in ROOT.glob("locale/*/*/django.po")),
    ):
        (folder / "django.po").write_text(text)
        (folder / "django.mo").unlink(missing_ok=True)
        compile_all(tmp_path)
        theirs = io.BytesIO()
        write_mo(theirs, read_po(io.StringIO(text)))
        files = (
            io.BytesIO((folder / "django.mo").read_bytes()),
            io.BytesIO(theirs.getvalue()),
        )
        ours, expected = (gettext.GNUTranslations(each)._catalog for each in files)
        assert {key: ours[key] for key in ours if key} == {
            key: expected[key] for key in expected if key
        }


@pytest.mark.parametrize(
    "wrong",
    [
        'msgid "a"\nmsgstr "b"\nmsgstr "c"',
        'msgid "a"\nmsgstr "b"\n' * 2,
        "<<<<<<< HEAD",
    ],
)
def test_a_catalogue_that_a_merge_has_spoilt_is_refused(compile_all, tmp_path, wrong):
    folder = tmp_path / "ja" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "django.po").write_text(wrong)
    with pytest.raises((ValueError, OSError)):
        compile_all(tmp_path)
    assert not (folder / "django.mo").exists()


COMPOSITION = "tests/deployment/test_composition.py"
SYSTEMD = "tests/deployment/test_without_containers.py"
SERVER = "tests/deployment/test_without_containers.py"
COPIES = "tests/operations/services/test_copies.py"
BACKUPS = "tests/operations/services/test_operations.py"
ARTIFACTS = "tests/queue/services/test_findings.py"
PARTITIONS = "tests/operations/services/test_partitions.py"
RETENTION = "tests/operations/services/test_operations.py"
HOSTS = "tests/instance/test_second_host.py"
BLOCKS = {
    "One machine": {SERVER},
    "Containers": {COMPOSITION},
    "Without containers": {SYSTEMD},
    "A second host": {HOSTS},
    "Updates": {COMPOSITION, SYSTEMD},
    "Backups": {SERVER, SYSTEMD},
    "After the loss of a machine": {COMPOSITION, SERVER, SYSTEMD},
    "What watches it": {COMPOSITION},
}
# Within sentences: the test that executes it, and the word that it has there.
SENTENCES = {
    ".venv/bin/python manage.py doctor": (SERVER, "doctor"),
    "ALTER ROLE benchlab SET statement_timeout = '60s'": (
        "tests/api/test_replica.py",
        "ALTER ROLE",
    ),
    "script/worker": (HOSTS, "script/worker"),
    "script/worker --check": (HOSTS, '"--check"'),
    "script/worker --leave": (HOSTS, '"--leave"'),
    "manage.py hosts --allow NAME": (HOSTS, '"--allow"'),
    "manage.py hosts --remove": (HOSTS, '"--remove"'),
    "manage.py hosts --remove NAME": (HOSTS, '"--remove"'),
    "script/extra archive-export": ("tests/unit/test_release.py", "script/extra"),
    "script/extra datasets": ("tests/unit/test_release.py", "script/extra"),
    "script/extra s3": ("tests/unit/test_release.py", "script/extra"),
    "benchlab extra datasets": ("tests/unit/test_release.py", "benchlab extra"),
    "manage.py export_parquet": ("tests/instance/test_examples.py", "docs/scaling.md"),
    "script/lab": ("tests/lab/test_lab.py", "script/lab"),
    "script/release": ("tests/unit/test_release.py", "problems_of_version"),
    "script/release --build": ("tests/unit/test_release.py", "release.build"),
    "git pull": (SYSTEMD, "Updates"),
    "manage.py backup FOLDER": (SERVER, "Backups"),
    "manage.py collectstatic": (SYSTEMD, "Without containers"),
    "manage.py load_published": (SYSTEMD, "Without containers"),
    "manage.py partitions": (PARTITIONS, '"partitions")'),
    "manage.py partitions --drop": (PARTITIONS, '"--drop")'),
    "manage.py partitions --make": (PARTITIONS, '"--make"'),
    "manage.py recount_runs": ("tests/queue/api/test_runs.py", "recount_runs"),
    "manage.py retain": (RETENTION, '"retain"'),
    "manage.py retain --remove": (RETENTION, "--remove"),
    "manage.py take_over --gone rack-1 --left rack-2": (COPIES, '"take_over"'),
    "manage.py take_over --all-gone": (COPIES, "--all-gone"),
    "manage.py verify": ("tests/seals/services/test_seals.py", '"verify"'),
    "manage.py restore FILE --trust-plain": (BACKUPS, "--trust-plain"),
    "manage.py restore FILE": (SYSTEMD, "After the loss of a machine"),
    "manage.py rotate_encryption_key": (
        "tests/servers/services/test_machines.py",
        "rotate_encryption_key",
    ),
    "manage.py sync_scenarios": (SYSTEMD, "Without containers"),
    "manage.py verify --files": (BACKUPS, "restore"),
    "python -m benchlab.first_environment FOLDER": (
        "tests/unit/test_deployment.py",
        "benchlab.first_environment",
    ),
    "script/server": (SERVER, "One machine"),
    "systemd-analyze security": (SYSTEMD, "systemd-analyze security"),
}


def test_each_block_of_commands_is_executed_by_a_test():
    assert guide.headings() == set(BLOCKS)
    missing = [
        f"{file}: {heading}"
        for heading, files in BLOCKS.items()
        for file in files - {COMPOSITION}
        if f'guide("{heading}"' not in (ROOT / file).read_text()
    ]
    assert missing == []


# What executes the blocks of the other documents: one test, or one for each heading.
GUIDES = "tests/instance/test_examples.py"
JUDGED = "tests/client/test_ci_docs.py"
EXAMPLES: dict[str, str | dict[str, str]] = {
    "README.md": "tests/unit/test_release.py",
    "README.ja.md": "tests/unit/test_release.py",
    "CONTRIBUTING.md": "tests/unit/test_release.py",
    "adding-a-condition.md": "tests/unit/execution/test_target_facts.py",
    "adding-a-scenario.md": "tests/ssh/test_scenarios.py",
    "adding-a-source.md": "tests/unit/test_published.py",
    **dict.fromkeys(("api.md", "reports.md", "export-format.md", "scaling.md"), GUIDES),
    **dict.fromkeys(("seals.md", "observation.md"), GUIDES),
    "ci.md": {
        "Without a server": "tests/pair/test_pair.py",
        **dict.fromkeys(
            ("Once", "GitHub Actions", "GitLab CI", "Jenkins", "curl alone"), JUDGED
        ),
        **dict.fromkeys(("Both sides in one job", "The verdict"), JUDGED),
        # Its curl and manage.py: tests/compare/api/test_baseline.py.
        "In the pull request": "tests/client/test_comment.py",
        "Buildbot": "none: it needs a Buildbot",
    },
    "lab.md": "tests/lab/test_lab.py",
    "loads.md": {"A command on every version": "tests/pair/test_versions.py"},
    "notebooks.md": "tests/pair/test_frame.py",
    "performance.md": "none: it takes hours",
    "target-setup.md": {
        **dict.fromkeys(
            (
                "1. A user that only BenchLab uses",
                "2. Its folder, on the disk that shall be measured",
                "3. The public key",
                "6. Register and confirm",
                "Privileged actions (optional)",
                "Taking BenchLab off again",
            ),
            "tests/ssh/test_target_setup.py",
        ),
        "4. The firewall": "none: it needs firewalld",
    },
}
# Pictures of the code and of states.
NO_COMMANDS = {"architecture.md", "execution.md", "deployment.md"}


def headings_with_blocks(text: str) -> set[str]:
    """The `##` headings below which there is a block."""
    sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    pairs = zip(sections[1::2], sections[2::2], strict=True)
    return {name for name, below in pairs if "\n```" in below}


def test_each_example_of_each_document_is_executed_or_says_why_not():
    found = {
        path.name: path.read_text()
        for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
        if re.search("^```", path.read_text(), re.MULTILINE)
    }
    assert found.keys() - NO_COMMANDS == EXAMPLES.keys()
    for name, tests in EXAMPLES.items():
        if isinstance(tests, dict):
            assert headings_with_blocks(found[name]) == tests.keys(), name
        for file in {tests} if isinstance(tests, str) else set(tests.values()):
            if file.startswith("none: "):
                assert "Not run by our tests" in found[name], name
            else:
                assert name in (ROOT / file).read_text(), (name, file)


def test_each_document_has_its_question_in_the_map():
    linked = re.findall(r"\]\(([^)#]+\.md)\)", (ROOT / "docs/README.md").read_text())
    guides = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert guides - set(linked) == set()
    assert [name for name in linked if not (ROOT / "docs" / name).is_file()] == []


def test_each_command_that_a_reader_is_shown_first_is_there():
    for name in ("README.md", "README.ja.md", "CONTRIBUTING.md"):
        commands = re.findall(r"^script/(\w+)", (ROOT / name).read_text(), re.MULTILINE)
        assert len(commands) >= 2
        assert [
            each for each in commands if not os.access(ROOT / "script" / each, os.X_OK)
        ] == []


def test_each_command_of_a_sentence_is_executed_by_a_test():
    """Those of Compose are counted by the test of the composition itself."""
    blocks = "".join(text for heading in BLOCKS for text in guide.blocks(heading))
    executed = blocks.replace("benchlab-manage", "manage.py")
    inline = {each for each in guide.inline() if not each.startswith("docker compose")}
    assert {each for each in inline - set(SENTENCES) if each not in executed} == set()
    wrong = [
        f"{command}: {file}"
        for command, (file, word) in SENTENCES.items()
        if word not in (ROOT / file).read_text()
    ]
    assert wrong == []
