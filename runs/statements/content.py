"""What a run of a load is given: its statements, its data, and the key of what it keeps.

None of it is in the run's plan, which readers of the campaign see: a worker reads it when the run
begins, and the run keeps what it found encrypted with the load's own key.
"""

import base64
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from cryptography.fernet import Fernet

from runs.statements import drawing
from runs.statements.load import Unit
from runs.statements.needs import Need

# The file of a run in which it keeps what it found, encrypted.
ARTIFACT = "statements.enc"
MEDIA_TYPE = "application/octet-stream"

DataKind = Literal["pgbench", "sql", "dump", "file"]
# A part of a dump, by its number.
ReadPart = Callable[[int], Awaitable[bytes]]


@dataclass(frozen=True)
class LoadData:
    """The data of a load: pgbench's tables at a scale, SQL for psql, or a dump.

    A dump was uploaded, in parts from `first_part` on (none before it has come), or it lies on the
    server at `path`. Of an uploaded one in pg_dump's own formats `list_text` is what is restored.
    """

    kind: DataKind
    scale: int = 1
    script: str = ""
    path: str = ""
    extensions: tuple[str, ...] = ()
    format: str = ""
    first_part: int = 0
    parts: int = 0
    list_text: str = ""
    tables: int = 0
    objects: int = 0
    left_out: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    program: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether a dump is still to be uploaded."""
        return self.kind == "dump" and not self.parts


@dataclass(frozen=True)
class LoadContent:
    """A load as a run has it; `key` is that of its files.

    `round` is that of the run, and `failed` are the units that failed on any version in the one
    before.
    """

    slug: str
    key: str
    units: tuple[Unit, ...]
    data: LoadData
    round: int = 0
    failed: frozenset[int] = frozenset()
    read_part: ReadPart | None = None

    @classmethod
    def of(
        cls, slug: str, key: str, encrypted: bytes, read_part: ReadPart | None = None
    ) -> Self:
        """As it was stored. Raises InvalidToken."""
        stored = opened(key, encrypted)
        return cls(
            slug, key, units_of(stored), data_of(stored["data"]), read_part=read_part
        )


def units_of(stored: Mapping[str, Any]) -> tuple[Unit, ...]:
    """The units of a load that is stored."""
    return tuple(_unit_of(unit) for unit in stored["units"])


def _unit_of(stored: Mapping[str, Any]) -> Unit:
    samples = tuple(tuple(sample) for sample in stored["samples"])
    drawn = tuple(map(drawing.from_json, stored.get("drawn", ())))
    return Unit(**{**stored, "samples": samples, "drawn": drawn})


def data_of(stored: Mapping[str, Any]) -> LoadData:
    """The data of a load that is stored."""
    names = ("extensions", "left_out", "roles")
    lists = {name: tuple(stored.get(name, ())) for name in names}
    needs = tuple(Need(**need) for need in stored.get("needs", ()))
    return LoadData(**{**stored, **lists, "needs": needs})


def new_key() -> str:
    """A key of a new load's own: without it nothing that its runs have kept can be read."""
    return Fernet.generate_key().decode()


def sealed(key: str, value: Mapping[str, Any]) -> bytes:
    """A value as it is stored: JSON, packed, encrypted."""
    packed = zlib.compress(json.dumps(value, default=_plain).encode(), 6)
    return base64.urlsafe_b64decode(Fernet(key).encrypt(packed))


def sealed_part(key: str, content: bytes) -> bytes:
    """A part of a dump as it is stored."""
    return base64.urlsafe_b64decode(Fernet(key).encrypt(content))


def opened_part(key: str, encrypted: bytes) -> bytes:
    """What `sealed_part` was given. Raises InvalidToken for another key."""
    return Fernet(key).decrypt(base64.urlsafe_b64encode(encrypted))


def opened(key: str, encrypted: bytes) -> dict[str, Any]:
    """What `sealed` was given. Raises InvalidToken for another key."""
    packed = Fernet(key).decrypt(base64.urlsafe_b64encode(encrypted))
    value: dict[str, Any] = json.loads(zlib.decompress(packed))
    return value


def _plain(value: Any) -> Any:
    return asdict(value)
