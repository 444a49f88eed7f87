"""Recorded pgbench runs: what the tool wrote, and what the server showed at the same time."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).parents[3] / "samples" / "pgbench.jsonl"


@dataclass(frozen=True)
class Sample:
    name: str  # "18.6/a_tpcb", "cross/pgbench-17.8__server-9.2.24/tpcb"
    stdout: str
    stderr: str
    exit_status: int
    elapsed_s: float | None
    history_rows: int | None
    logs: dict[str, bytes] = field(hash=False)  # what -l wrote, by file name

    @property
    def case(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def version(self) -> str:
        """The folder of the name: "18.6"."""
        return self.name.rpartition("/")[0]

    @property
    def major(self) -> float:
        """9.3 for 9.3.25, 18 for 18.6."""
        tool = re.search(r"\d+(\.\d+)?", self.name)
        assert tool
        version = float(tool[0])
        return version if version < 10 else float(int(version))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RecordedLog:
    """One file that -l wrote: of one thread."""

    name: str  # "18.6/h_log_j2/pgbench_log.27077.1"
    text: bytes

    def __str__(self) -> str:
        return self.name


def _read(line: str) -> Sample:
    row = json.loads(line)
    version = row["version"]
    of = row.get("pgbench_and_server")
    folder = f"{version}/{of}" if of else version
    return Sample(
        f"{folder}/{row['case']}",
        row["stdout"],
        row["stderr"],
        row["exit_status"],
        row.get("elapsed_s"),
        row.get("history_rows"),
        {name: text.encode() for name, text in row.get("logs", {}).items()},
    )


@cache
def _by_name() -> dict[str, Sample]:
    samples = [_read(line) for line in RECORDED.read_text().split("\n") if line]
    return {sample.name: sample for sample in sorted(samples, key=str)}


def sample(name: str) -> Sample:
    return _by_name()[name]


def all_samples() -> tuple[Sample, ...]:
    return tuple(_by_name().values())


def samples_with_log() -> tuple[Sample, ...]:
    return tuple(sample for sample in all_samples() if sample.logs)


def recorded_logs(*, aggregated: bool) -> tuple[RecordedLog, ...]:
    """Every file that -l wrote, either those of transactions or those of intervals."""
    return tuple(
        RecordedLog(f"{sample.name}/{name}", text)
        for sample in samples_with_log()
        for name, text in sorted(sample.logs.items())
        if ("aggregate" in sample.name) == aggregated
    )
