"""The only exception for data files."""

from collections.abc import Sequence
from pathlib import Path

# One text, or several that the line has all of.
Words = str | Sequence[str]


class PublishedFileError(Exception):
    """A data file has an error: names the file, the line, the campaign and the row.

    `words` are in the line of the fault, all of them; `locate` finds that line.
    """

    def __init__(
        self,
        message: str,
        *,
        campaign: str = "",
        row: int | None = None,
        words: Words = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = ""
        self.line: int | None = None
        self.campaign = campaign
        self.row = row
        self.words = (words,) if isinstance(words, str) else tuple(words)

    def locate(self, path: Path) -> None:
        """Note the file, and the line: that of the words behind the campaign's slug.

        Where no line has all words it is the one with the first, else that of the campaign.
        """
        self.file = path.name
        words = [word for word in self.words if word]
        lines = path.read_text(encoding="utf-8").splitlines()
        start = _line_with(lines, [f"slug: {self.campaign}"], 0) if self.campaign else 0
        if start is None or not (self.campaign or words):
            return
        for words_wanted in (words, words[:1]):
            line_number = (
                _line_with(lines, words_wanted, start) if words_wanted else None
            )
            if line_number is not None:
                self.line = line_number + 1
                return
        self.line = start + 1 if self.campaign else None

    def __str__(self) -> str:
        places = [
            f"{self.file}:{self.line}" if self.line else self.file,
            self.campaign and f"campaign {self.campaign}",
            "" if self.row is None else f"row {self.row + 1}",
        ]
        return ": ".join([location for location in places if location] + [self.message])


def _line_with(lines: list[str], words: Sequence[str], start: int) -> int | None:
    places = range(start, len(lines))
    return next(
        (index for index in places if all(word in lines[index] for word in words)), None
    )
