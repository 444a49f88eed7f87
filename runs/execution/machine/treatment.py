"""The treatment of a run: what is done to its machines and processes, besides its scenario."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from runs.execution.machine import cpus


@dataclass(frozen=True)
class Treatment:
    """Conditions that a campaign asks for; none by default.

    `cold_cache`: the database's machine drops its file cache before the load, and nothing is
    prewarmed. `governor`: that of the processors during the run; empty leaves it unchanged.
    `server_cpus` and `pgbench_cpus`: the processors on which each may run, as in "0-3,8"; empty is
    all. `profile`: perf samples the database's machine during the load. `syscalls` and
    `stacks`: strace counts PostgreSQL's system calls, or shows who waits for semaphores. `waits`,
    `statements` and `io`: what PostgreSQL's own statistics report about the load. `instructions`:
    callgrind counts those of its statements after it.
    """

    cold_cache: bool = False
    governor: str = ""
    server_cpus: str = ""
    pgbench_cpus: str = ""
    profile: bool = False
    syscalls: bool = False
    stacks: bool = False
    waits: bool = False
    statements: bool = False
    io: bool = False
    instructions: bool = False

    def chosen(self) -> dict[str, Any]:
        """What was requested, by name; empty for a run without any. Lists are in canonical form.

        Raises ValueError for an invalid list of CPUs.
        """
        settings = {name: value for name, value in asdict(self).items() if value}
        for name in ("server_cpus", "pgbench_cpus"):
            if name in settings:
                settings[name] = cpus.spelled(cpus.parse(settings[name]))
        return settings

    def select_generator_part(self) -> Self:
        """The part of it that applies to a machine that only generates load."""
        return type(self)(governor=self.governor, pgbench_cpus=self.pgbench_cpus)

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Self:
        """The treatment from its stored form; unknown fields of a later BenchLab are ignored."""
        known_fields = {field.name for field in fields(cls)}
        return cls(
            **{
                name: value
                for name, value in (stored or {}).items()
                if name in known_fields
            }
        )


UNTREATED = Treatment()
