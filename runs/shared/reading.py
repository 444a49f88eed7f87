"""Foreign texts and files of a request, by the one door to their readers (`runs.reading`)."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from django.utils.translation import gettext as _

from runs.importers.registry import IMPORTERS
from runs.importers.row import Imported
from runs.postgresql_settings.conf_text import ConfFile
from runs.query_plans import Plan
from runs.reading import process
from runs.reading.kinds.exports import Batch, Proof
from runs.reading.refusals import NotUnderstood, Refusal, TooMuch
from runs.shared import database
from runs.shared.errors import ServiceError
from runs.statements.data_script import DataScript
from runs.statements.dumps import DumpPart
from runs.statements.load import Load
from runs.tools import registry
from runs.tools.adapter import Files, Reading
from runs.tools.pgbench.scripts import Fault, GivenScript
from runs.wording import put

__all__ = ("NotUnderstood", "Proof")

TOO_MUCH = frozenset({"reading_busy", "reading_too_large", "reading_too_slow"})


class ForeignReader:
    """The reader of one request's texts. Each method raises NotUnderstood or ServiceError.

    The latter says that reading took more than it may, in the field of that name.
    """

    def __init__(self, reading: process.Reading) -> None:
        self._reading = reading

    def output(self, tool: str, files: Files) -> Reading:
        """What a tool's files say of a run."""
        size = sum(map(len, files.values()))
        request = {"tool": tool, "files": dict(files)}
        with _limited("raw"):
            return cast(Reading, self._reading.read("tool", request, size=size))

    def results(self, peer: str, name: str, content: str) -> Imported:
        """The runs in a file that another program has kept; `content` is Base64."""
        request = {"peer": peer, "name": name, "content": content}
        with _limited("file"):
            return cast(
                Imported, self._reading.read("import", request, size=len(content))
            )

    def plan(self, text: str) -> Plan:
        """What EXPLAIN has printed."""
        with _limited("left"):
            return cast(
                Plan, self._reading.read("plan", {"text": text}, size=len(text))
            )

    def load(self, text: str, *, prefix: str, weights: str, masks: bool) -> Load:
        """The statements of a log, of counters or of SQL: see `runs.statements.load.read`."""
        request = {"text": text, "prefix": prefix, "weights": weights, "masks": masks}
        with _limited("statements"):
            return cast(
                Load, self._reading.read("load", request, size=len(text) + len(weights))
            )

    def load_data(self, text: str) -> DataScript:
        """The SQL that makes a load's data, ready for psql."""
        with _limited("data"):
            return cast(
                DataScript,
                self._reading.read("load data", {"text": text}, size=len(text)),
            )

    def load_dump(self, part: bytes, *, is_last: bool, most_bytes: int) -> DumpPart:
        """The next part of a load's dump, which may unpack to so many bytes in all."""
        request = {
            "part": {"base64": b64encode(part).decode()},
            "is_last": is_last,
            "most_bytes": most_bytes,
        }
        with _limited("dump"):
            return cast(
                DumpPart, self._reading.read("load dump", request, size=len(part))
            )

    def settings(self, text: str) -> ConfFile:
        """What a postgresql.conf sets."""
        with _limited("text"):
            return cast(
                ConfFile, self._reading.read("settings", {"text": text}, size=len(text))
            )

    def export_lines(self, lines: bytes, *, size: int, is_last: bool) -> Batch:
        """Whole lines of an export, after those before; `size` is that of the file as far as known.

        What is wrong with a line is in the answer.
        """
        request = {"lines": {"base64": b64encode(lines).decode()}, "is_last": is_last}
        with _limited("file"):
            return cast(Batch, self._reading.read("export", request, size=size))

    def script_faults(
        self,
        scripts: Sequence[GivenScript],
        variables: Mapping[str, str],
        *,
        allows_shell: bool,
    ) -> list[Fault]:
        """What is wrong with scripts of pgbench."""
        request = {
            "scripts": [vars(script) for script in scripts],
            "variables": dict(variables),
            "allows_shell": allows_shell,
        }
        size = sum(len(script.text) for script in scripts)
        with _limited("scripts"):
            return cast(list[Fault], self._reading.read("scripts", request, size=size))


def tools() -> dict[str, str]:
    """The titles of the tools whose output is read, by name."""
    return {adapter.name: adapter.title for adapter in registry.every()}


def tool_named(name: str) -> str:
    """The name of a tool as its reader has it, "go-tpc" as well as "go_tpc"; empty without one."""
    adapter = registry.find(name) if name else None
    return adapter.name if adapter else ""


def peers() -> tuple[str, ...]:
    """The programs whose kept results are read."""
    return tuple(IMPORTERS)


@contextmanager
def reader() -> Iterator[ForeignReader]:
    """The reader of a request. A process that it needs ends with the block.

    Before it waits for one it gives the database connection back, unless in a transaction.
    """
    with process.reading(database.give_back) as reading:
        yield ForeignReader(reading)


def sentence(refusal: Refusal) -> str:
    """What was found and what to do, in the reader's language."""
    return " ".join(put(part, _) for part in (refusal.wording, refusal.remedy) if part)


@contextmanager
def _limited(field: str) -> Iterator[None]:
    try:
        yield
    except TooMuch as error:
        message = put(error.wording, _)
        remedy = _("Send less of it, or in several parts.")
        if error.code == "reading_busy":
            remedy = ""
        raise ServiceError(error.code, message, remedy=remedy, field=field) from error
