"""The available formats of a report."""

from collections.abc import Callable
from dataclasses import dataclass

from runs.reports import html, markdown, rst
from runs.reports.report import Report


@dataclass(frozen=True)
class Format:
    """How a report becomes a file; `ending` is that of the file's name."""

    write: Callable[[Report], bytes]
    ending: str
    media_type: str


FORMATS = {
    "html": Format(
        lambda report: html.page(report).encode(), "html", "text/html; charset=utf-8"
    ),
    "md": Format(markdown.zipped, "md.zip", "application/zip"),
    "rst": Format(rst.zipped, "rst.zip", "application/zip"),
}
