"""The one exception of data files."""


class PublishedFileError(Exception):
    """A data file does not say what it must: names the file, the campaign and the row."""

    def __init__(self, message: str, *, campaign: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = ""
        self.campaign = campaign
        self.row = row

    def __str__(self) -> str:
        places = [
            self.file,
            self.campaign and f"campaign {self.campaign}",
            "" if self.row is None else f"row {self.row + 1}",
        ]
        return ": ".join([place for place in places if place] + [self.message])
