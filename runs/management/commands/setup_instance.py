"""Prepares a BenchLab that `script/server` starts: tables, a user, this machine, a campaign.

What it measures first is of the subjects that join (`runs/operations/services/first_start.py`).
"""

import secrets
from io import StringIO
from pathlib import Path
from typing import Any

import environ
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from runs.archive.services import publications
from runs.configurations.services import configurations
from runs.models import Campaign, Server
from runs.operations.services import static_files
from runs.operations.services.first_start import FIRST_CAMPAIGNS
from runs.published.errors import PublishedFileError
from runs.servers.services import servers
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios

FIRST_SERVER = "this-machine"


class Command(BaseCommand):
    """Run at each start; what is there already stays as it is."""

    help = __doc__
    # They load all pages, which takes a second; the doctor looks at what a start needs.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Do everything that is not done yet. Nothing is done where a start would do harm."""
        self._migrate()
        call_command("doctor", before_start=True)
        static_files.collect()
        scenarios.sync()
        configurations.sync()
        try:
            publications.load(files=publications.files())
        except PublishedFileError as error:
            raise CommandError(str(error)) from error
        self._make_administrator()
        server = self._register_this_machine()
        if not Campaign.objects.filter(origin="executed").exists():
            self._queue_first_campaign(server)

    def _migrate(self) -> None:
        """What it prints stays away from the terminal, unless it fails."""
        printed = StringIO()
        try:
            call_command("migrate", interactive=False, stdout=printed)
        except Exception:
            self.stderr.write(printed.getvalue())
            raise

    def _make_administrator(self) -> None:
        if User.objects.exists():
            return
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser("admin", password=password)
        self.stdout.write(
            f"First login: user admin, password {password} (shown only now)"
        )

    def _register_this_machine(self) -> Server:
        """The embedded SSH target. Its host key comes from its own file: no trust on first use."""
        server = (
            Server.objects.select_related("ssh_key").filter(slug=FIRST_SERVER).first()
        )
        # Let the keys of BenchLab in: its own, and the one that was chosen for the server.
        keys = [servers.public_key()]
        if server is not None and server.ssh_key is not None:
            keys.append(server.ssh_key.public_key)
        authorized_keys = Path(environ.Env().str("BENCHLAB_TARGET_AUTHORIZED_KEYS"))
        authorized_keys.write_text("".join(f"{key}\n" for key in dict.fromkeys(keys)))
        if server is not None:
            return self._looked_at_again(server)
        try:
            server = servers.register(name="This machine", **_target())
            server = _inspected(server)
        except ServiceError as problem:
            raise CommandError(f"{problem.message} {problem.remedy}") from problem
        if server.state != Server.State.READY:
            raise CommandError(
                f"This machine is not ready as a target: {server.problem}"
            )
        return server

    def _looked_at_again(self, server: Server) -> Server:
        target = _target()
        # The embedded target takes a free port at each start. Folders are the user's as well.
        target["bindirs"] = list(dict.fromkeys([*server.bindirs, *target["bindirs"]]))
        if _is_there(server.base_dir):
            del target["base_dir"]
        Server.objects.filter(pk=server.pk).update(**target)
        try:
            server = _inspected(server)
        except ServiceError as problem:
            self._warn(f"{problem.message} {problem.remedy}")
        else:
            if server.state != Server.State.READY:
                self._warn(f"{server.problem} {server.problem_remedy}")
        return server

    def _warn(self, problem: str) -> None:
        page = reverse("server-detail", args=[FIRST_SERVER])
        self.stderr.write(
            f"This machine is not ready, and nothing is measured on it: {problem.strip()} "
            f"Fix this on its page, {page}, and check it again there."
        )

    def _queue_first_campaign(self, server: Server) -> None:
        for queue in FIRST_CAMPAIGNS:
            try:
                queued = queue(server)
            except ServiceError as problem:
                # The site is of use without it; the page says the same when one queues by hand.
                self.stderr.write(
                    f"No first campaign: {problem.message} {problem.remedy}"
                )
                continue
            if queued:
                self.stdout.write(f"Queued the first campaign: {queued}")


def _target() -> dict[str, Any]:
    env = environ.Env()
    return {
        "address": env.str("BENCHLAB_TARGET_ADDRESS"),
        "port": env.int("BENCHLAB_TARGET_PORT"),
        "username": env.str("BENCHLAB_TARGET_USER"),
        "base_dir": env.str("BENCHLAB_TARGET_BASE_DIR"),
        "bindirs": env.str("BENCHLAB_TARGET_BINDIRS").split(":"),
    }


def _is_there(folder: str) -> bool:
    try:
        return Path(folder).is_dir()
    except PermissionError:
        return True


def _inspected(server: Server) -> Server:
    host_key = environ.Env().str("BENCHLAB_TARGET_HOST_KEY")
    Server.objects.filter(pk=server.pk).update(host_key=host_key)
    server.refresh_from_db()
    return servers.inspect(server=server)
