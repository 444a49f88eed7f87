"""What docs/target-setup.md says of the room that a scenario needs is what BenchLab asks for."""

import re
from pathlib import Path

import pytest

from runs.execution.preparing import BYTES_TO_SPARE
from runs.scenarios import registry

DOCUMENT = Path(__file__).parents[3] / "docs/target-setup.md"
MIB = 1 << 20
ROWS = dict(
    re.findall(
        r"^ *\| `([a-z-]+)`(?: \(60 s\))? \|((?: \d+ \|){4})$", DOCUMENT.read_text(), re.MULTILINE
    )
)
DURATION_S = 60


def test_every_scenario_with_pgbench_tables_is_in_the_table():
    scaled = {
        each.slug
        for each in registry.every()
        if "scale" in {one.name for one in (*each.factors, *each.parameters)}
    }
    assert set(ROWS) == scaled


@pytest.mark.parametrize("slug", ROWS)
def test_the_room_of_a_cluster_is_what_is_asked_for(slug):
    sizes = registry.get(slug).procedure.sizes
    told = [int(each) for each in ROWS[slug].replace("|", " ").split()]

    assert told == [
        round(sizes({"scale": scale, "duration": DURATION_S}).disk_bytes / MIB)
        for scale in (1, 10, 100, 1000)
    ]


def test_what_comes_beside_it_is_told():
    sizes = registry.get("fixed-point-read").procedure.sizes
    logs = round(sizes({"scale": 1, "duration": DURATION_S}).run_bytes / MIB)
    told = DOCUMENT.read_text()

    assert f"(at most {logs} MiB)" in told
    assert f"{BYTES_TO_SPARE // MIB} MiB that stay free" in told
