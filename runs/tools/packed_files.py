"""Packed files, by how they begin."""

from __future__ import annotations

from typing import NamedTuple


class Beginning(NamedTuple):
    """How files of a form begin; `in_json`: where the bytes that are no text were replaced."""

    form: str
    content: bytes
    in_json: str


BEGINNINGS = (
    Beginning("gzip", b"\x1f\x8b", "\x1f\ufffd"),
    Beginning("zstd", b"\x28\xb5\x2f\xfd", "(\ufffd/\ufffd"),
    Beginning("bzip2", b"BZh", "BZh9"),
    Beginning("xz", b"\xfd7zXZ", "\ufffd7zXZ"),
    Beginning("ZIP", b"PK\x03\x04", "PK\x03\x04"),
)


def form_of(content: bytes | str) -> str:
    """In which form a file is packed, or one whose bytes came in JSON; empty if in none."""
    for beginning in BEGINNINGS:
        if isinstance(content, bytes):
            is_packed = content.startswith(beginning.content)
        else:
            is_packed = content.startswith(beginning.in_json)
        if is_packed:
            return beginning.form
    return ""
