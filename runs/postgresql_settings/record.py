"""Adds what a server prints to `settings.csv`: run this when a new PostgreSQL version is out.

    psql -X --csv -c "$(python -m runs.postgresql_settings.record --query)" > 19.csv
    python -m runs.postgresql_settings.record 19 19.csv

The version must be in `catalogue.MAJORS`. Print from a server with default settings, built
without optional libraries, like the others; words that need a library are in `hidden`.
"""

import argparse
import csv
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from runs.postgresql_settings.catalogue import FILE, MAJORS, Stretch, position, read

QUERY = (
    "SELECT name, vartype, unit, min_val, max_val, enumvals, boot_val, context, category,"
    ' short_desc FROM pg_settings ORDER BY name COLLATE "C"'
)
# Column of settings.csv to column of pg_settings.
COLUMNS = {
    "name": "name",
    "type": "vartype",
    "unit": "unit",
    "minimum": "min_val",
    "maximum": "max_val",
    "values": "enumvals",
    "default": "boot_val",
    "context": "context",
    "category": "category",
    "description": "short_desc",
}
# Another wording or chapter makes no other setting: the newest text serves all versions.
TEXTS = ("category", "description")
# Facts about the server that was asked, which are not defaults of the version.
OWN_TO_SERVER = {"server_version", "server_version_num"}

Facts = Mapping[str, str]


def from_dump(rows: Iterable[Mapping[str, str]]) -> dict[str, Facts]:
    """Facts by name of one version, from the rows that QUERY prints."""
    return {row["name"]: _facts(row) for row in rows}


def split_by_version(stretches: Iterable[Stretch]) -> dict[str, dict[str, Facts]]:
    """The facts of each version by name: what `stretches` had joined."""
    facts_by_version: dict[str, dict[str, Facts]] = {}
    for stretch in stretches:
        for major in MAJORS[position(stretch.first) : position(stretch.last) + 1]:
            facts_by_version.setdefault(major, {})[stretch.facts["name"]] = (
                stretch.facts
            )
    return facts_by_version


def stretches(versions: Mapping[str, Mapping[str, Facts]]) -> list[Stretch]:
    """The minimal rows with the facts of all versions, sorted by name and version."""
    setting_names = sorted(
        {name for facts in versions.values() for name in facts}, key=str.lower
    )
    return [row for name in setting_names for row in _stretches_of(name, versions)]


def write(rows: Sequence[Stretch], file: Path = FILE) -> None:
    """Write a settings file."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        name, *other_columns = COLUMNS
        writer = csv.DictWriter(
            stream, [name, "versions", *other_columns], lineterminator="\n"
        )
        writer.writeheader()
        for row in rows:
            span = row.first if row.first == row.last else f"{row.first}-{row.last}"
            writer.writerow({**row.facts, "versions": span})


def main(arguments: Sequence[str]) -> None:
    """The command line that the module's docstring shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--query", action="store_true", help="print the query to ask a server"
    )
    parser.add_argument("version", nargs="?", choices=MAJORS)
    parser.add_argument("dump", nargs="?", type=Path)
    arguments_read = parser.parse_args(arguments)
    if arguments_read.query:
        sys.stdout.write(QUERY + "\n")
    elif arguments_read.version is None or arguments_read.dump is None:
        parser.error("give a version and the CSV file that its server printed")
    else:
        with arguments_read.dump.open(newline="", encoding="utf-8") as stream:
            dump = from_dump(csv.DictReader(stream))
        recorded = split_by_version(read()) if FILE.exists() else {}
        write(stretches({**recorded, arguments_read.version: dump}))


def _facts(row: Mapping[str, str]) -> Facts:
    facts = {ours: row[theirs] or "" for ours, theirs in COLUMNS.items()}
    if facts["name"] in OWN_TO_SERVER:
        facts.update(minimum="", maximum="", default="")
    return facts


def _stretches_of(
    name: str, versions: Mapping[str, Mapping[str, Facts]]
) -> list[Stretch]:
    present = [major for major in MAJORS if name in versions.get(major, {})]
    newest = versions[present[-1]][name]
    texts = {column: newest[column] for column in TEXTS}
    facts = [(major, {**versions[major][name], **texts}) for major in present]
    # A gap between versions ends a stretch as a changed fact does.
    numbered = (
        (position(major) - index, major, row)
        for index, (major, row) in enumerate(facts)
    )
    groups = itertools.groupby(
        numbered,
        key=lambda stretch_facts: (stretch_facts[0], sorted(stretch_facts[2].items())),
    )
    return [
        Stretch(members[0][1], members[-1][1], members[0][2])
        for members in (list(group) for _key, group in groups)
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
