"""A run's recorded commands, and the machines on which they ran."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count

from runs.reports.load_machines import ADMIT, RecordedGenerator, admitted

LOOKS = frozenset(
    (
        "choose-port",
        "look-for-cluster",
        "look-for-pg-prewarm",
        "look-for-template",
        "read-settings",
    )
)
# Steps during the load, preparations for it, and clean-ups of leftovers; names follow.
BESIDE = (
    "monitor",
    "profile",
    "keep-perf",
    "set-perf",
    "check-cpus",
    "source",
    "stop-what-was-left",
    "lag",
    "clear",
    "read-settings",
    "show-cores",
    "try-affinity",
    "read-affinity",
    "explain",
    "counters",
    "run-queue",
    "settings-after",
    "instructions",
)


@dataclass(frozen=True)
class RecordedCommand:
    """A step as recorded; `exit_status` and the times are None if unknown."""

    step: str
    host: str
    argv: tuple[str, ...]
    stdin: str = ""
    exit_status: int | None = 0
    started_at: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class RecordedRun:
    """The commands of one run on its target.

    `programs` are (version, folder of the binaries) in the order in which the run names them, the
    server's first. `generators` are the load generators, if the target is not the only machine.
    """

    title: str
    base_dir: str
    programs: tuple[tuple[str, str], ...]
    commands: tuple[RecordedCommand, ...]
    generators: tuple[RecordedGenerator, ...] = ()

    def machine_of(self, step: str) -> RecordedGenerator | None:
        """The machine on which a step ran; None is the target."""
        return next(
            (generator for generator in self.generators if generator.performs(step)),
            None,
        )

    @property
    def performed(self) -> tuple[RecordedCommand, ...]:
        """The commands that do something."""
        return tuple(
            command for command in self.commands if not only_looks(command.step)
        )


def only_looks(step: str) -> bool:
    """Also a step during the load: the script's own load would wait for its end."""
    return step in LOOKS or any(
        step == name or step.startswith(f"{name}-") for name in BESIDE
    )


def sockets_of(run: RecordedRun) -> list[str]:
    """The folders of Unix sockets, below the base: what follows -h, and -k within pg_ctl's -o."""
    option = re.compile(r'-k "([^"]+)"')
    folders: set[str] = set()
    for command in run.performed:
        pairs = zip(command.argv, command.argv[1:], strict=False)
        folders |= {value for option, value in pairs if option == "-h"}
        folders |= {
            folder for argument in command.argv for folder in option.findall(argument)
        }
    base = f"{run.base_dir}/"
    return sorted(
        folder.removeprefix(run.base_dir)
        for folder in folders
        if folder.startswith(base)
    )


def generators_of(runs: Sequence[RecordedRun]) -> tuple[RecordedGenerator, ...]:
    """The machines of all runs, each name once."""
    return tuple(
        {
            generator.name: generator for run in runs for generator in run.generators
        }.values()
    )


def sources_of(runs: Sequence[RecordedRun]) -> list[str]:
    """The addresses that any pg_hba.conf lets in, each once."""
    texts = (
        command.stdin
        for run in runs
        for command in run.commands
        if command.step == ADMIT
    )
    return list(dict.fromkeys(address for text in texts for address in admitted(text)))


def programs_of(runs: Iterable[RecordedRun]) -> list[tuple[str, str]]:
    """(variable, folder) of each set of binaries: PG_16_14, and PG_16_14_2 for another of 16.14."""
    folder_of: dict[str, str] = {}
    for version, folder in (program for run in runs for program in run.programs):
        if folder in folder_of.values():
            continue
        plain = f"PG_{re.sub(r'[^0-9A-Za-z]+', '_', version)}"
        names = chain([plain], (f"{plain}_{number}" for number in count(2)))
        folder_of[next(name for name in names if name not in folder_of)] = folder
    return list(folder_of.items())
