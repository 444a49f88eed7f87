"""The commands of docs/deployment.md, as they stand there."""

import re

from tests.migrated import ROOT

TEXT = (ROOT / "docs/deployment.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PROGRAM = re.compile(
    r"(?:docker compose|systemctl|script/|manage\.py|\.venv/|git|python|systemd-analyze|ALTER) ?.*"
)


def blocks(heading: str) -> list[str]:
    """The blocks of commands below a heading, up to the next one of any depth."""
    return _by_heading().get(heading, [])


def headings() -> set[str]:
    """Those with a block of commands."""
    return set(_by_heading())


def inline() -> set[str]:
    """Commands within sentences and tables."""
    prose = FENCE.sub("", TEXT)
    quoted = (" ".join(each.split()) for each in re.findall(r"`([^`]+)`", prose))
    return {each for each in quoted if PROGRAM.fullmatch(each)}


def _by_heading() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for fence in FENCE.finditer(TEXT):
        if fence[1]:
            continue  # a file, not commands
        before = FENCE.sub("", TEXT[: fence.start()])
        found.setdefault(HEADING.findall(before)[-1], []).append(fence[2])
    return found
