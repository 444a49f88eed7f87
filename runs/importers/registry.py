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

IMPORTERS: dict[str, Callable[[Path], Imported]] = {
    "asv": asv.read,
    "benchbase": benchbase.read,
    "benchmarksql": benchmarksql.read,
    "codespeed": codespeed.read,
    "conbench": conbench.read,
    "github-action-benchmark": github_action_benchmark.read,
    "hammerdb": hammerdb.read,
    "pgbench-tools": pgbench_tools.read,
    "phoronix": phoronix.read,
    "postgresbench": postgresbench.read,
}
