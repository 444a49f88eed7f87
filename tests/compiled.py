"""Compiles BenchLab, what it imports and its tests once, for all processes that run them.

In a fresh clone each would compile the same files at the same time as the others, and pytest's own
rewriting of `assert` takes three seconds of a processor. Of the packages BenchLab imports a fifth:
to compile all their files takes five times as long.
"""

import compileall
import contextlib
import importlib
import os
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from _pytest.assertion import rewrite

TESTS = Path(__file__).parent
IMPORTED = ("benchlab", "runs")
# What Django asks for before it imports models. Nothing connects to a database.
FOR_DJANGO = {
    "DJANGO_SETTINGS_MODULE": "benchlab.settings",
    "SECRET_KEY": "only for tests",
    "BENCHLAB_ENCRYPTION_KEY": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
    "BENCHLAB_DATABASE_POOL": "0",
}
PROGRAMS = (
    "celery.bin.worker",
    "celery.concurrency.thread",
    "gunicorn.app.wsgiapp",
    "playwright.sync_api",
)
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


def import_all() -> None:
    """Import every module of BenchLab, so that Python keeps the compiled form of all they need.

    What cannot be imported here says why where a test needs it.
    """
    os.environ.update(FOR_DJANGO)
    # What programs of an instance load, whose account cannot write where packages are.
    for name in (
        "celery.bin.worker",
        "celery.concurrency.thread",
        "gunicorn.app.wsgiapp",
        "playwright.sync_api",
    ):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name in IMPORTED:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(
            package.__path__, f"{name}.", onerror=print
        ):
            with contextlib.suppress(Exception):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)


def compile_all() -> None:
    """Compile whatever is not compiled yet."""
    tests = [path for path in TESTS.rglob("*.py") if is_rewritten(path)]
    with ProcessPoolExecutor() as processes:
        imported = processes.submit(import_all)
        list(processes.map(compile_test, tests, chunksize=20))
        compileall.compile_dir(TESTS.parent / "benchmarks", quiet=QUIET)
        imported.result()


if __name__ == "__main__":
    compile_all()
