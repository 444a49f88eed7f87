"""Makes a token by which another host joins, once, and prints the command for that host."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from runs.management import command
from runs.operations.services import hosts
from runs.servers.services import ssh_keys


class Command(command.Command):
    """The command for the other host is the only thing on standard output."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--log-in", action="store_true", help="it may log in to servers (SSH keys)"
        )
        parser.add_argument(
            "--minutes", type=int, default=30, help="how long the token is good (30)"
        )
        parser.add_argument(
            "--sites", default="", help="the sites it serves, as in tokyo,berlin"
        )
        parser.add_argument(
            "--database",
            default="",
            metavar="HOST:PORT",
            help="how it reaches PostgreSQL",
        )
        parser.add_argument(
            "--redis", default="", metavar="HOST:PORT", help="how it reaches Redis"
        )
        parser.add_argument(
            "--trusted-network",
            action="store_true",
            help="nobody else reads the network between the hosts: TLS is not asked for",
        )
        parser.add_argument(
            "--url", default="", help="how it reaches these pages (BENCHLAB_URL)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # Made now if there is none: a joined host could not share one with this one.
        ssh_keys.default()
        invitation = hosts.invite(
            minutes=options["minutes"],
            may_log_in=options["log_in"],
            is_trusted_network=options["trusted_network"],
            sites=options["sites"],
            database=options["database"],
            redis=options["redis"],
        )
        url = options["url"] or settings.PUBLIC_URL or "https://THIS-HOST"
        trusted = " --trusted-network" if options["trusted_network"] else ""
        self.stdout.write(f"script/worker --join {url} {invitation.token}{trusted}")
        self.stderr.write(
            f"Good for one host, within {options['minutes']} minutes. To take it back: "
            f"manage.py hosts --remove {invitation.host.prefix}"
        )
