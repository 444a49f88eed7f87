"""Downloads the JARs of zonky's builds, and unpacks them."""

import hashlib
import http.client
import os
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.binaries import make_readable
from benchlab.lab.errors import LabError, RepositoryAway
from benchlab.lab.releases import Release

PROGRAMS = ("postgres", "initdb", "pg_ctl")


def is_there(release: Release, folder: Path, account: Account) -> bool:
    """Whether the version is unpacked and its programs run as the servers' account."""
    bindir = folder / release.version / "bin"
    return all(
        (bindir / program).exists()
        and release.version in _version(bindir / program, account)
        for program in PROGRAMS
    )


def unpack(release: Release, artifact: Path, folder: Path, account: Account) -> Path:
    """Unpack to `folder/VERSION` and return that; nobody ever sees half of it under that name.

    Raises LabError when the archive cannot be read or its programs do not run here.
    """
    unpacked_folder, draft = (
        folder / release.version,
        folder / f".{release.version}.{os.getpid()}",
    )
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        _extract(artifact, release, draft)
        make_readable(folder, draft)
        _try(release, draft / "bin", account)
        shutil.rmtree(unpacked_folder, ignore_errors=True)
        draft.rename(unpacked_folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return unpacked_folder


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
            archive.extractall(draft, _owned_members(archive))  # noqa: S202
    except OSError as error:
        raise LabError(
            f"{draft} cannot be written: {error}. Free space, or set BENCHLAB_VAR"
        ) from None
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise LabError(
            f"{artifact} cannot be unpacked ({error}): remove it and try again"
        ) from None


def _owned_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
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
    try:
        return account.printed(program, "--version")[1]
    except OSError as error:
        return str(error)


REPOSITORY = "https://repo1.maven.org/maven2"
PATIENCE_SECONDS = 30
CHUNK_BYTES = 1024 * 1024
WAITS_SECONDS = (1.0, 3.0)


class Damaged(Exception):
    """What came is not what was published."""


def repository(environ: Mapping[str, str] = os.environ) -> str:
    """BENCHLAB_MAVEN, a mirror, else Maven Central. Raises LabError for an invalid address."""
    address = (environ.get("BENCHLAB_MAVEN") or REPOSITORY).rstrip("/")
    if not address.startswith(("https://", "http://", "file://")):
        raise LabError(
            f"BENCHLAB_MAVEN={address} is not an address: it begins with https://"
        )
    return address


def fetch(
    release: Release,
    folder: Path,
    *,
    base: str,
    say: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """The artifact of a release in `folder`, downloaded unless it is there and complete.

    What an interrupted download left is continued. Raises LabError with what to do when the
    repository cannot be reached or gives something else than what is pinned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / release.file_name
    if is_kept(release, folder):
        return archive
    say(f"downloading {release.file_name} ({release.bytes / 1e6:.0f} MB)")
    partial_file = archive.with_name(archive.name + ".part")
    last_error: Exception | None = None
    for wait in (*WAITS_SECONDS, None):
        try:
            _continue(f"{base}/{release.path}", partial_file, release.bytes)
            digest = _digest(partial_file)
            if digest != release.sha256:
                raise Damaged(f"its SHA-256 is {digest} and should be {release.sha256}")
        except (OSError, http.client.HTTPException, Damaged) as error:
            last_error = error
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if isinstance(error, Damaged):
                partial_file.unlink(missing_ok=True)
            if wait is not None:
                pause(wait)
        else:
            partial_file.rename(archive)
            return archive
    is_away = isinstance(last_error, OSError) and not isinstance(
        last_error, urllib.error.HTTPError
    )
    raise (RepositoryAway if is_away else LabError)(
        _explained(release, folder, base, last_error)
    )


def is_kept(release: Release, folder: Path) -> bool:
    """Whether the artifact was downloaded before, and is complete."""
    archive = folder / release.file_name
    return archive.exists() and _digest(archive) == release.sha256


def _continue(url: str, partial_file: Path, size: int) -> None:
    """Append what is missing; start again if the other side cannot continue."""
    have = partial_file.stat().st_size if partial_file.exists() else 0
    if have == size:
        return
    request = urllib.request.Request(url)  # noqa: S310 -- the scheme was checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310
        continues = have > 0 and getattr(response, "status", None) == 206
        with partial_file.open("ab" if continues else "wb") as file:
            while chunk := response.read(CHUNK_BYTES):
                file.write(chunk)
    if partial_file.stat().st_size < size:
        raise OSError(f"broke off after {partial_file.stat().st_size} of {size} bytes")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _explained(
    release: Release, folder: Path, base: str, error: Exception | None
) -> str:
    return (
        f"PostgreSQL {release.version} could not be downloaded: {error}\n"
        f"  from  {base}/{release.path}\n"
        "  Try again later: what has come is kept. Behind a proxy set https_proxy; with a mirror\n"
        "  of Maven Central set BENCHLAB_MAVEN to its address; or put the file by hand into\n"
        f"  {folder}"
    )
