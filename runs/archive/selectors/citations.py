"""How publications, their tables and their figures are cited: BibTeX and CSL-JSON."""

import re
from dataclasses import dataclass
from typing import Any

from django.utils import translation

from runs.cells.selectors import provenance
from runs.models import PrintedFigure, PublishedTable, Source

# Characters with a meaning in BibTeX.
SPECIAL = re.compile(r"([{}%&$#_\\])")


@dataclass(frozen=True)
class Cited:
    """What is cited. `part` is a name for it, `place` where in the publication it stands.

    Both are empty for the publication itself. `facts` are what is known of a figure.
    """

    source: Source
    address: str
    part: str = ""
    place: str = ""
    section: str = ""
    page: str = ""
    facts: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the entry in a bibliography."""
        return "-".join(filter(None, (self.source.slug, self.part)))

    @property
    def note(self) -> str:
        """Where it stands, what is known of it, and who transcribed it."""
        data_version = self.source.data_version
        transcription = (
            f"Transcribed by BenchLab, data version {data_version}, {self.address}"
        )
        return ". ".join(
            filter(None, (self.place, "; ".join(self.facts), transcription))
        )


def cite_table(table: PublishedTable, address: str) -> Cited:
    """One printed table."""
    part_of_slug = table.campaign.slug.removeprefix(f"{table.source.slug}-")
    return Cited(
        table.source, address, part_of_slug, _place(table), table.section, table.page
    )


def cite_figure(figure: PrintedFigure, address: str) -> Cited:
    """One printed figure with its record."""
    table = cite_table(figure.table, address)
    unit = figure.measurement.metric.unit if figure.measurement else ""
    with translation.override("en"):
        facts = tuple(provenance.lines([figure], unit))
    part_of_slug = f"{table.part}-{figure.row + 1}-{figure.column + 1}"
    return Cited(
        table.source, address, part_of_slug, "", table.section, table.page, facts
    )


def bibtex(cited: Cited) -> str:
    """One BibTeX entry."""
    source = cited.source
    fields = {
        "title": source.title,
        # Braces, so that a comma in its name does not part family and given names.
        "author": f"{{{_plain(source.publisher)}}}" if source.publisher else "",
        "year": _year(source),
        "language": source.language,
        "howpublished": source.url,
        "pages": cited.page,
        "note": cited.note,
    }
    lines = [f"  {name} = {{{_plain(text)}}}," for name, text in fields.items() if text]
    return "\n".join((f"@misc{{{cited.key},", *lines, "}", ""))


def csl(cited: Cited) -> dict[str, Any]:
    """One item of CSL-JSON."""
    source = cited.source
    item: dict[str, Any] = {
        "id": cited.key,
        "type": "report",
        "title": source.title,
        "author": [{"literal": source.publisher}] if source.publisher else [],
        "publisher": source.publisher,
        "language": source.language,
        "issued": {"date-parts": [[int(_year(source))]]},
        "section": cited.section,
        "page": cited.page,
        "URL": source.url or cited.address,
        "note": cited.note,
    }
    return {name: value for name, value in item.items() if value}


def _place(table: PublishedTable) -> str:
    with translation.override("en"):
        return provenance.where(table)


def _year(source: Source) -> str:
    match = re.match(r"\d{4}", source.published)
    return match[0] if match else str(source.year)


def _plain(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)
