"""Where files of runs are: below ARTIFACTS_DIR, or in the bucket that BENCHLAB_ARTIFACTS names.

With a bucket, what is in the folder waits to be sent there: no run, upload or import waits for the
bucket, or fails with it. A file has a key such as `ab/ab12….gz`, which is its path below both.
"""

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from django.conf import settings

from benchlab import bucket
from runs.shared import database

# A bucket that has failed is not asked again by whoever stores a file for so long.
PAUSE_SECONDS = 30.0
# Who waited for so long in vain met one that hangs; the next do not wait.
SLOW_SECONDS = 2.0
# For so long the duty of control sends what waits; the rest follows with its next turn.
SENDING_SECONDS = 10.0
logger = logging.getLogger(__name__)
_silent_until = _hangs_until = 0.0


def path_of(key: str) -> Path:
    """Where it is, or waits, in the folder."""
    return Path(settings.ARTIFACTS_DIR) / key


def opened(key: str) -> IO[bytes]:
    """The file. Raises FileNotFoundError, StoreError when the bucket does not answer."""
    try:
        return path_of(key).open("rb")
    except FileNotFoundError:
        if not bucket.is_set():
            raise
    with _asking():
        return bucket.read(key)


def exists(key: str) -> bool:
    """Whether it is here, or in the bucket. Raises StoreError."""
    if path_of(key).exists() or not bucket.is_set():
        return path_of(key).exists()
    with _asking():
        return bucket.exists(key)


def write(key: str, content: bytes) -> None:
    """Store it in the folder, whence `send_soon` takes it. Raises OSError."""
    path = path_of(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    # First under a temporary name: no reader, and no crash, meets a partial file.
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).rename(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def stored() -> Iterator[bucket.Stored]:
    """Those in the folder, and in the bucket."""
    for key in list_folder():
        path = path_of(key)
        with suppress(FileNotFoundError):
            status = path.stat()
            remove = partial(path.unlink, missing_ok=True)
            yield bucket.Stored(key, status.st_size, status.st_mtime, remove)
    if bucket.is_set():
        yield from bucket.stored()


def list_folder() -> Iterator[str]:
    """The keys in the folder."""
    folder = Path(settings.ARTIFACTS_DIR)
    for path in folder.glob("??/*.gz"):
        yield path.relative_to(folder).as_posix()


def is_silent() -> bool:
    """Whether the bucket failed a moment ago."""
    return time.monotonic() < _silent_until


@contextmanager
def _asking() -> Iterator[None]:
    """While somebody waits for the bucket: others have the connection, and few wait long.

    Raises StoreError, at once where the bucket did not answer a moment ago.
    """
    global _hangs_until  # noqa: PLW0603 -- of this process
    began = time.monotonic()
    if began < _hangs_until:
        raise bucket.StoreError(f"{bucket.described()} did not answer a moment ago")
    database.give_back()
    try:
        yield
    except bucket.StoreError:
        now = time.monotonic()
        if now - began >= SLOW_SECONDS:
            _hangs_until = now + PAUSE_SECONDS
        raise


def send_soon(key: str) -> None:
    """Send what was just stored, unless the bucket failed a moment ago."""
    if bucket.is_set() and not is_silent():
        sent(key, seconds=bucket.QUICK_SECONDS)


def send_all(keys: Iterable[str]) -> None:
    """Send these for some seconds, unless the bucket failed a moment ago or fails now."""
    if not bucket.is_set() or is_silent():
        return
    until = time.monotonic() + SENDING_SECONDS
    for key in keys:
        if not sent(key) or time.monotonic() > until:
            return


def sent(key: str, *, seconds: int = bucket.PATIENT_SECONDS) -> bool:
    """Whether a file was sent; it is in one of the two places at any moment.

    `seconds` is how long it waits for the bucket's answer.
    """
    global _silent_until  # noqa: PLW0603 -- of this process
    path = path_of(key)
    try:
        with path.open("rb") as content, _asking():
            bucket.write(key, content, seconds=seconds)
        path.unlink(missing_ok=True)
    except FileNotFoundError:
        return True  # somebody else was quicker
    except OSError as error:
        _silent_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("files wait in %s: %s", settings.ARTIFACTS_DIR, error)
        return False
    return True
