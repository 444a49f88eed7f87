"""Artifacts: compressed files below ARTIFACTS_DIR, named by the hash of their content."""

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, BinaryIO, cast

from django.conf import settings

from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Run


def store(*, run: Run, data: ArtifactData) -> Artifact:
    """Keep a file of a run; the same content is stored once. Raises OSError when it cannot be."""
    digest = hashlib.sha256(data.content).hexdigest()
    path = path_of(digest)
    if not path.exists():
        _write(path, [gzip.compress(data.content, mtime=0)])
    artifact, _created = Artifact.objects.update_or_create(
        run=run,
        name=data.name,
        defaults={"media_type": data.media_type, "size": len(data.content), "sha256": digest},
    )
    return artifact


def open_artifact(artifact: Artifact) -> BinaryIO:
    """The uncompressed content as a stream. Raises FileNotFoundError when it was retired."""
    return cast(BinaryIO, gzip.open(path_of(artifact.sha256), "rb"))


def path_of(digest: str) -> Path:
    """Where the packed content of this SHA-256 lies, if it is kept."""
    return Path(settings.ARTIFACTS_DIR) / digest[:2] / f"{digest}.gz"


def keep_packed(*, digest: str, packed: IO[bytes]) -> None:
    """Keep content that is packed already; whoever calls has looked that it is the digest's."""
    _write(path_of(digest), iter(lambda: packed.read(2**20), b""))


def _write(path: Path, packed: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Into a temporary name first: a reader, or a crash, never meets half a file.
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(packed)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).rename(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
