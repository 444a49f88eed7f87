"""Compiles what locale/ has newer texts of, as msgfmt does: with nothing but Python's own library.

Another BenchLab may read the same file right now, so a finished one takes its place at once.
"""

import ast
import os
import re
import struct
import sys
from pathlib import Path

LOCALE = Path(__file__).resolve().parents[2] / "locale"
LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)[ \t]+)?(".*")')


def messages(text: str) -> dict[str, str]:
    """Key and translation of each entry, without fuzzy ones. Raises ValueError for a wrong line."""
    found: dict[str, str] = {}
    entry: dict[str, str] = {}
    place, is_fuzzy = "", False
    for number, line in enumerate([*text.splitlines(), 'msgid ""'], 1):
        match = LINE.fullmatch(line.strip())
        begins = match is not None and match[1] in {"msgctxt", "msgid"}
        if (begins or line.startswith("#")) and any(name.startswith("msgstr") for name in entry):
            pair = {} if is_fuzzy else _pair(entry)
            if pair.keys() & found.keys():
                raise ValueError(f"line {number}: the text before is there already")
            found |= pair
            entry, is_fuzzy = {}, False
        if match is not None:
            if match[1] in entry:
                raise ValueError(f"line {number}: {match[1]} a second time")
            place = match[1] or place
            entry[place] = entry.get(place, "") + ast.literal_eval(match[2])
        elif line.startswith("#,"):
            is_fuzzy = is_fuzzy or "fuzzy" in line
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"line {number}: {line}")
    return found


def _pair(entry: dict[str, str]) -> dict[str, str]:
    key = f"{entry['msgctxt']}\x04" if "msgctxt" in entry else ""
    key += "\0".join(entry[name] for name in ("msgid", "msgid_plural") if name in entry)
    value = "\0".join(entry[name] for name in sorted(entry) if name.startswith("msgstr"))
    return {key: value} if value.strip("\0") else {}


def compiled(found: dict[str, str]) -> bytes:
    """A file as gettext reads it: a table of lengths and places of each half, then all texts."""
    pairs = sorted((key.encode(), value.encode()) for key, value in found.items())
    count, texts, place = len(pairs), b"", 28 + 16 * len(pairs)
    tables = []
    for half in (0, 1):
        for pair in pairs:
            tables += [len(pair[half]), place + len(texts)]
            texts += pair[half] + b"\0"
    head = (0x950412DE, 0, count, 28, 28 + 8 * count, 0, place)
    return struct.pack(f"<{7 + 4 * count}I", *head, *tables) + texts


if __name__ == "__main__":
    for source in LOCALE.glob("*/LC_MESSAGES/django.po"):
        target, draft = source.with_suffix(".mo"), source.with_suffix(f".{os.getpid()}")
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        try:
            draft.write_bytes(compiled(messages(source.read_text("utf-8"))))
        except (ValueError, SyntaxError) as error:
            sys.exit(f"{source}: {error}")
        draft.replace(target)
