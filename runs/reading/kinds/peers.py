"""What another program has kept: `{"peer": its name, "name": the file's, "content": base64}`.

A ZIP is unpacked into the folder of the process, and read from each place that may be meant.
"""

from base64 import b64decode
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from runs.importers.registry import IMPORTERS
from runs.importers.row import Imported, NotTheirs
from runs.reading.readers import Request, stateless
from runs.wording import Marked, Wording, joined, wording_of
from runs.wording import gettext_noop as _

MOST_UNPACKED = 20_000_000
MOST_FILES = 10_000
_SHOWN = 20
_NO_RUN = _("The file has no run.")
_FURTHER = Marked(" %(sentence)s")


def _read(request: Request) -> Imported:
    name = Path(request["name"]).name
    name = "results" if name in {"", ".", ".."} else name
    path = Path(Path(name).stem, name)  # some name a campaign after either
    path.parent.mkdir()
    sentences: list[Wording] = [wording_of(_NO_RUN, {})]
    for place in _unpacked(b64decode(request["content"]), path):
        try:
            imported = IMPORTERS[request["peer"]](place)
        except (ValueError, OSError) as error:  # NotTheirs, or no text
            sentences = [wording_of(Marked("%(error)s"), {"error": error})]
            continue
        if imported.runs:
            return imported
        sentences += imported.left_out[:_SHOWN]
    raise NotTheirs(Marked("%(sentences)s"), sentences=_Sentences(sentences))


class _Sentences:
    def __init__(self, sentences: list[Wording]) -> None:
        self.wording = joined(sentences, _FURTHER)


def _unpacked(content: bytes, path: Path) -> list[Path]:
    """The file, or of a ZIP the folder that it has, and the one in which all of it is."""
    if not content.startswith(b"PK\3\4"):
        path.write_bytes(content)
        return [path]
    try:
        with ZipFile(BytesIO(content)) as packed:
            members = packed.infolist()
            size = sum(member.file_size for member in members)
            if len(members) > MOST_FILES or size > MOST_UNPACKED:
                raise NotTheirs(
                    _(
                        "More than 1.9 MB, or 20 MB unpacked: use manage.py import_results."
                    )
                )
            packed.extractall(path)
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise NotTheirs(
            _("The ZIP cannot be unpacked: %(error)s"), error=error
        ) from error
    inner = list(path.iterdir())
    return [path, *inner] if len(inner) == 1 else [path]


READER = stateless(_read, Imported, (NotTheirs, OSError, ValueError))
