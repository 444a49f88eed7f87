"""The importers by the names that the command takes."""

from collections.abc import Callable
from pathlib import Path

from runs.importers import (
    asv,
    benchbase,
    benchmarksql,
    codespeed,
    conbench,
    github_action_benchmark,
    hammerdb,
    pgbench_tools,
    phoronix,
    postgresbench,
)
from runs.importers.row import Imported

_MODULES = (
    asv,
    benchbase,
    benchmarksql,
    codespeed,
    conbench,
    github_action_benchmark,
    hammerdb,
    pgbench_tools,
    phoronix,
    postgresbench,
)
IMPORTERS: dict[str, Callable[[Path], Imported]] = {
    each.__name__.rpartition(".")[2].replace("_", "-"): each.read for each in _MODULES
}
