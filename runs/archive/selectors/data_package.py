"""The complete archive as one file: a zip with CSV tables and a Frictionless `datapackage.json`.

`sources.bib` has an entry for each publication.

https://specs.frictionlessdata.io/tabular-data-package/
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from runs.archive.selectors import archive, citations
from runs.cells.selectors import provenance
from runs.models import PrintedFigure, PublishedTable, Source
from runs.reports.csv_lines import csv_lines

FILE_NAME = "benchlab-archive.zip"
IN_MEMORY_BYTES = 2**23
# A fixed date for all entries, so that the same archive gives the same bytes.
STAMP = (2000, 1, 1, 0, 0, 0)

Columns = Mapping[str, str]


def _columns(*names: str, **kinds: str) -> Columns:
    """The columns in their order with their types, which are strings but for those of `kinds`."""
    return {name: kinds.get(name, "string") for name in names}


SOURCES = _columns(
    "slug",
    "title",
    "title_ja",
    "publisher",
    "year",
    "published",
    "url",
    "traces",
    "licence",
    "licence_url",
    "transcribed_on",
    "data_version",
    year="integer",
    traces="array",
    transcribed_on="date",
)
FIGURES = _columns(
    "source",
    "table",
    "section",
    "page",
    "row",
    "column",
    "head",
    "words",
    "levels",
    "conditions",
    "metric",
    "value",
    "unit",
    "printed",
    "said_by",
    "exact",
    "n",
    "statistic",
    "recomputed",
    "disputed",
    **dict.fromkeys(("row", "column", "n"), "integer"),
    **dict.fromkeys(("levels", "conditions"), "object"),
    **dict.fromkeys(("value", "recomputed"), "number"),
    exact="boolean",
    disputed="array",
)
DISCREPANCIES = _columns(
    "source", "table", "weight", "kind", "printed", "recomputed", "explanation"
)
CONCLUSIONS = _columns("source", "table", "by", "text", "section", "quote", "computed")
CORRECTIONS = _columns(
    "source",
    "date",
    "table",
    "figures",
    "was",
    "now",
    "reason",
    date="date",
    figures="array",
)


def write(*, address: str) -> IO[bytes]:
    """The package as an open file at its start, in a fixed number of queries."""
    sources = list(archive.sources())
    resources = {
        "sources": (SOURCES, map(vars, sources)),
        "figures": (FIGURES, _figures()),
        "discrepancies": (DISCREPANCIES, _discrepancies()),
        "conclusions": (CONCLUSIONS, _conclusions()),
        "corrections": (CORRECTIONS, _corrections(sources)),
    }
    file = cast("IO[bytes]", SpooledTemporaryFile(max_size=IN_MEMORY_BYTES))  # noqa: SIM115
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, (columns, rows) in resources.items():
            lines = csv_lines(
                columns, ([row[column] for column in columns] for row in rows)
            )
            _add(package, f"{name}.csv", "".join(lines))
        described = {name: columns for name, (columns, _rows) in resources.items()}
        _add(package, "datapackage.json", _describe(described, sources, address))
        cited = (
            citations.Cited(source, f"{address}{source.slug}/") for source in sources
        )
        _add(
            package,
            "sources.bib",
            "\n".join(citations.bibtex(citation) for citation in cited),
        )
    file.seek(0)
    return file


def _describe(
    resources: dict[str, Columns], sources: Sequence[Source], address: str
) -> str:
    title = "Published PostgreSQL performance figures, transcribed by BenchLab"
    version = "-".join(f"{source.slug}.{source.data_version}" for source in sources)
    package = {
        "name": "benchlab-archive",
        "title": title,
        "citation": f"BenchLab, “{title}”, version {version}. {address}",
        "profile": "tabular-data-package",
        "homepage": address,
        "version": version,
        "sources": [
            {"title": source.title, **({"path": source.url} if source.url else {})}
            for source in sources
        ],
        # Of the publications that state one; sources.csv says which.
        "licenses": [
            {"name": source.licence, "title": source.title}
            for source in sources
            if source.licence
        ],
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "encoding": "utf-8",
                "schema": {
                    "fields": [
                        {"name": field, "type": kind} for field, kind in columns.items()
                    ],
                    "missingValues": [""],
                },
            }
            for name, columns in resources.items()
        ],
    }
    return json.dumps(package, ensure_ascii=False, indent=2)


def _figures() -> Iterator[dict[str, Any]]:
    figures = PrintedFigure.objects.select_related(
        "measurement__metric", "measurement__run__cell"
    ).prefetch_related(*provenance.loaded())
    ordered = figures.order_by("table__source__slug", "table__ordinal", "row", "column")
    for figure in ordered.iterator(2000):
        measurement = figure.measurement
        record = provenance.find_record(figure)
        yield {
            **asdict(record.place),
            **asdict(record),
            "levels": measurement.run.cell.levels if measurement else {},
            "metric": measurement.metric.name if measurement else "",
            "value": measurement.value if measurement else None,
            "unit": measurement.metric.unit if measurement else "",
        }


def _discrepancies() -> Iterator[dict[str, Any]]:
    for discrepancy in archive.discrepancies():
        location = {
            "source": discrepancy.table.source.slug,
            "table": discrepancy.table.number,
        }
        yield asdict(provenance.dispute(discrepancy)) | location


def _conclusions() -> Iterator[dict[str, Any]]:
    tables = PublishedTable.objects.order_by("source__slug", "ordinal")
    for source, number, findings in tables.values_list(
        "source__slug", "number", "findings"
    ):
        for finding in findings:
            texts = {"text": finding["en"], "computed": finding.get("computed", "")}
            yield {**finding, **texts, "source": source, "table": number}


def _corrections(sources: Iterable[Source]) -> Iterator[dict[str, Any]]:
    for source in sources:
        for correction in source.corrections:
            texts = {
                name: _english(correction[name]) for name in ("was", "now", "reason")
            }
            yield {**correction, "source": source.slug, **texts}


def _english(text: str | Mapping[str, str]) -> str:
    return text if isinstance(text, str) else text.get("en", "")


def _add(package: zipfile.ZipFile, name: str, text: str) -> None:
    package.writestr(zipfile.ZipInfo(name, STAMP), text.encode(), zipfile.ZIP_DEFLATED)
