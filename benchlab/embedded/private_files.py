"""Secrets that are made once and then kept in files which only their owner reads."""

import os
from collections.abc import Callable
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace a file by one of mode 0600; a reader sees the old text or the new, never a part."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The secret in that file, made at the first call."""
    if not path.exists():
        write_private(path, make() + "\n")
    return path.read_text().strip()
