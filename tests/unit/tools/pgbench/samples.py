"""Recorded pgbench runs: what the tool wrote, and what was observed beside it."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "samples" / "pgbench"


@dataclass(frozen=True)
class Sample:
    name: str  # "18.6/a_tpcb", "cross/pgbench-17.8__server-9.2.24/tpcb"
    stdout: str
    stderr: str
    exit_status: int
    elapsed_s: float | None
    history_rows: int | None

    @property
    def case(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def major(self) -> float:
        """9.3 for 9.3.25, 18 for 18.6."""
        tool = re.search(r"\d+(\.\d+)?", self.name)
        assert tool
        version = float(tool[0])
        return version if version < 10 else float(int(version))

    def __str__(self) -> str:
        return self.name


@cache
def observed() -> dict[str, dict[str, float]]:
    return json.loads((FOLDER / "observed.json").read_text())


def sample(name: str) -> Sample:
    def read(ending: str) -> str:
        return (FOLDER / f"{name}.{ending}").read_bytes().decode()

    beside = observed().get(name, {})
    rows = beside.get("history_rows")
    return Sample(
        name,
        read("out"),
        read("err"),
        int(read("rc")),
        beside.get("elapsed_s"),
        None if rows is None else int(rows),
    )


@cache
def all_samples() -> tuple[Sample, ...]:
    names = sorted(str(path.relative_to(FOLDER))[:-4] for path in FOLDER.rglob("*.out"))
    return tuple(sample(name) for name in names)
