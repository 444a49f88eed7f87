"""The only exception for data files."""

from pathlib import Path


class PublishedFileError(Exception):
    """A data file has an error: names the file, the line, the campaign and the row.

    `words` are words of the file near the fault; `locate` finds their line.
    """

    def __init__(
        self, message: str, *, campaign: str = "", row: int | None = None, words: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = ""
        self.line: int | None = None
        self.campaign = campaign
        self.row = row
        self.words = words

    def locate(self, path: Path) -> None:
        """Note the file, and the line: that of the words behind the campaign's slug."""
        self.file = path.name
        lines = path.read_text(encoding="utf-8").splitlines()
        start = _line_with(lines, f"slug: {self.campaign}", 0) if self.campaign else 0
        if start is None:
            return
        found = _line_with(lines, self.words, start) if self.words else None
        self.line = (start if found is None else found) + 1 if self.campaign or self.words else None

    def __str__(self) -> str:
        places = [
            f"{self.file}:{self.line}" if self.line else self.file,
            self.campaign and f"campaign {self.campaign}",
            "" if self.row is None else f"row {self.row + 1}",
        ]
        return ": ".join([place for place in places if place] + [self.message])


def _line_with(lines: list[str], words: str, start: int) -> int | None:
    return next((at for at in range(start, len(lines)) if words in lines[at]), None)
