"""Extras: packages that a first start leaves out, each a file in extras/ beside its hashes.

As a program it installs those that its arguments name: `benchlab extra s3` of a wheel.
"""

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "extras"
SCRIPT = REPOSITORY / "script/extra"


def missing(extra: str) -> list[str]:
    """The packages of an extra that this Python does not have, by name."""
    names = re.findall(
        r"^([a-z0-9-]+)==", (FOLDER / f"{extra}.txt").read_text(), re.MULTILINE
    )
    present_names = {
        distribution.name.lower().replace("_", "-")
        for distribution in importlib.metadata.distributions()
    }
    return [name for name in names if name not in present_names]


def command(extra: str) -> str:
    """What a person types to install it, in the folder of BenchLab."""
    return f"{'script/extra' if SCRIPT.exists() else 'benchlab extra'} {extra}"


def install(extra: str) -> None:
    """Install an extra for this Python. Raises CalledProcessError; what was wrong is on stderr."""
    words = [str(SCRIPT), extra]
    if not SCRIPT.exists():
        hashed = ["--require-hashes", "-r", str(FOLDER / f"{extra}.lock")]
        words = [sys.executable, "-m", "pip", "install", "--quiet", *hashed]
    subprocess.run(words, env=os.environ | {"BENCHLAB_VENV": sys.prefix}, check=True)
    importlib.invalidate_caches()


def need(extra: str) -> None:
    """Install an extra that is missing. Raises OSError, with the command for who may do that."""
    if missing(extra):
        try:
            install(extra)
        except (subprocess.CalledProcessError, OSError) as error:
            raise OSError(f"packages are missing: {command(extra)}") from error


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if not (FOLDER / f"{name}.lock").is_file():
            sys.exit(f"BenchLab: {name} is none of archive-export, datasets, s3")
        try:
            install(name)
        except subprocess.CalledProcessError:
            sys.exit(1)
