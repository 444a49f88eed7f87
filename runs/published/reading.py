"""Reading a data file: YAML to the frozen dataclasses of `document`."""

import hashlib
from datetime import date
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
    Trace,
)
from runs.published.errors import PublishedFileError
from runs.published.fields import Fields, parse

FOLDER = Path(__file__).parent
# Part of each file's hash: increase it if the same file must be stored differently.
FORMAT = 9


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
    source = Fields(fields.raw("source"), "source")
    document = Document(
        path=path,
        source=_source(source),
        metrics=tuple(fields.each("metrics", _metric).values()),
        hardware=fields.each("hardware", _hardware),
        environments=fields.each("environments", _environment),
        configurations=fields.each("configurations", _configuration),
        campaigns=tuple(read_campaign(each) for each in fields.items("campaigns")),
    )
    source.close()
    fields.close()
    if document.source.slug != path.stem:
        raise source.fault(f"has the slug {document.source.slug}, the file another name")
    _check_references(document)
    return document


def _source(fields: Fields) -> SourceEntry:
    licence = Fields(fields.raw("licence", {}), "licence")
    year = fields.number("year")
    if year is None:
        raise fields.fault("lacks “year”")
    made = SourceEntry(
        slug=fields.text("slug", required=True),
        title=fields.pair("title", required=True),
        publisher=fields.pair("publisher"),
        year=year,
        published=fields.text("published"),
        url=_address(fields, "url"),
        traces=tuple(_trace(each) for each in fields.items("traces")),
        language=fields.text("language") or "ja",
        licence=licence.text("name"),
        licence_url=licence.text("url"),
        summary=fields.pair("summary"),
        transcribed=_day(fields, "transcribed") if fields.raw("transcribed") else None,
        data_version=fields.text("data_version") or "1",
        corrections=tuple(_correction(each) for each in fields.items("corrections")),
    )
    licence.close()
    return made


def _day(fields: Fields, name: str) -> date:
    text = fields.text(name, required=True)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise fields.fault(f"needs a day such as 2026-11-21 in “{name}”, not “{text}”") from None


def _address(fields: Fields, name: str, *, required: bool = False) -> str:
    """An address of the web. Raises PublishedFileError for any other, which pages would link to."""
    text = fields.text(name, required=required)
    if text and not text.startswith(("http://", "https://")):
        message = f"needs an address that begins with https:// in “{name}”, not “{text}”"
        raise fields.fault(message, text)
    return text


def _trace(value: Any) -> Trace:
    fields = Fields(value, "a trace")
    made = Trace(
        url=_address(fields, "url", required=True), note=fields.pair("note", required=True)
    )
    fields.close()
    return made


def _one_or_both(fields: Fields, name: str) -> Text:
    """A text in both languages, or one that is the same in both, such as a number."""
    value = fields.raw(name, "")
    return (
        Text(value, value) if isinstance(value, str) and value else fields.pair(name, required=True)
    )


def _correction(value: Any) -> Correction:
    fields = Fields(value, "a correction")
    made = Correction(
        date=_day(fields, "date"),
        table=fields.text("table") or "all",
        figures=tuple(str(each) for each in fields.items("figures")),
        was=_one_or_both(fields, "was"),
        now=_one_or_both(fields, "now"),
        reason=fields.pair("reason", required=True),
    )
    fields.close()
    return made


def _metric(fields: Fields, name: str) -> MetricEntry:
    direction: Any = fields.text("direction", choices=("higher", "lower", "neutral"))
    return MetricEntry(
        name=name,
        unit=fields.text("unit"),
        direction=direction or "neutral",
        title=fields.pair("title", required=True),
    )


def _hardware(fields: Fields, key: str) -> HardwareEntry:
    name = fields.raw("name")
    both = fields.pair("name") if isinstance(name, dict) else None
    return HardwareEntry(
        key=key,
        name=both.en if both else fields.text("name", required=True),
        name_ja=both.ja if both else "",
        cpu_model=fields.text("cpu_model"),
        sockets=fields.number("sockets"),
        cores=fields.number("cores"),
        threads=fields.number("threads"),
        memory_bytes=fields.size("memory"),
        memory_printed=fields.text("memory"),
        virtualization=fields.text("virtualization"),
        facts=fields.mapping("facts"),
    )


def _environment(fields: Fields, key: str) -> EnvironmentEntry:
    return EnvironmentEntry(
        key=key,
        os_name=fields.text("os_name"),
        kernel=fields.text("kernel"),
        architecture=fields.text("architecture"),
        facts=fields.mapping("facts"),
    )


def _configuration(fields: Fields, key: str) -> ConfigurationEntry:
    settings = {name: str(value) for name, value in fields.mapping("settings").items()}
    return ConfigurationEntry(
        key=key,
        name=fields.pair("name", required=True),
        version=fields.text("version"),
        settings=settings,
        initdb_options=tuple(fields.items("initdb_options")),
    )


def _check_references(document: Document) -> None:
    seen: dict[str, set[str]] = {"campaign": set(), "table": set()}
    for campaign in document.campaigns:
        for name, value in (("campaign", campaign.slug), ("table", campaign.table)):
            if value in seen[name]:
                raise PublishedFileError(
                    f"the {name} {value} is there twice; give one of them another name.",
                    words="slug: " + campaign.slug,
                )
            seen[name].add(value)
        for node in campaign.nodes:
            for kind, key, known in (
                ("hardware", node.hardware, document.hardware),
                ("environment", node.environment, document.environments),
                ("configuration", node.configuration, document.configurations),
            ):
                if key and key not in known:
                    names = ", ".join(known) or "nothing"
                    message = (
                        f"a node names the {kind} {key}, which the file does not have; it has "
                        f"{names}."
                    )
                    raise PublishedFileError(
                        message, campaign=campaign.slug, words=(f"{kind}:", key)
                    )
