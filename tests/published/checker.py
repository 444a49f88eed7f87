"""Compares the archive's tables with the text of the documents that they come from.

A table is a region of the text, between the markers that `regions.yaml` names. All numbers in it,
in their order and with every digit, must be those of the data file's rows.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from runs.published import reading
from runs.published.document import CampaignEntry
from runs.published.figures import FOOTNOTE

FOLDER = Path(__file__).parent
# No part of a name (dbt3, V13.4) and no rest of a number.
NUMBER = re.compile(
    r"(?<![A-Za-z_\d.])[▲△]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
)


@dataclass(frozen=True)
class Region:
    """Where a table stands: behind the last of `after`, found one after the other, to `before`."""

    after: tuple[str, ...]
    before: str


@dataclass(frozen=True)
class Regions:
    """The tables of one document. Lines that match `ignore` are none of any table.

    `headings` finds the lines that begin a section, and names it by its first group.
    """

    document: str
    ignore: str
    captions: str
    headings: str
    tables: dict[str, Region]
    without_figures: tuple[str, ...]


def sources() -> Path | None:
    """The folder of the documents: BENCHLAB_SOURCES, else next to the repository; or None."""
    beside = FOLDER.parents[2] / "shared/sources"
    folder = Path(os.environ.get("BENCHLAB_SOURCES", beside))
    return folder if folder.is_dir() else None


def elsewhere(path: Path = FOLDER / "regions.yaml") -> dict[str, str]:
    """The sources without a document of text, each with how its figures were compared."""
    reasons: dict[str, str] = yaml.safe_load(path.read_text())["elsewhere"]
    return reasons


def is_here(regions: Regions) -> bool:
    """Whether the folder of the documents has this one."""
    folder = sources()
    return folder is not None and (folder / regions.document).is_file()


def regions(path: Path = FOLDER / "regions.yaml") -> dict[str, Regions]:
    """The regions of every document, by the slug of the source."""
    content = yaml.safe_load(path.read_text())
    content.pop("elsewhere", None)
    return {
        slug: Regions(
            document=each["document"],
            ignore=each.get("ignore", r"(?!)"),
            captions=each.get("captions", r"(?!)"),
            headings=each["headings"],
            tables={
                str(table): Region(tuple(region["after"]), region["before"])
                for table, region in each.get("tables", {}).items()
            },
            without_figures=tuple(each.get("without_figures", ())),
        )
        for slug, each in content.items()
    }


def printed(text: str, region: Region, *, ignore: str = r"(?!)") -> list[str]:
    """The numbers of a region of the text. Raises LookupError for a marker that is not there."""
    start = 0
    for marker in region.after:
        place = text.find(marker, start)
        if place < 0:
            raise LookupError(f"“{marker}” is not in the text")
        start = place + len(marker)
    end = text.find(region.before, start)
    if end < 0:
        raise LookupError(f"“{region.before}” is not in the text")
    lines = text[start:end].splitlines()
    return numbers("\n".join(line for line in lines if not re.search(ignore, line)))


def transcribed(campaign: CampaignEntry) -> list[str]:
    """The numbers of a table of the data file, but for numbers that are our own."""
    own = [
        place for place, column in enumerate(campaign.columns) if column.factor == "row"
    ]
    cells = [
        cell
        for row in campaign.grid
        for place, cell in enumerate(row)
        if place not in own
    ]
    return numbers("\n".join(cells))


def numbers(text: str) -> list[str]:
    """Every number with all its digits, without the marks of footnotes."""
    return NUMBER.findall(FOOTNOTE.sub("", text))


def captions(text: str, pattern: str) -> list[str]:
    """The numbers of the tables that the text has, each once."""
    return list(dict.fromkeys(re.findall(pattern, text, re.MULTILINE)))


def squeezed(text: str) -> str:
    """The text without white space: lines and cells break where a page ends."""
    return re.sub(r"\s", "", text)


def section(text: str, name: str, *, headings: str, ignore: str = r"(?!)") -> str:
    """What stands under every heading of this name or part of it (“2.3.3 (3)”).

    Without white space; empty where no such heading is there.
    """
    number, _, part = name.partition(" (")
    inside, within, found = False, False, []
    for line in text.splitlines():
        heading = re.search(headings, line)
        if heading:
            inside, within = heading[1] == number, not part
        elif inside and part and re.match(r"\s*\(\d\)\s", line):
            within = line.strip().startswith(f"({part}")
        elif inside and within and not re.search(ignore, line):
            found.append(line)
    return squeezed("".join(found))


def misplaced(campaign: CampaignEntry, text: str, regions: Regions) -> list[str]:
    """The sections that the document does not have, and quotations that are not in theirs."""
    known = set(re.findall(regions.headings, text, re.MULTILINE))
    parts = [part.partition(" (")[0] for part in re.split(" – |, ", campaign.section)]
    places = [
        f"{campaign.slug}: {part}" for part in parts if part and part not in known
    ]
    return places + [
        f"{campaign.slug}: {each.section}: {each.quote}"
        for each in campaign.findings
        if each.section
        and squeezed(each.quote)
        not in section(
            text, each.section, headings=regions.headings, ignore=regions.ignore
        )
    ]


def unprinted(campaign: CampaignEntry, text: str) -> list[str]:
    """The lines of scripts, plans and outputs that the document does not print."""
    known = squeezed(text)
    return [
        f"{campaign.slug}: {artifact.name}: {line}"
        for artifact in campaign.artifacts
        for line in artifact.text.splitlines()
        if squeezed(line) not in known
    ]


def tables() -> list[tuple[str, CampaignEntry]]:
    """Every table with figures of the archive, with the slug of its source."""
    return [
        (path.stem, campaign)
        for path in reading.files()
        for campaign in reading.read(path).campaigns
        if campaign.has_figures
    ]
