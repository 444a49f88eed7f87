"""Compiles what locale/ has newer texts of. Another BenchLab may read the same file right now.

A catalogue that a merge has spoilt, such as one with a text twice, is refused with its line.
"""

import os
import sys
from pathlib import Path

import polib


def compile_all(locale: Path) -> None:
    """Compile each catalogue that is newer than its result. Raises OSError or ValueError."""
    for source in locale.glob("*/LC_MESSAGES/django.po"):
        target, draft = source.with_suffix(".mo"), source.with_suffix(f".{os.getpid()}")
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        polib.pofile(str(source), check_for_duplicates=True).save_as_mofile(str(draft))
        draft.replace(target)


if __name__ == "__main__":
    try:
        compile_all(Path(__file__).resolve().parents[2] / "locale")
    except (OSError, ValueError) as error:
        sys.exit(str(error))
