"""What tests ask of readings."""

from pathlib import Path

from runs.tools import registry
from runs.tools.adapter import Reading

SAMPLES = Path(__file__).parents[2] / "samples"


def sample(tool: str, name: str) -> bytes:
    return (SAMPLES / tool / name).read_bytes()


def read(tool: str, name: str) -> Reading:
    """The reading of a recorded output."""
    adapter = registry.find(tool)
    assert adapter
    return adapter.read({"raw": sample(tool, name)})


def figures(reading: Reading) -> dict[str, float]:
    return {value.metric: value.value for value in reading.measurements}


def series(reading: Reading) -> dict[str, tuple[float | None, ...]]:
    return {found.name: found.values for found in reading.series}


def codes(reading: Reading) -> list[str]:
    return [reason.code for reason in reading.reasons]
