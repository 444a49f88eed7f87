"""Compiles BenchLab and its tests once, for all processes that run them.

Each of them collects every test. In a fresh clone each would compile all files at the same time as
the others, and pytest's own rewriting of `assert` takes three seconds of a processor.
"""

import compileall
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from _pytest.assertion import rewrite

TESTS = Path(__file__).parent
PACKAGES = ("benchlab", "benchmarks", "runs")
QUIET = 2


def is_rewritten(path: Path) -> bool:
    """Whether pytest keeps a form of its own of that file."""
    return path.name.startswith("test_") or path.name == "conftest.py"


def compile_test(path: Path) -> None:
    """Keep what pytest would make of the file, unless that is there."""
    kept = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, kept) is None:
        source, code = rewrite._rewrite_test(path, None)
        kept.parent.mkdir(parents=True, exist_ok=True)
        rewrite._write_pyc(SimpleNamespace(trace=print), code, source, kept)


def compile_all() -> None:
    """Compile whatever is not compiled yet."""
    for package in PACKAGES:
        compileall.compile_dir(TESTS.parent / package, quiet=QUIET, workers=os.cpu_count() or 1)
    tests = [path for path in TESTS.rglob("*.py") if is_rewritten(path)]
    with ProcessPoolExecutor() as processes:
        list(processes.map(compile_test, tests, chunksize=20))


if __name__ == "__main__":
    compile_all()
