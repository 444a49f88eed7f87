"""Lists the hosts that joined or are expected, lets one log in to servers, or lets one go."""

from argparse import ArgumentParser
from typing import Any

from benchlab.release import release_in_words
from runs.management import command
from runs.models import WorkerHost
from runs.operations.services import hosts


class Command(command.Command):
    """Without arguments: the list."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--allow", metavar="NAME", help="it may log in to servers")
        what.add_argument(
            "--remove",
            metavar="NAME",
            help="it reaches nothing from now on; or a token's first part, to take it back",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["allow"]:
            hosts.allow(name=options["allow"])
        if options["remove"]:
            hosts.remove(name=options["remove"])
        for host in WorkerHost.objects.filter(left_at=None):
            may = "may log in" if host.may_log_in else "may not log in"
            release = release_in_words(host.release) or "-"
            self.stdout.write(f"{host}\t{host.state}\t{may}\t{release}")
