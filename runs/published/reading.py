"""Reading a data file: YAML to the frozen dataclasses of `document`."""

import hashlib
from pathlib import Path
from typing import Any

from runs.published.campaign_reading import read_campaign
from runs.published.document import (
    ConfigurationEntry,
    Correction,
    Document,
    EnvironmentEntry,
    HardwareEntry,
    MetricEntry,
    SourceEntry,
    Text,
)
from runs.published.errors import PublishedFileError
from runs.published.fields import Fields, parse

FOLDER = Path(__file__).parent
# Part of each file's hash: increase it if the same file must be stored differently.
FORMAT = 10


def files(folder: Path = FOLDER) -> list[Path]:
    """The data files of the archive."""
    return sorted(folder.glob("*.yaml"))


def content_hash(path: Path) -> str:
    """The hash that decides whether a file must be loaded again."""
    return hashlib.sha256(b"%d\n" % FORMAT + path.read_bytes()).hexdigest()


def read(path: Path) -> Document:
    """The publication in a data file. Raises PublishedFileError, which names file and place."""
    try:
        return _document(path, parse(path.read_text(encoding="utf-8")))
    except PublishedFileError as error:
        error.locate(path)
        raise


def _document(path: Path, content: Any) -> Document:
    fields = Fields(content, "the file")
    document = Document(
        path=path,
        source=_source(Fields(fields.raw("source"), "source")),
        metrics=tuple(fields.entries("metrics", MetricEntry, key="name").values()),
        hardware={
            key: _hardware(Fields(value, f"hardware {key}"), key)
            for key, value in fields.mapping("hardware").items()
        },
        environments=fields.entries("environments", EnvironmentEntry, key="key"),
        configurations=fields.entries("configurations", ConfigurationEntry, key="key"),
        campaigns=tuple(read_campaign(field) for field in fields.items("campaigns")),
    )
    fields.close()
    if document.source.slug != path.stem:
        message = f"has the slug {document.source.slug}, the file another name"
        raise Fields({}, "source").fault(message)
    _check_references(document)
    return document


def _source(fields: Fields) -> SourceEntry:
    licence = Fields(fields.raw("licence", {}), "licence")
    name, url = licence.text("name"), licence.text("url")
    licence.close()
    corrections = tuple(
        _correction(Fields(field, "a correction"))
        for field in fields.items("corrections")
    )
    return fields.entry(
        SourceEntry, licence=name, licence_url=url, corrections=corrections
    )


def _correction(fields: Fields) -> Correction:
    """Texts may be the same in both languages, such as a number."""
    raw_texts = ((name, fields.raw(name)) for name in ("was", "now"))
    same = {
        name: Text(value, value) for name, value in raw_texts if isinstance(value, str)
    }
    return fields.entry(Correction, **same)


def _hardware(fields: Fields, key: str) -> HardwareEntry:
    name = fields.raw("name")
    name_pair = fields.pair("name") if isinstance(name, dict) else None
    return fields.entry(
        HardwareEntry,
        key=key,
        name=name_pair.en if name_pair else fields.text("name", required=True),
        name_ja=name_pair.ja if name_pair else "",
        memory_bytes=fields.size("memory"),
        memory_printed=fields.text("memory"),
    )


def _check_references(document: Document) -> None:
    seen_values: dict[str, set[str]] = {"campaign": set(), "table": set()}
    for campaign in document.campaigns:
        for name, value in (("campaign", campaign.slug), ("table", campaign.table)):
            if value in seen_values[name]:
                raise PublishedFileError(
                    f"the {name} {value} is there twice; give one of them another name.",
                    words="slug: " + campaign.slug,
                )
            seen_values[name].add(value)
        for node in campaign.nodes:
            for kind, key, known_entries in (
                ("hardware", node.hardware, document.hardware),
                ("environment", node.environment, document.environments),
                ("configuration", node.configuration, document.configurations),
            ):
                if key and key not in known_entries:
                    names = ", ".join(known_entries) or "nothing"
                    message = (
                        f"a node names the {kind} {key}, which the file does not have; it has "
                        f"{names}."
                    )
                    raise PublishedFileError(
                        message, campaign=campaign.slug, words=(f"{kind}:", key)
                    )
