"""docs/deployment.md without Docker: the commands of script/server, and those of systemd."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from benchlab.embedded.embedded_server import free_port
from tests.deployment import guide
from tests.deployment.docker import SYSTEMS, Daemon, machine_with_systemd
from tests.migrated import ROOT

pytestmark = pytest.mark.slow


# docs/deployment.md, `script/server`: its commands, in a clone, through the loss of all data.


PASSPHRASE = "of-the-test"
OURS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "BENCHLAB_ENCRYPTION_KEY",
    "BENCHLAB_VAR",
)


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
        values |= {
            "URL": str(ROOT),
            "PASSPHRASE": PASSPHRASE,
            "BACKUPS": str(self._backups),
        }
        values[".venv/bin/python"] = sys.executable
        for name, value in values.items():
            # Only the word in capitals by itself, and not that within BENCHLAB_BACKUP_PASSPHRASE.
            text = text.replace(f"={name}", f"={value}").replace(
                f" {name}", f" {value}"
            )
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
        return subprocess.check_output(
            command, cwd=self.clone, env=self._environment, text=True
        )

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


@pytest.mark.timeout(900)
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
    new.manage("take_over", "--all-gone")
    assert "failed" not in new.manage("doctor")
    projects = (
        "from runs.models import Project; print(Project.objects.get(slug='kept').slug)"
    )
    assert "kept" in new.manage("shell", "--no-imports", "--command", projects)


# docs/deployment.md, "Without containers": its commands, where systemd is process 1.
#
# In Debian 12 with Python 3.11, and in Ubuntu 24.04 with Python 3.12.
#
# The machine is a container of a Docker daemon of the test's own. Needs root, Debian's docker.io
# and debootstrap, and some minutes. BENCHLAB_TEST_IMAGES is a folder that keeps the image between
# runs.


SERVICES = ("benchlab-web", "benchlab-control", "benchlab-worker")
READY = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/readyz').status)"


class Machine:
    """The operator's host, and a shell of root on it."""

    def __init__(self, daemon, name):
        self._daemon, self._name = daemon, name

    def run(self, text, *, check=True):
        """The output of commands, executed by one shell as somebody types them."""
        done = self._daemon.docker(
            "exec",
            "--env=DEBIAN_FRONTEND=noninteractive",
            "--env=DJANGO_SUPERUSER_PASSWORD=of the test",
            self._name,
            "bash",
            "-c",
            text,
            check=False,
        )
        assert not (check and done.returncode), (
            f"{text}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
        return done.stdout

    def guide(self, heading, blocks=slice(None), **values):
        """Execute blocks of the guide, with its capital words replaced."""
        text = "".join(guide.blocks(heading)[blocks])
        assert text, heading
        text = text.replace("URL /opt", "/srv/benchlab.git /opt").replace(
            'PASSPHRASE"', f'{PASSPHRASE}"'
        )
        # It asks for these at a terminal.
        answers = "createsuperuser --noinput --username root --email root@example.org"
        text = text.replace("createsuperuser", answers)
        for name, value in values.items():
            text = text.replace(name, value)
        # `doctor` misses services that have just been started.
        return self.run(text.replace("\nbenchlab-manage doctor\n", "\n"))

    def wait(self, command, seconds=90):
        """Until a command succeeds."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.run(command)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)

    def is_well(self):
        """All services run, and doctor agrees."""
        self.wait(f"systemctl is-active {' '.join(SERVICES)}")
        self.wait(f'python3 -c "{READY}"')
        return self.run("benchlab-manage doctor")


@pytest.fixture(scope="module", params=sorted(SYSTEMS))
def machine(request):
    for name in ("dockerd", "debootstrap"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not here: apt install docker.io debootstrap")
    folder = Path(tempfile.mkdtemp(prefix="bl-docker-"))
    kept = Path(os.environ.get("BENCHLAB_TEST_IMAGES", folder))
    kept.mkdir(exist_ok=True)
    source = folder / "benchlab.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, source], check=True)
    daemon = Daemon(kept)
    name = "benchlab-machine"
    try:
        daemon.start()
        machine_with_systemd(daemon, name, source, request.param)
        yield Machine(daemon, name)
        daemon.docker("rm", "--force", "--volumes", name)
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
)
@pytest.mark.timeout(2400)
def test_the_guide_installs_and_all_services_run(machine):
    machine.guide("Without containers")
    assert "failed" not in machine.is_well()
    levels = re.findall(
        r"benchlab-(?:web|control|worker)\S+ +([\d.]+)",
        machine.run("systemd-analyze security"),
    )
    assert len(levels) == len(SERVICES)
    assert all(float(level) < 2 for level in levels), levels


@pytest.mark.skipif(
    os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
)
@pytest.mark.timeout(2400)
def test_a_killed_service_is_started_again(machine):
    for service in SERVICES:
        machine.run(f"systemctl kill --signal KILL {service}")
        machine.wait(f"systemctl show -P NRestarts {service} | grep -qx 1")
    assert "failed" not in machine.is_well()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
)
@pytest.mark.timeout(2400)
def test_what_nothing_starts_with_is_one_line_in_the_journal(machine):
    machine.run("echo LOG_LEVEL=loud >> /var/lib/benchlab/environment")
    machine.run("systemctl restart benchlab-web", check=False)
    told = machine.run(
        "journalctl -u benchlab-web --no-pager | grep -c \"LOG_LEVEL is 'loud'\""
    )
    assert int(told) >= 1
    machine.run("sed -i /LOG_LEVEL/d /var/lib/benchlab/environment")
    machine.run("systemctl reset-failed benchlab-web; systemctl restart benchlab-web")


@pytest.mark.skipif(
    os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
)
@pytest.mark.timeout(2400)
def test_the_guide_updates(machine):
    machine.guide("Updates", slice(1, 2))
    assert "failed" not in machine.is_well()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
)
@pytest.mark.timeout(2400)
def test_after_the_loss_of_everything_the_guide_brings_the_backup_back(machine):
    machine.run("benchlab-manage create_project kept")
    machine.guide("Backups", slice(1, 2))
    [name] = machine.run("cd /var/backups/benchlab && ls *.backup").split()
    machine.run(
        f"systemctl stop {' '.join(SERVICES)} && rm -r /var/lib/benchlab"
        " && runuser -u postgres -- dropdb benchlab && runuser -u postgres -- dropuser benchlab"
        " && install -d -o benchlab -g benchlab -m 700 /var/lib/benchlab"
    )

    machine.guide(
        "Without containers",
        slice(1, 2),
        **{"password=": "cd /opt/benchlab; password="},
    )
    machine.guide("After the loss of a machine", slice(2, 3), FILE=name)
    again = guide.blocks("Without containers")[2].replace(
        "benchlab-manage createsuperuser\n", ""
    )
    machine.run("cd /opt/benchlab\n" + again.replace("benchlab-manage doctor\n", ""))

    machine.wait("benchlab-manage take_over --all-gone")
    assert "failed" not in machine.is_well()
    projects = (
        "from runs.models import Project; print(Project.objects.get(slug='kept').name)"
    )
    machine.run(f'benchlab-manage shell --no-imports --command "{projects}"')
