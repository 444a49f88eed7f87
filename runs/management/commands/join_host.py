"""Joins the BenchLab of another host, by a token of manage.py join_token there."""

from argparse import ArgumentParser
from typing import Any

from runs.management import command
from runs.operations.services import host_client


class Command(command.Command):
    """`script/worker --join` calls it."""

    # It has no settings before it has joined.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="as in https://benchlab.example")
        parser.add_argument("token")
        parser.add_argument("--name", default="", help="of this host (its host name)")
        parser.add_argument(
            "--certificate",
            default="",
            metavar="FILE",
            help="the first host's certificate, where no authority vouches for it",
        )
        parser.add_argument("--trusted-network", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        answer = host_client.join(
            url=options["url"],
            token=options["token"],
            name=options["name"],
            certificate=options["certificate"],
            is_trusted=options["trusted_network"],
        )
        self.stdout.write(
            f"This host has joined as {answer['name']}: {host_client.environment_file()}"
        )
