"""The programs that BenchLab gives away: one file each, from `script/`."""

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings

UPLOAD = "benchlab-upload"
COMMENT = "benchlab-comment"


@cache
def content(name: str) -> bytes:
    """A program as it lies there."""
    return (Path(settings.BASE_DIR) / "script" / name).read_bytes()


@cache
def sha256(name: str) -> str:
    """What `sha256sum` says of a program."""
    return hashlib.sha256(content(name)).hexdigest()
