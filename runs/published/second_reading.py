"""A file held against the text of its source: what one has and the other has not.

Presence only: the tests compare the order of figures where a document's regions are known.
"""

import re
from collections.abc import Iterable, Iterator

from runs.postgresql_settings import catalogue
from runs.published import figures
from runs.published.document import CampaignEntry, Document
from runs.published.figures import NUMBER

# "wal_compression=on", "| jit | off |": a name with its value; in running text neither follows.
_ASSIGNED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*+)[ \t]*+[=|]")
# What an author names: numbers, products, versions. Lower-case words are ours or anybody's.
_TOKEN = re.compile(r"(?<![\w.])[A-Za-z]*+\d[\w.]*+|(?<!\w)[A-Z]\w++")
# Without thousands: in a text of values with commas between them these would join two.
_DIGITS = re.compile(r"\d++(?:\.\d++)?")
# Settings with a prefix are in no catalogue; of others a dot may be anything.
_EXTENSIONS = ("pg_stat_statements.", "auto_explain.", "pg_prewarm.")
_NUMBERS_AND_VERSIONS = re.compile(r"\d++(?:\.\d++)*+")
_UNITS = frozenset(["KB", "MB", "GB", "TB", "KIB", "MIB", "GIB", "TIB"])


def differences(document: Document, text: str) -> list[str]:
    """Sentences on what to look at again; empty if the text has all of it.

    `text` is the whole source, in one piece, with its configuration files where it has them.
    """
    return [
        *_settings_left_out(document, text),
        *_facts_not_in_text(document, text),
        *_figures_not_in_text(document.campaigns, text),
    ]


def _settings_left_out(document: Document, text: str) -> Iterator[str]:
    name_groups: list[Iterable[str]] = [
        entry.settings for entry in document.configurations.values()
    ]
    for campaign in document.campaigns:
        name_groups += [campaign.parameters, campaign.levels]
        name_groups += [column.levels for column in campaign.columns]
    in_file = {name.lower() for names in name_groups for name in names}
    known_names = {name.lower() for name in catalogue.all_names()}
    assigned = {match[1].lower() for match in _ASSIGNED.finditer(text)}
    for name in sorted(assigned - in_file):
        if name in known_names or name.startswith(_EXTENSIONS):
            yield f"the source sets {name}, which no configuration of the file has"


def _facts_not_in_text(document: Document, text: str) -> Iterator[str]:
    searched = text.lower()
    numbers = set(_NUMBERS_AND_VERSIONS.findall(text))
    for place, value in dict.fromkeys(_facts(document)):
        tokens = [
            token
            for token in _TOKEN.findall(value)
            if token.upper() not in _UNITS
            and not (
                token in numbers
                if _NUMBERS_AND_VERSIONS.fullmatch(token)
                else token.lower() in searched
            )
        ]
        if tokens:
            yield f"{place} “{value}”: the source has no {', '.join(tokens)}"


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    """Each place of the file's head with its text. Names of our own are none."""
    for machine in document.hardware.values():
        yield f"hardware {machine.key}", machine.cpu_model
        yield f"hardware {machine.key}", machine.memory_printed
        for name, value in machine.facts.items():
            yield f"hardware {machine.key}, {name}", str(value)
    for system in document.environments.values():
        yield f"environment {system.key}", f"{system.os_name} {system.kernel}"
        for name, value in system.facts.items():
            yield f"environment {system.key}, {name}", str(value)
    for entry in document.configurations.values():
        for name, value in entry.settings.items():
            yield f"configuration {entry.key}, {name}", value
    for campaign in document.campaigns:
        for version in campaign.versions.values():
            yield "version", version


def _figures_not_in_text(
    campaigns: Iterable[CampaignEntry], text: str
) -> Iterator[str]:
    printed = {*_DIGITS.findall(text), *_numbers(text)}
    for campaign in campaigns:
        missing = [
            cell
            for row in campaign.grid
            for cell in row
            if not figures.is_empty(cell) and not _numbers(cell) <= printed
        ]
        if missing:
            yield f"{campaign.slug}: the source has no {', '.join(missing)}"


def _numbers(text: str) -> set[str]:
    """The numbers with every printed digit and without their sign."""
    return {
        match["digits"] + (match["fraction"] or "") for match in NUMBER.finditer(text)
    }
