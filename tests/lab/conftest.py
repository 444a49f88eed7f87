"""A small repository of artifacts on 127.0.0.1, whose "programs" only print their version."""

import hashlib
import io
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchlab.lab.releases import Release

PROGRAMS = ("postgres", "initdb", "pg_ctl")


def artifact(version: str, *, told: str = "") -> bytes:
    """A jar with a tar archive of programs, as the published ones are."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for program in PROGRAMS:
            text = f"#!/bin/sh\necho '{program} (PostgreSQL) {told or version}'\n".encode()
            member = tarfile.TarInfo(f"bin/{program}")
            member.size, member.mode = len(text), 0o700
            archive.addfile(member, io.BytesIO(text))
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("postgres.txz", packed.getvalue())
    return jar.getvalue()


def release_of(version: str, content: bytes) -> Release:
    return Release(
        version=version,
        path=f"org/pg/{version}/pg-{version}.jar",
        archive="postgres.txz",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


@dataclass
class Mirror:
    """An HTTP server of files, which can break off in the middle, and keeps what was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    break_off_after: int | None = None
    address: str = ""

    def publish(self, version: str, **options: str) -> Release:
        """Put an artifact and its SHA-1 there."""
        content = artifact(version, **options)
        release = release_of(version, content)
        self.files[release.path] = content
        self.files[f"{release.path}.sha1"] = hashlib.sha1(content).hexdigest().encode()
        return release

    def damage(self, release: Release) -> Release:
        """Another content of the same size than what is pinned."""
        content = self.files[release.path]
        self.files[release.path] = bytes([content[0] ^ 1]) + content[1:]
        return replace(release)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, wanted = self.path.lstrip("/"), self.headers.get("Range", "")
            made.asked.append((path, wanted))
            if path not in made.files:
                self.send_error(404)
                return
            begin = int(re.sub(r"\D", "", wanted) or 0)
            content = made.files[path][begin:]
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if made.break_off_after is not None:
                content, made.break_off_after = content[: made.break_off_after], None
                self.close_connection = True
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    made.address = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    thread.join()
    server.server_close()
