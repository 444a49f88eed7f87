"""Citations of a publication of the archive in the formats of reference managers."""

import re
from typing import Any

from runs.models import Source

# Characters with a meaning in BibTeX.
SPECIAL = re.compile(r"([{}%&$#_\\])")


def bibtex(source: Source, address: str) -> str:
    """One BibTeX entry: the publication, and the address of its transcription."""
    fields = {
        "title": source.title,
        "author": source.publisher,
        "year": _year(source),
        "language": source.language,
        "howpublished": source.url,
        "note": _note(source, address),
    }
    lines = [f"  {name} = {{{_plain(text)}}}," for name, text in fields.items() if text]
    return "\n".join((f"@misc{{{source.slug},", *lines, "}", ""))


def csl(source: Source, address: str) -> dict[str, Any]:
    """One item of CSL-JSON."""
    item: dict[str, Any] = {
        "id": source.slug,
        "type": "report",
        "title": source.title,
        "publisher": source.publisher,
        "language": source.language,
        "issued": {"date-parts": [[int(_year(source))]]},
        "URL": source.url or address,
        "note": _note(source, address),
    }
    return {name: value for name, value in item.items() if value}


def _year(source: Source) -> str:
    match = re.match(r"\d{4}", source.published)
    return match[0] if match else str(source.year)


def _note(source: Source, address: str) -> str:
    return f"Figures transcribed by BenchLab, data version {source.data_version}, {address}"


def _plain(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)
