"""List the partitions of measurements and series; --make begins the next, --drop drops empty."""

from argparse import ArgumentParser
from typing import Any

from runs.management import command
from runs.operations.services import partitions
from runs.operations.services.partitions import Partition


class Command(command.Command):
    """Prints a line for each partition; once a month, `--make` is all that is needed."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--make",
            action="store_true",
            help="begin a partition for this month where the newest one is full",
        )
        parser.add_argument(
            "--rows",
            type=int,
            default=partitions.ROWS_OF_A_PARTITION,
            help="how many rows a full one has (%(default)s)",
        )
        parser.add_argument(
            "--drop",
            action="store_true",
            help="drop partitions that have no rows any more",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["make"]:
            for partition in partitions.make(at_least=options["rows"]):
                self.stdout.write(f"{partition.name} begins with run {partition.first}")
        for partition in partitions.drop(is_rehearsal=not options["drop"]):
            word = "dropped" if options["drop"] else "is empty: --drop drops it"
            self.stdout.write(f"{partition.name} {word}")
        for table in partitions.TABLES:
            for partition in partitions.listed(table):
                self.stdout.write(_line(partition))


def _line(partition: Partition) -> str:
    last_run = "" if partition.end is None else partition.end - 1
    return (
        f"{partition.name}: runs {partition.first or 1} to {last_run or 'the newest'},"
        f" some {partition.rows:,} rows, {partition.size / 2**20:,.1f} MB"
    )
