"""Fetching artifacts from a Maven repository: kept, taken up where they broke off, and checked."""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from benchlab.lab.errors import LabError, RepositoryAway
from benchlab.lab.releases import Release

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
        raise LabError(f"BENCHLAB_MAVEN={address} is not an address: it begins with https://")
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
    part = archive.with_name(archive.name + ".part")
    last: Exception | None = None
    for wait in (*WAITS_SECONDS, None):
        try:
            _continue(f"{base}/{release.path}", part, release.bytes)
            _check(release, part, base)
        except (OSError, http.client.HTTPException, Damaged) as error:
            last = error
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if isinstance(error, Damaged):
                part.unlink(missing_ok=True)
            if wait is not None:
                pause(wait)
        else:
            part.rename(archive)
            return archive
    is_away = isinstance(last, OSError) and not isinstance(last, urllib.error.HTTPError)
    raise (RepositoryAway if is_away else LabError)(_explained(release, folder, base, last))


def is_kept(release: Release, folder: Path) -> bool:
    """Whether the artifact was downloaded before, and is complete."""
    archive = folder / release.file_name
    return archive.exists() and _digest(archive, "sha256") == release.sha256


def _continue(url: str, part: Path, size: int) -> None:
    """Append what is missing; start again if the other side cannot continue."""
    have = part.stat().st_size if part.exists() else 0
    if have == size:
        return
    request = urllib.request.Request(url)  # noqa: S310 -- the scheme was checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
        continues = have > 0 and getattr(answer, "status", None) == 206
        with part.open("ab" if continues else "wb") as file:
            while chunk := answer.read(CHUNK_BYTES):
                file.write(chunk)
    if part.stat().st_size < size:
        raise OSError(f"broke off after {part.stat().st_size} of {size} bytes")


def _check(release: Release, part: Path, base: str) -> None:
    """Against the digest pinned here, and against the one that the repository publishes."""
    found = _digest(part, "sha256")
    if found != release.sha256:
        raise Damaged(f"its SHA-256 is {found} and should be {release.sha256}")
    published = _published_sha1(f"{base}/{release.path}.sha1")
    if published and published != _digest(part, "sha1"):
        raise Damaged(f"the repository publishes another SHA-1 for it: {published}")


def _published_sha1(url: str) -> str:
    """The digest next to the artifact; empty if a mirror has none."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            words = answer.read(200).decode("ascii", "replace").split()
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return ""
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):
            return ""
        raise
    return words[0].lower() if words else ""


def _digest(path: Path, name: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, name).hexdigest()


def _explained(release: Release, folder: Path, base: str, error: Exception | None) -> str:
    return (
        f"PostgreSQL {release.version} could not be downloaded: {error}\n"
        f"  from  {base}/{release.path}\n"
        "  Try again later: what has come is kept. Behind a proxy set https_proxy; with a mirror\n"
        "  of Maven Central set BENCHLAB_MAVEN to its address; or put the file by hand into\n"
        f"  {folder}"
    )
