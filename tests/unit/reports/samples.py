"""A report with every kind of block, and words that each format could take for its own."""

from runs.charts.palette import STYLES
from runs.charts.scaling import Axes, Line, Point, scaling
from runs.reports.report import (
    Bullets,
    Facts,
    Listing,
    Paragraph,
    Picture,
    Remark,
    Report,
    Section,
    Table,
)

NASTY = (
    "plain",
    "* not a list",
    "1. not a list",
    "a. not a list",
    "- minus",
    "+ plus",
    "> quoted?",
    "# heading?",
    "| pipe | pipe |",
    "`code` and ``code``",
    "*emphasis* **strong** _under_ reference_ |sub|",
    ".. directive::",
    ":field: value",
    "-n option",
    "--all option",
    "====",
    "::",
    "__ anonymous",
    "<b>bold</b> &amp; <script>alert(1)</script>",
    "[link](javascript:alert(1)) ![x](y)",
    "back\\slash",
    "ends with colon::",
    "日本語の文、記号＊と｜。",
    "C:\\path\\n",
    "~~~",
    "(a) brackets",
    "(i) roman",
    "$x^2$",
    "... and so on",
)


def figure(count=12):
    lines = [
        Line(
            f"PostgreSQL {version}",
            version,
            tuple(
                Point(x, x * place, x * place - 1, x * place + 1, 3)
                for x in (1, 2, 4, 8)
            ),
        )
        for place, version in enumerate(list(STYLES)[:count], start=1)
    ]
    return scaling(lines, Axes("Clients", "tps"))


def report(words="Title", language="en"):
    return Report(
        name="sample",
        language=language,
        title=words,
        subtitle=words,
        sections=(
            Section(
                words,
                (
                    Paragraph(f"{words}\n{words}\n\n{words}"),
                    Facts(((words, words), ("empty", ""))),
                    Table(
                        words,
                        (words, "tps"),
                        ((words, "1,000"), ("", "")),
                        frozenset((1,)),
                    ),
                    Picture("tps", words, figure()),
                    Bullets((words, "another")),
                    Listing(words, f"{words}\n\n\t```\n  indented\n"),
                    Remark(f"{words}\n\n{words}", words),
                ),
            ),
            Section("Second", (Paragraph("End."),)),
        ),
    )
