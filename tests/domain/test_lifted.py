"""What stands on top can be taken out: the rest works as before."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from runs import on_top
from tests import migrated

ROOT = Path(__file__).parents[2]
WHICH = [*((subject,) for subject in on_top.SUBJECTS), on_top.SUBJECTS]


@pytest.fixture
def database(request):
    """The URL of an empty database with all tables."""
    url = os.environ["DATABASE_URL"]
    name = f"lifted_{os.getpid()}"
    migrated._create_database(url, name, like=migrated.TEMPLATE)
    yield url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("subjects", WHICH, ids="-".join)
def test_the_rest_works_without(subjects, database, tmp_path):
    folder = tmp_path / "lifted"
    venv = Path(sys.prefix)
    environment = os.environ | {
        "BENCHLAB_VENV": str(venv),
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
        "PYTHONPATH": str(folder),
        "BENCHLAB_VAR": str(tmp_path / "var"),
    }
    lift = [str(ROOT / "script" / "lift"), *subjects, str(folder)]
    for command in (lift, [sys.executable, "-m", "tests.lifted", *subjects]):
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT if command is lift else folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert f"works without {' '.join(subjects)}" in done.stdout
    shutil.rmtree(folder)


def test_only_what_stands_on_top_is_taken_out(tmp_path):
    command = [str(ROOT / "script" / "lift"), "queue", str(tmp_path / "lifted")]
    environment = os.environ | {"BENCHLAB_VENV": sys.prefix}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "queue does not stand on top" in done.stderr
