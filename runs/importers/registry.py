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
    module.__name__.rpartition(".")[2].replace("_", "-"): module.read
    for module in _MODULES
}
