"""Reports as one self-contained HTML file: no network, no scripts, no other files."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import override

from runs.charts import looks, svg
from runs.reports.report import Block, Picture, Report

TEMPLATE = "reports/report.html"
STYLES = ("css/tokens.css", "css/report.css")


@dataclass(frozen=True)
class Shown:
    """A block as the template needs it: its kind, and the still picture of a figure."""

    kind: str
    block: Block
    still: str = ""


def page(report: Report) -> str:
    """The complete file as text."""
    sections = [
        (section.title, [_shown(block) for block in section.blocks])
        for section in report.sections
    ]
    with override(report.language):
        return render_to_string(
            TEMPLATE,
            {
                "report": report,
                "sections": sections,
                "styles": [_style(name) for name in STYLES],
            },
        )


def _shown(block: Block) -> Shown:
    kind = type(block).__name__.lower()
    if not isinstance(block, Picture):
        return Shown(kind, block)
    # The renderer escapes every text of the figure.
    drawn = svg.render(block.figure, title=block.caption, look=looks.FILE)
    return Shown(kind, block, mark_safe(drawn))  # noqa: S308


@lru_cache
def _style(name: str) -> SafeString:
    path = finders.find(name)
    if not isinstance(path, str):
        raise FileNotFoundError(f"the static file {name} is missing")
    return mark_safe(Path(path).read_text(encoding="utf-8"))  # noqa: S308
