"""BenchLab's own programs where every account of an instance can read them.

Python, its packages and the repository serve in place where they can be read. Where they cannot
(a clone below /root, Python below somebody's home), the needed files are copied next to the
services: root's folders keep their modes.
"""

import compileall
import contextlib
import hashlib
import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.binaries import POSTGRESQL_WHEEL, REDIS_WHEELS, make_readable
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import REPOSITORY

# The servers of these are copied by themselves, to where their own accounts run them.
SERVERS = frozenset({POSTGRESQL_WHEEL, *REDIS_WHEELS})
NOT_OF_THE_CODE = frozenset({"tests", "var", "node_modules"})
NOT_OF_PYTHON = shutil.ignore_patterns(
    "site-packages", "test", "idlelib", "lib2to3", "ensurepip", "config-*", "*.a"
)
PACKAGES = ("benchlab", "runs")
# What a copy consists of; another name when that changes, so that older copies are made again.
FORM = "with programs"
# Those with libraries of their own are loaded, the others are found: to load all takes a second.
TRIED = """
import importlib.util, cryptography.hazmat.bindings._rust, django, psycopg
for name in ("asyncssh", "celery", "gunicorn", "numpy", "benchlab.embedded"):
    with open(importlib.util.find_spec(name).origin) as file:
        file.read(1)
"""


@dataclass(frozen=True)
class Software:
    """The interpreter to start, the folder to start it in, and what its environment needs."""

    python: Path
    root: Path
    libraries: Path | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Additions to the environment of started programs."""
        if self.libraries is None:
            return {}
        return {"LD_LIBRARY_PATH": str(self.libraries)}


def in_place() -> Software:
    """What this process itself runs on."""
    return Software(Path(sys.executable), REPOSITORY)


def software_for(
    accounts: Iterable[Account], services: Path, *, is_in_use: bool = False
) -> Software:
    """In place where all those accounts can run it, else a copy in `services`, brought up to date.

    A copy that is in use by a running instance stays as it is. Raises StartError where the copy
    does not run either.
    """
    others = [account for account in dict.fromkeys(accounts) if account.is_another]
    found = in_place()
    if others:
        _compile(found.root)  # they may not write there, and would do it again at each start
    if all(_runs(found, account) for account in others):
        return found
    copy = _copied(services, is_in_use=is_in_use)
    for account in others:
        if not _runs(copy, account):
            raise StartError(
                f"{sys.executable} does not run as {account.name}, and neither does a copy of it: "
                "install Python and BenchLab where every account can read them, as in /opt"
            )
    return copy


def _runs(software: Software, account: Account) -> bool:
    environment = account.environment(Path("/")) | software.variables
    try:
        with account.spawn(
            [software.python, "-c", TRIED], env=environment, cwd=software.root
        ) as process:
            return process.wait() == 0
    except OSError:
        return False


def _copied(services: Path, *, is_in_use: bool) -> Software:
    folder = services / "software"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    packages = _needed()
    python, libraries = _python(folder, packages)
    code = folder / "code" if is_in_use else _code(folder)
    return Software(python, code, libraries)


def _compile(root: Path) -> None:
    for package in PACKAGES:
        compileall.compile_dir(root / package, quiet=2)


def _code(folder: Path) -> Path:
    """A copy of the repository's own files, made at each start: they are few."""
    place, draft = folder / "code", folder / f"code.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for entry in REPOSITORY.iterdir():
        if entry.name.startswith(".") or entry.name in NOT_OF_THE_CODE or _is_made(entry):
            continue
        if entry.is_dir():
            shutil.copytree(entry, draft / entry.name)
        else:
            shutil.copy2(entry, draft / entry.name)
    make_readable(folder, draft)
    shutil.rmtree(place, ignore_errors=True)
    draft.rename(place)
    return place


def _is_made(entry: Path) -> bool:
    """Whether this is the var/ of an instance or a virtual environment, by whatever name."""
    return any((entry / mark).exists() for mark in ("instance.lock", "pyvenv.cfg"))


def _python(folder: Path, packages: Sequence[importlib.metadata.Distribution]) -> tuple[Path, Path]:
    """The interpreter and its libraries' folder; made once for each choice of packages."""
    base = Path(sys.base_prefix)
    names = [f"{each.metadata['Name']}=={each.version}" for each in packages]
    made_of = [FORM, sys.version, str(base), *names]
    digest = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:12]
    place = folder / f"python-{digest}"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not place.exists():
        for older in folder.glob("python-*"):
            shutil.rmtree(older)
        draft = folder / f"new-python-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        _fill(draft, base, version, packages)
        draft.rename(place)
    return place / "bin" / version, place / "lib"


def _fill(
    draft: Path,
    base: Path,
    version: str,
    packages: Sequence[importlib.metadata.Distribution],
) -> None:
    (draft / "bin").mkdir(parents=True)
    (draft / "lib").mkdir()
    _link_or_copy(Path(sys.executable).resolve(), draft / "bin" / version)
    for library in (base / "lib").glob("libpython*.so*"):
        _link_or_copy(library.resolve(), draft / "lib" / library.name)
    standard = draft / "lib" / version
    shutil.copytree(
        base / "lib" / version,
        standard,
        symlinks=True,
        ignore=NOT_OF_PYTHON,
        copy_function=_link_or_copy,
    )
    for package in packages:
        _take(package, standard / "site-packages", draft / "bin")
    for path in (draft, *draft.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def _link_or_copy(source: str | Path, target: str | Path) -> None:
    """The same file under another name where others may read it, which takes no time; else a copy.

    Nothing writes into a file of Python or of a package: an update puts another one in its place.
    """
    if Path(source).stat().st_mode & 0o004:
        with contextlib.suppress(OSError):  # another file system
            os.link(source, target)
            return
    shutil.copy2(source, target)
    Path(target).chmod(Path(source).stat().st_mode & 0o755 | 0o444)


def _take(package: importlib.metadata.Distribution, place: Path, programs: Path) -> None:
    """Its modules, and its programs but for scripts, which name another interpreter."""
    for file in package.files or ():
        source = Path(str(file.locate()))
        if file.is_absolute() or not source.is_file():
            continue
        if ".." not in file.parts:
            target = place.joinpath(*file.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy(source, target)
        elif source.parent.name == "bin" and not source.read_bytes().startswith(b"#!"):
            _link_or_copy(source, programs / source.name)


def _needed() -> list[importlib.metadata.Distribution]:
    """The packages of requirements.txt with those that they need, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    names = list(_names((REPOSITORY / "requirements.txt").read_text().splitlines()))
    while names:
        name = names.pop()
        if name in found or name in SERVERS:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform, or an extra that nobody asked for
        names += _names(found[name].requires or ())
    return [found[name] for name in sorted(found)]


def _names(requirements: Iterable[str]) -> Iterator[str]:
    for requirement in requirements:
        if match := re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement):
            yield re.sub(r"[-_.]+", "-", match.group(1)).lower()
