"""CSV line by line, as every export, list and package of BenchLab is written."""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

# A spreadsheet takes a cell that starts like this for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Line:
    """Takes a line from csv.writer and returns it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(
    heads: Iterable[str], rows: Iterable[Iterable[Any]], *, end: str = "\n"
) -> Iterator[str]:
    """The heads and the rows, one at a time: there may be more than fit into memory."""
    writer = csv.writer(_Line(), lineterminator=end)
    for row in chain([heads], rows):
        yield str(writer.writerow(map(_cell, row)))


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe; parts are JSON.

    Numbers stay numbers at full precision, negative ones too; unknown is an empty field. A carriage
    return becomes a line feed: `csv` quotes that alone, and a spreadsheet would begin a line with
    what follows the other.
    """
    if isinstance(value, str):
        text = value.replace("\r\n", "\n").replace("\r", "\n")
        return f"'{text}" if value.startswith(FORMULA) else text
    if isinstance(value, dict | list | tuple | bool):
        return json.dumps(value, ensure_ascii=False)
    return value
