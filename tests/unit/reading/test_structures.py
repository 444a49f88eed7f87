"""Reading takes time by the size of what is read, in every dimension that a file can grow in.

Readers are found by their registries, and their structures in what was recorded of them: a reader
without a recorded file fails here.
"""

import json
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runs.importers.registry import IMPORTERS
from runs.importers.row import Imported
from runs.postgresql_settings import conf_file
from runs.query_plans.node import PlanUnreadableError
from runs.query_plans.reading import read as read_plan
from runs.reading import readers
from runs.tools import reader, registry
from runs.tools.adapter import UnreadableOutput
from runs.tools.pgbench import script_check
from runs.tools.pgbench.scripts import GivenScript
from tests.structures import Structure, databases, structures
from tests.unit.timing import cpu_seconds
from tests.unit.tools.pgbench.samples import all_samples
from tests.unit.tools.reading import samples
from tests.uploads.services.test_importing import PEERS

# Below this the file with four times as much is read at once.
NOTICED_SECONDS = 0.5
# Two where the time grows with the size, four where it does with its square. What a reader does
# from some size on may grow faster once, so both doublings have to.
MOST_GROWTH = 2.8
ADAPTERS = registry.every()
Read = Callable[[bytes], object]


def count_of(structure: Structure) -> int:
    """How many of it make a file of its size."""
    least, more = len(structure.grown(20)), len(structure.grown(120))
    return max(20, structure.size // max(1, (more - least) // 100))


def growth(read_times: Callable[[int], object]) -> float:
    """How much longer it takes to read twice as much, at least; 0 where four times is nothing."""

    def seconds(times: int, tries: int) -> float:
        return cpu_seconds(lambda: read_times(times), tries=tries)

    four = seconds(4, tries=1)
    if four < NOTICED_SECONDS:
        return 0.0
    once = _least_growth(seconds(1, tries=1), seconds(2, tries=1), four)
    if once <= MOST_GROWTH:
        return once
    return _least_growth(*(seconds(times, tries=3) for times in (1, 2, 4)))


def _least_growth(one: float, two: float, four: float) -> float:
    """By how much time grows for twice as much, from both sizes."""
    return min(two / one, four / two)


def too_steep(content: bytes, read: Read) -> Iterator[str]:
    """The structures of a file whose reading takes longer than by its size."""
    for structure in structures(content):
        count = count_of(structure)
        contents = {times: structure.grown(times * count) for times in (1, 2, 4)}
        found = growth(lambda times: read(contents[times]))  # noqa: B023
        if found > MOST_GROWTH:
            yield f"{structure.name}: {found:.1f} times for twice {len(contents[1])} bytes"


def outputs(tool: str) -> list[bytes]:
    """The longest recorded output of each form that a tool has."""
    recorded = (
        [run.stdout.encode() for run in all_samples()]
        if tool == "pgbench"
        else list(samples(tool).values())
    )
    recorded.sort(key=len)
    forms = {content.lstrip()[:1] in {b"{", b"["}: content for content in recorded}
    return list(forms.values())


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_an_adapter_takes_time_by_the_size(adapter):
    def read(content):
        with suppress(UnreadableOutput):
            reader.read(adapter, {"stdout": content.decode()})

    recorded = outputs(adapter.name)
    assert recorded
    assert [steep for content in recorded for steep in too_steep(content, read)] == []


@pytest.mark.parametrize("peer", IMPORTERS)
def test_an_importer_takes_time_by_the_size(peer, tmp_path):
    make = next(
        made[0] for name, made in PEERS.items() if name.partition(" ")[0] == peer
    )
    (folder := tmp_path / "peer").mkdir()
    source = make(folder)
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files

    def read() -> Imported | None:
        with suppress(ValueError, OSError):
            return IMPORTERS[peer](source)

    assert read().runs
    steep = []
    for file in files:
        content = file.read_bytes()
        if content.startswith(b"SQLite"):
            steep += steep_databases(file, tmp_path / "copy", read)
            continue

        def read_grown(grown, file=file):
            file.write_bytes(grown)
            return read()

        steep += [f"{file.name}: {found}" for found in too_steep(content, read_grown)]
        file.write_bytes(content)
        steep += steep_copies(file, read)
    assert steep == []


def steep_databases(
    file: Path, saved: Path, read: Callable[[], object]
) -> Iterator[str]:
    """Tables with many rows."""
    shutil.copy(file, saved)
    for name, add in databases(saved):
        paths = {times: saved.with_suffix(f".{times}") for times in (1, 2, 4)}
        for times, path in paths.items():
            shutil.copy(saved, path)
            add(path, 1000 * times)

        def read_times(times: int, paths: dict[int, Path] = paths) -> object:
            shutil.copy(paths[times], file)
            return read()

        found = growth(read_times)
        if found > MOST_GROWTH:
            yield f"{name}: {found:.1f} times for twice as many"
    shutil.copy(saved, file)


def steep_copies(file: Path, read: Callable[[], object]) -> Iterator[str]:
    """Many files of one form beside each other."""
    content, made, seconds = file.read_bytes(), [], []
    for count in (50, 100, 200):
        while len(made) < count:
            path = file.with_name(f"{file.stem}{len(made)}{file.suffix}")
            path.write_bytes(content)
            made.append(path)
        seconds.append(cpu_seconds(read, tries=2))
    found = min(seconds[1] / seconds[0], seconds[2] / seconds[1])
    if seconds[2] > NOTICED_SECONDS and found > MOST_GROWTH:
        yield f"copies of {file.name}: {found:.1f} times for twice as many"
    for path in made:
        path.unlink()


PLANS = {
    "text": (
        "Hash Join  (cost=1.00..2.00 rows=1 width=4) (actual time=0.1..0.2 rows=1 loops=1)\n"
        "  Hash Cond: (a.b = c.d)\n"
        "  CTE x\n"
        "    ->  Seq Scan on a  (cost=0.00..1.00 rows=1 width=4) "
        "(actual time=0.1..0.2 rows=1 loops=1)\n"
        "  InitPlan 1\n"
        "    ->  Result  (cost=0.00..0.01 rows=1 width=4) (actual time=0.1..0.2 rows=1 loops=1)\n"
        "  ->  CTE Scan on x  (cost=0.00..1.00 rows=1 width=4) "
        "(actual time=0.1..0.2 rows=1 loops=1)\n"
        "Planning Time: 0.1 ms\nExecution Time: 1.0 ms\n"
    ),
    "json": json.dumps(
        [
            {
                "Plan": {
                    "Node Type": "CTE Scan",
                    "CTE Name": "x",
                    "Actual Total Time": 2.0,
                    "Actual Loops": 1,
                    "Filter": "(a = (InitPlan 1).col1)",
                    "Plans": [
                        {
                            "Node Type": "Result",
                            "Parent Relationship": "InitPlan",
                            "Subplan Name": "CTE x",
                            "Actual Total Time": 0.2,
                            "Actual Loops": 1,
                        },
                        {
                            "Node Type": "Result",
                            "Parent Relationship": "InitPlan",
                            "Subplan Name": "InitPlan 1 (returns $0)",
                            "Actual Total Time": 0.1,
                            "Actual Loops": 1,
                        },
                    ],
                },
                "Execution Time": 3.0,
            }
        ]
    ),
}


@pytest.mark.parametrize("form", PLANS)
def test_a_plan_takes_time_by_the_size(form):
    def read(content):
        with suppress(PlanUnreadableError):
            read_plan(content.decode())

    assert list(too_steep(PLANS[form].encode(), read)) == []


CONF = (
    "# x\nwork_mem = 4MB\nshared_preload_libraries = 'a, b'\ninclude 'x'\nno setting at all\n"
    "[section]\nALTER SYSTEM SET fsync = off;\n> quoted = 1\n| name | value |\n"
)
SCRIPT = (
    "\\set aid random(1, 100)\nBEGIN;\nSELECT 1 FROM t WHERE a = :aid;\n\\if :aid\n\\sleep 1 ms\n"
    "\\endif\n\\startpipeline\nSELECT 2;\n\\endpipeline\n-- x\n/* y */\nEND;\n"
)


def test_settings_take_time_by_the_size():
    steep = too_steep(CONF.encode(), lambda content: conf_file.read(content.decode()))
    assert list(steep) == []


def test_scripts_take_time_by_the_size():
    def read(content):
        return script_check.check([GivenScript("a", content.decode()[:100_000])], {})

    assert list(too_steep(SCRIPT.encode(), read)) == []
    scripts = [GivenScript("a", "SELECT 1;")] * 5_000
    assert growth(lambda times: script_check.check(scripts * times, {})) < MOST_GROWTH


def test_an_export_takes_time_by_the_size():
    first_line = b'{"instance":"","project":{},"type":"benchlab-export","version":2}\n'
    lines = [
        b'{"author":"","committed_at":null,"created_at":null,"merge_base":"","merge_base_at":null,'
        b'"parents":[],"ref":"","sha":"%040x","subject":"","type":"revision","url":""}\n'
        % number
        for number in range(80_000)
    ]

    def read(times):
        export = readers.find("export").begin()
        content = first_line + b"".join(lines[: 20_000 * times])
        batch = export(
            {"lines": {"base64": b64encode(content).decode()}, "is_last": False}
        )
        assert (batch.fault, len(batch.lines)) == (None, 20_000 * times + 1)

    assert growth(read) < MOST_GROWTH
