"""Builds PostgreSQL of several block sizes from a source archive: one installation for each size.

The block size is fixed when PostgreSQL is compiled, and the published binaries all have 8 kB. The
builds differ in nothing else, so their results compare. A compiler, make and the headers of zlib
must be there; readline and ICU are left out. Source: the manual's chapter on installing from
source.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.binaries import make_readable
from benchlab.lab.errors import LabError

# What configure allows; PostgreSQL's own default is 8.
BLOCK_SIZES = (1, 2, 4, 8, 16, 32)
NEEDED = ("cc", "make", "perl")
# The option appeared when configure began to look for ICU by itself.
ICU_BY_DEFAULT_SINCE = 16
_VERSION = re.compile(r"^PACKAGE_VERSION='([0-9][0-9.a-z]*)'", re.MULTILINE)
LAST_LINES = 15


def name_of(version: str, block_size: int) -> str:
    """The folder of an installation below the lab's."""
    return f"{version}-{block_size}kB"


def configure(source: Path, prefix: Path, version: str, block_size: int) -> list[str]:
    """The command that prepares a build outside of the source's folder."""
    major = int(re.split(r"\D", version, maxsplit=1)[0])
    options = [
        f"--prefix={prefix}",
        f"--with-blocksize={block_size}",
        "--without-readline",
    ]
    if major >= ICU_BY_DEFAULT_SINCE:
        options.append("--without-icu")
    return [str(source / "configure"), *options]


def steps(jobs: int, draft: Path) -> list[list[str]]:
    """The commands after configure: server, programs and contrib, installed below `draft`."""
    into = f"DESTDIR={draft}"
    return [
        ["make", "-s", f"-j{jobs}"],
        ["make", "-s", f"-j{jobs}", "-C", "contrib"],
        ["make", "-s", "install", into],
        ["make", "-s", "-C", "contrib", "install", into],
    ]


def build(
    archive: Path,
    block_sizes: Sequence[int],
    folder: Path,
    account: Account,
    *,
    say: Callable[[str], None],
) -> list[Path]:
    """The bin folders of the installations, those that were there already included.

    Raises LabError for what is missing, for an archive that is none of PostgreSQL, and with the
    last lines of a command that fails.
    """
    _require_tools()
    work = folder / f".build.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        source = _unpacked(archive, work)
        version = version_of(source)
        bindirs = []
        for size in block_sizes:
            version_folder = folder / name_of(version, size)
            if not (version_folder / "bin/postgres").exists():
                say(
                    f"building PostgreSQL {version} with blocks of {size} kB: some minutes"
                )
                _build(source, version, size, version_folder, work)
                make_readable(folder, version_folder)
                _try(version_folder, size, account)
            say(
                f"PostgreSQL {version} with blocks of {size} kB is ready in {version_folder}"
            )
            bindirs.append(version_folder / "bin")
        return bindirs
    finally:
        shutil.rmtree(work, ignore_errors=True)


def version_of(source: Path) -> str:
    """The version of an unpacked source. Raises LabError if it is none of PostgreSQL."""
    try:
        version_match = _VERSION.search(
            (source / "configure").read_text(errors="replace")
        )
    except OSError:
        version_match = None
    if version_match is None or not (source / "src/backend").is_dir():
        raise LabError(
            f"{source.name} is no source of PostgreSQL: it has no configure of one"
        )
    return version_match[1]


def _require_tools() -> None:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise LabError(
            f"{', '.join(missing)} missing: a build needs a C compiler, make and perl "
            "(apt install build-essential zlib1g-dev)"
        )


def _unpacked(archive: Path, work: Path) -> Path:
    try:
        with tarfile.open(archive, mode="r:*") as packed:
            # Not known before Python 3.11.4; whoever builds it trusts the source anyway.
            if hasattr(tarfile, "data_filter"):
                packed.extraction_filter = tarfile.data_filter
            packed.extractall(work / "source")  # noqa: S202
    except (OSError, EOFError, tarfile.TarError) as error:
        raise LabError(f"{archive} cannot be unpacked: {error}") from None
    folders = [path for path in (work / "source").iterdir() if path.is_dir()]
    if len(folders) != 1:
        raise LabError(f"{archive} is no source of PostgreSQL: it has not one folder")
    return folders[0]


def _build(source: Path, version: str, size: int, target: Path, work: Path) -> None:
    """Built in a folder of its own, installed next to its place, and moved there whole."""
    tree, draft = work / f"build-{size}", work / f"installed-{size}"
    tree.mkdir()
    commands = [
        configure(source, target, version, size),
        *steps(os.cpu_count() or 1, draft),
    ]
    for argv in commands:
        done = subprocess.run(
            argv,
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode != 0:
            lines = (
                done.stdout.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
            )
            output = "\n  ".join(lines)
            raise LabError(
                f"{' '.join(argv[:4])} ended with {done.returncode}:\n  {output}"
            )
    shutil.rmtree(target, ignore_errors=True)
    (draft / target.relative_to("/")).rename(target)
    shutil.rmtree(tree)


def _try(installed_folder: Path, size: int, account: Account) -> None:
    """The server itself must say the block size, or it would be measured under a wrong name."""
    file_settings = dict.fromkeys(
        ("config_file", "hba_file", "ident_file"), "/dev/null"
    )
    words = [
        f"--{name}={value}"
        for name, value in {**file_settings, "data_directory": "/"}.items()
    ]
    _status, output = account.printed(
        installed_folder / "bin/postgres", *words, "-C", "block_size"
    )
    if output.splitlines()[-1:] != [str(size * 1024)]:
        shutil.rmtree(installed_folder)
        raise LabError(
            f"the build with blocks of {size} kB says block_size = {output or 'nothing'}"
        )
