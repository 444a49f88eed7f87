"""docs/deployment.md, `script/server`: its commands, in a clone, through the loss of all data."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchlab.embedded.embedded_server import free_port
from tests.deployment import guide
from tests.migrated import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PASSPHRASE = "of-the-test"
OURS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHLAB_ENCRYPTION_KEY", "BENCHLAB_VAR")


class Operator:
    """Somebody in a folder, with a terminal for `script/server`."""

    def __init__(self, folder, backups):
        self._folder, self._backups = folder, backups
        self.clone = folder / "benchlab"
        own = {"BENCHLAB_PORT": str(free_port()), "BENCHLAB_VENV": sys.prefix}
        self._environment = {k: v for k, v in os.environ.items() if k not in OURS} | own
        self._server = None

    def _text(self, heading, block, **values):
        assert guide.blocks(heading)
        text = guide.blocks(heading)[block]
        values |= {"URL": str(ROOT), "PASSPHRASE": PASSPHRASE, "BACKUPS": str(self._backups)}
        values[".venv/bin/python"] = sys.executable
        for name, value in values.items():
            # Only the word in capitals by itself, and not that within BENCHLAB_BACKUP_PASSPHRASE.
            text = text.replace(f"={name}", f"={value}").replace(f" {name}", f" {value}")
        return text

    def guide(self, heading, block=0, **values):
        """What a block of the guide prints; `script/server` goes on until `stop`."""
        text = self._text(heading, block, **values)
        folder = self.clone if self.clone.exists() else self._folder
        if "script/server" not in text:
            return subprocess.check_output(
                ["bash", "-c", text], cwd=folder, env=self._environment, text=True
            )
        log = self._folder / "server.log"
        with log.open("w") as said:
            self._server = subprocess.Popen(
                ["bash", "-c", text.replace("script/server", "exec script/server")],
                cwd=folder,
                env=self._environment,
                stdout=said,
                stderr=said,
            )
        until = time.monotonic() + 400
        while "BenchLab is ready" not in log.read_text():
            assert self._server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.5)
        return log.read_text()

    def manage(self, *words):
        command = [sys.executable, "manage.py", *words]
        return subprocess.check_output(command, cwd=self.clone, env=self._environment, text=True)

    def stop(self):
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(60)
            self._server = None


@pytest.fixture
def operators(tmp_path):
    """One before the loss of a machine and one after it; a folder for backups outlives it."""
    tmp_path.chmod(0o755)
    backups = tmp_path / "backups"
    made = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        made.append(Operator(tmp_path / name, backups))
    yield made
    for each in made:
        each.stop()


def test_a_backup_outlives_the_loss_of_the_clone(operators):
    old, new = operators
    told = old.guide("One machine")
    assert "First login: user admin, password" in told
    old.manage("create_project", "kept")
    made = old.guide("Backups", 0)
    assert "failed" not in old.manage("doctor")
    old.stop()

    # Cloned as at first; the other command of that block would begin a new instance.
    subprocess.run(["git", "clone", "--quiet", ROOT, new.clone], check=True)
    name = made.partition(",")[0]
    assert Path(name).exists()
    told = new.guide("After the loss of a machine", 0, FILE=name)
    assert "First login" not in told
    assert "failed" not in new.manage("doctor")
    projects = "from runs.models import Project; print(Project.objects.get(slug='kept').slug)"
    assert "kept" in new.manage("shell", "--no-imports", "--command", projects)
