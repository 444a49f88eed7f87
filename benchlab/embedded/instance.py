"""A complete BenchLab on one machine: started in order, supervised, stopped in reverse order."""

import http.client
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from signal import SIGQUIT, SIGTERM
from typing import Any

from cryptography.fernet import Fernet

from benchlab import celery_worker
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.binaries import postgresql_binaries, redis_server
from benchlab.embedded.descendants import Ending, become_subreaper, reap_adopted
from benchlab.embedded.embedded_server import (
    EmbeddedServer,
    is_free,
    listening,
)
from benchlab.embedded.errors import StartError, StopError
from benchlab.embedded.loading import Loader
from benchlab.embedded.options import Options
from benchlab.embedded.places import Places, kept_secret, write_private
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchlab.embedded.processes import (
    Interrupted,
    Interrupts,
    Program,
    Service,
    Supervisor,
    reason,
    wait_for_end,
)
from benchlab.embedded.redis import EmbeddedRedis
from benchlab.embedded.software import find_software, software_for
from benchlab.embedded.state import State, end_leftovers, locked
from benchlab.embedded.target import EmbeddedTarget
from benchlab.lab import folders

WEB_PATIENCE = 60.0
# BENCHLAB_DATABASE_POOL is 6 by default.
CONTROL_THREADS = 6
# Short enough for Ctrl-C: a run goes on from its folder on the target, so a worker may be cut off.
ENDS = ((SIGTERM, 4.0), (SIGQUIT, 2.0))
# With less, `/readyz` says that the disk is full.
LEAST_FREE_BYTES = 256 * 2**20


def say(line: str) -> None:
    """Tell the person at the terminal."""
    print(f"BenchLab: {line}", flush=True)


class Instance:
    """The parts of one instance, and the order in which they come and go."""

    def __init__(self, options: Options, interrupts: Interrupts):
        self.options = options
        self.places = Places(options.var)
        self.accounts = Accounts.from_environment()
        self.software = find_software()
        self.state = State()
        self.environment: dict[str, str] = {}
        self._interrupts, self._pause = interrupts, interrupts.pause
        self._bindirs = ""
        self._services: list[Service] = []
        self._programs: list[Program] = []
        self._door: socket.socket | None = None

    def run(self) -> None:
        """Start everything and look after it until `pause` raises; then nothing is left."""
        self.places.prepare(self.accounts)
        with locked(self.places.lock, self.places.state):
            self.state = State.read(self.places.state)
            end_leftovers(self.state, self._pause)
            self._check_web_port()
            self._check_room()
            self.software = software_for(
                (self.accounts.web, self.accounts.target), self.places.services
            )
            become_subreaper()
            try:
                self._start()
                print(f"BenchLab is ready: {self.options.url}/", flush=True)
                self._look_after()
            finally:
                self._stop()

    def _check_web_port(self) -> None:
        if not is_free(self.options.port, self.options.bind):
            raise self._no_port()

    def _no_port(self) -> StartError:
        return StartError(
            f"port {self.options.port} on {self.options.bind} is in use or not allowed:"
            " choose another, for example BENCHLAB_PORT=8001 script/server"
        )

    def _check_room(self) -> None:
        for folder in (self.places.var, self.places.services):
            free = shutil.disk_usage(folder).free
            if free < LEAST_FREE_BYTES:
                raise StartError(
                    f"only {free >> 20} MB are free for {folder}: make room there,"
                    " or set BENCHLAB_VAR to a folder on a larger disk"
                )

    def _start(self) -> None:
        self.state.pid, self.state.url = os.getpid(), self.options.url
        self._note()
        postgresql, redis, target = self._servers()
        self._serve(postgresql)
        self._serve(redis)
        self.environment = self._secrets() | self._addresses(postgresql, redis)
        self._restore()
        if not self.accounts.is_target_apart:
            say(
                "benchmarks on this machine run in your own account (see BENCHLAB_TARGET_USER)"
            )
        self._serve(target)
        self.environment |= self._target_variables(target)
        self._write_environment()
        self._set_up()
        self._start_programs(self._loader())
        self._wait_for_web()

    def _servers(self) -> tuple[EmbeddedPostgreSQL, EmbeddedRedis, EmbeddedTarget]:
        services, places = self.places.services, self.places
        accounts = self.accounts
        reader = accounts.target if accounts.target.by_sudo else accounts.postgresql
        binaries = postgresql_binaries(services, reader)
        lab = folders.bindirs(folders.versions_folder(places, accounts.target))
        bindirs = [binaries.postgresql16, binaries.postgresql18, *lab]
        self._bindirs = ":".join(map(str, bindirs))
        options: dict[str, dict[str, Any]] = {
            name: {
                "account": getattr(accounts, name),
                "log": places.logs / f"{name}.log",
                "port": self.state.ports.get(name, 0),
                "pause": self._pause,
            }
            for name in ("postgresql", "redis", "target")
        }
        return (
            EmbeddedPostgreSQL(
                binaries.postgresql18, services / "postgresql", **options["postgresql"]
            ),
            EmbeddedRedis(
                redis_server(services, accounts.redis),
                services / "redis",
                **options["redis"],
            ),
            EmbeddedTarget(
                services / "target",
                places.target_keys,
                software=self.software,
                keeper=accounts.web,
                **options["target"],
            ),
        )

    def _serve(self, server: EmbeddedServer) -> None:
        say(f"starting {server.name}")
        self._services.append(
            server
        )  # before its start: an interrupted start is stopped as well
        server.start()
        self.state.ports[server.name] = server.port
        self._note()

    def _secrets(self) -> dict[str, str]:
        return {
            "SECRET_KEY": kept_secret(
                self.places.secret_key, lambda: secrets.token_urlsafe(48)
            ),
            "BENCHLAB_ENCRYPTION_KEY": kept_secret(
                self.places.encryption_key, lambda: Fernet.generate_key().decode()
            ),
        }

    def _addresses(
        self, postgresql: EmbeddedPostgreSQL, redis: EmbeddedRedis
    ) -> dict[str, str]:
        return {
            "DATABASE_URL": postgresql.url,
            "REDIS_URL": redis.url,
            "BENCHLAB_VAR": str(self.places.service_folder),
            "ALLOWED_HOSTS": self.options.allowed_hosts,
            "BENCHLAB_URL": self.options.public_url,
        }

    def _target_variables(self, target: EmbeddedTarget) -> dict[str, str]:
        return {
            "BENCHLAB_TARGET_ADDRESS": "127.0.0.1",
            "BENCHLAB_TARGET_PORT": str(target.port),
            "BENCHLAB_TARGET_USER": target.user,
            "BENCHLAB_TARGET_BASE_DIR": str(target.base_dir),
            "BENCHLAB_TARGET_AUTHORIZED_KEYS": str(target.authorized_keys),
            "BENCHLAB_TARGET_HOST_KEY": target.host_key,
            "BENCHLAB_TARGET_BINDIRS": self._bindirs,
            # Then a benchmark reaches whatever the service does: the page of servers says so.
            "BENCHLAB_SHARED_ACCOUNT": "01"[
                self.accounts.target.uid == self.accounts.web.uid
            ],
        }

    def _write_environment(self) -> None:
        lines = (f"{name}={value}\n" for name, value in self.environment.items())
        write_private(self.places.environment, "".join(lines))

    def _program(
        self, name: str, *arguments: str, pass_fds: Sequence[int] = ()
    ) -> Program:
        return Program(
            name=name,
            argv=[self.software.python, *arguments],
            account=self.accounts.web,
            log=self.places.logs / f"{name}.log",
            env=self._django_environment(),
            cwd=self.software.root,
            stops=ENDS,
            pass_fds=pass_fds,
        )

    def _django_environment(self) -> dict[str, str]:
        settings = {
            "DJANGO_SETTINGS_MODULE": "benchlab.settings",
            "PYTHONUNBUFFERED": "1",
            # Of many heaps, one for each thread, all keep what they have been given:
            # https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html
            "MALLOC_ARENA_MAX": "2",
        }
        mine = {"HOME": str(self.places.work)} if self.accounts.web.switch else {}
        return {
            **os.environ,
            **settings,
            **mine,
            **self.software.variables,
            **self.environment,
        }

    def _manage(self, *arguments: str) -> None:
        say(f"manage.py {arguments[0]}")
        program = self._program(
            "manage", str(self.software.root / "manage.py"), *arguments
        )
        program.name = f"manage.py {arguments[0]}"
        if wait_for_end(program, self._pause) != 0:
            line = reason(program.output())
            raise StartError(line) if line else program.failed()

    def _restore(self) -> None:
        """Bring the backup that was named into the new results database, before anything uses it.

        The command makes the tables: a backup of an older version has those of that version. The
        service's account reads a copy, as it may not get to where the backup is.
        """
        if self.options.restores is None:
            return
        copy = self.places.work / "restored.backup"
        try:
            copy.unlink(missing_ok=True)
            copy.touch(mode=0o600)
            shutil.copyfile(self.options.restores, copy)
            self.accounts.web.own(copy)
            plain = ["--trust-plain"] if self.options.trusts_plain else []
            self._manage("restore", str(copy), *plain)
        finally:
            copy.unlink(missing_ok=True)

    def _set_up(self) -> None:
        """Make tables, collect static files, register this machine: one start of Django for all.

        The first time the command prints the administrator's password, which belongs on the
        terminal and into no log.
        """
        say("manage.py setup_instance")
        with tempfile.TemporaryFile() as errors:
            process = self.accounts.web.spawn(
                [
                    self.software.python,
                    self.software.root / "manage.py",
                    "setup_instance",
                ],
                env=self._django_environment(),
                cwd=self.software.root,
                stdout=None,
                stderr=errors,
            )
            with process:
                try:
                    while process.poll() is None:
                        self._pause(0.05)
                finally:
                    process.kill()
            errors.seek(0)
            output = errors.read().decode(errors="replace")
        if process.returncode != 0:
            failed = f"manage.py setup_instance failed (exit {process.returncode}):\n{output}"
            raise StartError(reason(output) or failed)
        print(output, end="", file=sys.stderr, flush=True)

    def _loader(self) -> Loader | None:
        """What programs are forked from. It reads the list of static files, so those are first."""
        program = self._program("loader")
        if not Loader.works_here(program):
            return None
        say("starting loader")
        loader = Loader(program, self._pause)
        self._services.append(loader)
        loader.start()
        return loader

    def _start_programs(self, loader: Loader | None) -> None:
        # As many as a process has connections (BENCHLAB_DATABASE_POOL): none waits for one.
        control = self._celery("control", queue="control", threads=CONTROL_THREADS)
        for program in (self._web(), control, *self._workers()):
            say(f"starting {program.name}")
            program.fork = loader.fork if loader else None
            self._services.append(program)
            self._programs.append(program)
            program.start()
        self._note()

    def _web(self) -> Program:
        door = self._open_door().fileno()
        return self._program(
            "web",
            "-m",
            "gunicorn",
            "benchlab.wsgi:application",
            "--bind",
            f"fd://{door}",
            "--config",
            "python:benchlab.gunicorn",
            "--graceful-timeout",
            "3",
            pass_fds=(door,),
        )

    def _open_door(self) -> socket.socket:
        """The socket of the pages, whose account may not open a port below 1024.

        Another instance that began with the same port has it or has not: what answers there is
        never taken for ours.
        """
        try:
            self._door = listening(self.options.port, self.options.bind)
        except OSError:
            raise self._no_port() from None
        return self._door

    def _workers(self) -> list[Program]:
        names = [
            "worker",
            *(f"worker-{number}" for number in range(2, self.options.workers + 1)),
        ]
        return [
            self._celery(name, queue="runs", threads=celery_worker.HELD_RUNS)
            for name in names
        ]

    def _celery(self, name: str, *, queue: str, threads: int) -> Program:
        return self._program(
            name,
            *celery_worker.arguments(queue=queue, threads=threads),
            "--hostname",
            f"{name}-{self.options.port}@%h",
        )

    def _wait_for_web(self) -> None:
        deadline = time.monotonic() + WEB_PATIENCE
        while not self.accounts.web.ask(self._healthy):
            for program in self._programs:
                if not program.running:
                    raise program.failed()
            if time.monotonic() > deadline:
                raise StartError(
                    f"the pages do not answer after {WEB_PATIENCE:.0f} s:\n"
                    + self._programs[0].last_words()
                )
            self._pause(0.1)

    def _healthy(self) -> bool:
        host = self.options.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=10)
        try:
            connection.request("GET", "/healthz/", headers={"Host": "localhost"})
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _look_after(self) -> None:
        supervisor = Supervisor(say)
        while True:
            self._interrupts.wait_for_child(supervisor.patience)
            if supervisor.look_after(self._services):
                self._note()
            reap_adopted(self._pids().values())

    def _pids(self) -> dict[str, int]:
        return {service.name: pid for service in self._services if (pid := service.pid)}

    def _note(self) -> None:
        self.state.note_processes(self._pids())
        self.state.write(self.places.state)

    def _stop(self) -> None:
        """Take everything down; one part's trouble does not keep the others."""
        say("stopping")
        for program in self._programs:
            program.ask_to_stop()
        for service in reversed(self._services):
            try:
                service.stop()
            except StopError as error:
                say(str(error))
            except (OSError, subprocess.SubprocessError):
                pass
        ending = Ending()
        while not ending.advance():
            time.sleep(0.05)
        if self._door is not None:
            self._door.close()
        self.state.pid = 0
        self._note()


def main() -> int:
    """Run an instance until SIGINT or SIGTERM; the exit status."""
    with Interrupts() as interrupts:
        try:
            Instance(Options.from_environment(), interrupts).run()
        except Interrupted:
            say("stopped")
        except StartError as error:
            print(f"BenchLab: {error}", file=sys.stderr, flush=True)
            return 1
        except OSError as error:
            file_name = f" {error.filename}" if error.filename else ""
            message = (
                f"{error.strerror or error}:{file_name}" if file_name else str(error)
            )
            remedy = "Correct that, or set BENCHLAB_VAR to another folder."
            print(f"BenchLab: {message}. {remedy}", file=sys.stderr, flush=True)
            return 1
    return 0
