"""What tests ask of readings."""

import json
from functools import cache
from pathlib import Path

from runs.tools import registry
from runs.tools.adapter import Reading

SAMPLES = Path(__file__).parents[2] / "samples" / "tools.jsonl"


@cache
def samples(tool: str) -> dict[str, bytes]:
    """What the tool wrote into each recorded file, by the file's name."""
    return {row["file"]: row["text"].encode() for row in _rows() if row["tool"] == tool}


@cache
def _rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in SAMPLES.read_text().split("\n") if line]


def sample(tool: str, name: str) -> bytes:
    return samples(tool)[name]


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
