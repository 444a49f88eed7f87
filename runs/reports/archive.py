"""A report's text and its figures as one zip file."""

import io
import zipfile

from runs.charts import svg
from runs.reports.report import Picture, Report

# The same report gives the same file, so that a copy can be compared with another.
TIME = (1980, 1, 1, 0, 0, 0)


def zipped(report: Report, name: str, text: str) -> bytes:
    """`text` as the file `name`, and each figure as `figures/<its name>.svg` next to it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        _write(archive, f"{report.name}/{name}", text)
        for picture in report.pictures():
            drawn = svg.render(picture.figure, title=picture.caption)
            _write(archive, f"{report.name}/{path_of(picture)}", drawn)
    return made.getvalue()


def path_of(picture: Picture) -> str:
    """The path of the picture, seen from the text."""
    return f"figures/{picture.name}.svg"


def _write(archive: zipfile.ZipFile, path: str, text: str) -> None:
    entry = zipfile.ZipInfo(path, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, text)
