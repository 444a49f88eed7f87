"""Turns an artifact into working binaries: unpacked next to their place, tried, and moved there."""

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.binaries import make_readable
from benchlab.lab.errors import LabError
from benchlab.lab.releases import Release

PROGRAMS = ("postgres", "initdb", "pg_ctl")


def is_there(release: Release, folder: Path, account: Account) -> bool:
    """Whether the version is unpacked and its programs run as the servers' account."""
    bindir = folder / release.version / "bin"
    return all(
        (bindir / program).exists() and release.version in _version(bindir / program, account)
        for program in PROGRAMS
    )


def unpack(release: Release, artifact: Path, folder: Path, account: Account) -> Path:
    """Unpack to `folder/VERSION` and return that; nobody ever sees half of it under that name.

    Raises LabError when the archive cannot be read or its programs do not run here.
    """
    place, draft = folder / release.version, folder / f".{release.version}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        _extract(artifact, release, draft)
        make_readable(folder, draft)
        _try(release, draft / "bin", account)
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _extract(artifact: Path, release: Release, draft: Path) -> None:
    try:
        with (
            zipfile.ZipFile(artifact) as jar,
            jar.open(release.archive) as packed,
            tarfile.open(fileobj=packed, mode="r:*") as archive,
        ):
            # The digest of the artifact is pinned, so its members are trusted where the filter is
            # not known (Python before 3.11.4).
            if hasattr(tarfile, "data_filter"):
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(draft, _as_ours(archive))  # noqa: S202
    except OSError as error:
        raise LabError(
            f"{draft} cannot be written: {error}. Free space, or set BENCHLAB_VAR"
        ) from None
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise LabError(
            f"{artifact} cannot be unpacked ({error}): remove it and try again"
        ) from None


def _as_ours(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members, which belong to whoever unpacks them.

    Looking up the owners that an archive names, for each file, takes a quarter of the time; and an
    account of this machine may by chance have the number of one.
    """
    for member in archive:
        member.uid, member.gid = os.getuid(), os.getgid()
        member.uname = member.gname = ""
        yield member


def _try(release: Release, bindir: Path, account: Account) -> None:
    """Start each program with its own libraries, which its run path finds next to it."""
    for program in PROGRAMS:
        version = _version(bindir / program, account)
        if release.version not in version:
            raise LabError(
                f"PostgreSQL {release.version} does not run as {account.name} on this machine."
                f" {program} --version says: {version or 'nothing'}"
            )


def _version(program: Path, account: Account) -> str:
    """What `PROGRAM --version` prints, of both streams."""
    try:
        with account.spawn(
            [program, "--version"],
            env=account.environment(Path("/")),
            cwd=Path("/"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            return process.communicate()[0].decode(errors="replace").strip()
    except OSError as error:
        return str(error)
