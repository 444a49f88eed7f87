"""A small repository of artifacts on 127.0.0.1, whose "programs" only print their version."""

import hashlib
import io
import os
import re
import shlex
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchlab.embedded.account import service_account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.embedded_server import free_port
from benchlab.embedded.places import REPOSITORY, Places
from benchlab.lab import command, downloads, folders, releases
from benchlab.lab.errors import LabError, RepositoryAway
from benchlab.lab.releases import Release
from tests.ssh.openssh import short_folder

PROGRAMS = ("postgres", "initdb", "pg_ctl")


def artifact(version: str, *, told: str = "") -> bytes:
    """A jar with a tar archive of programs, as the published ones are."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for program in PROGRAMS:
            text = (
                f"#!/bin/sh\necho '{program} (PostgreSQL) {told or version}'\n".encode()
            )
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
        """Put an artifact there."""
        content = artifact(version, **options)
        release = release_of(version, content)
        self.files[release.path] = content
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


# The lab: versions of PostgreSQL that are downloaded, unpacked, started and registered.


# Artifacts come whole or not at all, and a download goes on where it broke off.


@pytest.fixture
def fetch(mirror, tmp_path):
    return partial(
        downloads.fetch,
        folder=tmp_path / "kept",
        base=mirror.address,
        say=lambda line: None,
        pause=lambda seconds: None,
    )


def test_an_artifact_is_downloaded_once(mirror, fetch):
    release = mirror.publish("9.6.24")
    first = fetch(release)
    mirror.asked.clear()
    assert fetch(release) == first
    assert mirror.asked == []
    assert first.read_bytes() == mirror.files[release.path]


def test_a_download_that_broke_off_is_continued(mirror, fetch):
    release = mirror.publish("14.19")
    mirror.break_off_after = 100
    kept = fetch(release)
    assert kept.read_bytes() == mirror.files[release.path]
    assert [wanted for path, wanted in mirror.asked if path == release.path] == [
        "",
        "bytes=100-",
    ]


def test_a_kept_file_that_was_damaged_since_is_downloaded_again(mirror, fetch):
    release = mirror.publish("14.19")
    fetch(release).write_bytes(b"damaged")
    assert fetch(release).read_bytes() == mirror.files[release.path]


def test_another_content_than_the_pinned_one_is_refused_and_not_kept(
    mirror, fetch, tmp_path
):
    release = mirror.damage(mirror.publish("14.19"))
    with pytest.raises(LabError, match=f"should be {release.sha256}"):
        fetch(release)
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_the_repository_does_not_have_is_told_with_what_to_do(mirror, fetch):
    release = mirror.publish("14.19")
    mirror.files.clear()
    with pytest.raises(LabError, match=r"(?s)404.*BENCHLAB_MAVEN.*kept") as told:
        fetch(release)
    assert not isinstance(told.value, RepositoryAway)


def test_a_repository_that_does_not_answer_is_told_as_away(mirror, fetch):
    release = mirror.publish("14.19")
    with pytest.raises(RepositoryAway, match="https_proxy"):
        fetch(release, base=f"http://127.0.0.1:{free_port(0)}")


def test_a_folder_serves_as_a_mirror(mirror, fetch, tmp_path):
    release = mirror.publish("14.19")
    for path, content in mirror.files.items():
        (tmp_path / "mirror" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / path).write_bytes(content)
    assert fetch(release, base=(tmp_path / "mirror").as_uri()).exists()
    assert mirror.asked == []


@pytest.mark.parametrize("address", ["ftp://mirror", "/srv/mirror", "mirror.example"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(LabError, match="begins with https"):
        downloads.repository({"BENCHLAB_MAVEN": address})


def test_without_a_mirror_it_is_maven_central():
    assert downloads.repository({}) == "https://repo1.maven.org/maven2"


# Binaries appear under their version whole and tried, or not at all.


@pytest.fixture
def lab():
    """A folder that the servers' account can enter."""
    folder = short_folder()
    yield folder / "lab"
    shutil.rmtree(folder)


def published_release(lab, version, **options):
    content = artifact(version, **options)
    file = lab.parent / f"{version}.jar"
    file.write_bytes(content)
    return release_of(version, content), file


def test_the_servers_account_can_run_what_was_unpacked(lab):
    release, file = published_release(lab, "9.6.24")
    downloads.unpack(release, file, lab, service_account())
    assert downloads.is_there(release, lab, service_account())
    assert folders.bindirs(lab) == [lab / "9.6.24" / "bin"]


def test_a_version_that_tells_another_is_refused_and_leaves_nothing(lab):
    release, file = published_release(lab, "9.6.24", told="9.6.1")
    with pytest.raises(LabError, match=r"says: postgres \(PostgreSQL\) 9\.6\.1"):
        downloads.unpack(release, file, lab, service_account())
    assert list(lab.iterdir()) == []


def test_what_is_no_archive_is_told_with_its_file(lab):
    release, file = published_release(lab, "9.6.24")
    file.write_bytes(b"no jar")
    with pytest.raises(LabError, match="remove it and try again"):
        downloads.unpack(release, file, lab, service_account())
    assert list(lab.iterdir()) == []


def test_a_version_with_a_missing_program_is_not_there_and_is_unpacked_anew(lab):
    release, file = published_release(lab, "9.6.24")
    account = service_account()
    downloads.unpack(release, file, lab, account)
    (lab / "9.6.24" / "bin" / "initdb").unlink()
    assert not downloads.is_there(release, lab, account)
    downloads.unpack(release, file, lab, account)
    assert downloads.is_there(release, lab, account)


def test_a_half_unpacked_version_is_no_installation(lab):
    (lab / ".14.19.123" / "bin").mkdir(parents=True)
    (lab / ".14.19.123" / "bin" / "postgres").write_text("")
    assert folders.bindirs(lab) == []


# Which versions the lab can have, and choosing among them.


def test_the_lab_has_a_release_of_every_major_version_but_9_2_and_9_4():
    majors = [release.major for release in releases.every()]
    assert majors == ["9.3", "9.5", "9.6", *map(str, range(10, 19))]


def test_without_a_choice_it_is_all_of_them():
    assert releases.choose([]) == releases.every()


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["9.6", "14"], ["9.6.24", "14.19"]),
        (["14.19"], ["14.19"]),
        (["18", "18.0", "9.3"], ["9.3.5", "18.0"]),
    ],
)
def test_a_choice_is_by_major_version_or_release(names, chosen):
    assert [release.version for release in releases.choose(names)] == chosen


@pytest.mark.parametrize("name", ["9.2", "9", "1", "14.1", "--all"])
def test_a_version_that_is_not_to_be_had_is_refused_and_names_the_others(name):
    with pytest.raises(LabError, match=r"9\.3, 9\.5, 9\.6, 10"):
        releases.choose(["14", name])


# Where the lab lies: within reach of the account that runs the servers.


@pytest.fixture
def folder():
    made = short_folder()
    yield made
    shutil.rmtree(made)


def test_the_lab_lies_in_var(folder):
    places = Places(folder / "var")
    places.prepare(Accounts(*[service_account()] * 4))
    assert folders.versions_folder(places, service_account()) == folder / "var" / "lab"


def test_where_the_account_cannot_enter_var_the_lab_lies_beside_the_services(folder):
    if os.getuid() != 0:
        pytest.skip("only root runs the servers as another account")
    folder.chmod(0o700)
    account, places = service_account(), Places(folder / "var")
    places.prepare(Accounts(*[account] * 4))
    lab = folders.versions_folder(places, account)
    try:
        assert lab == places.services / "lab"
        assert account.can_enter(lab.parent)
    finally:
        shutil.rmtree(places.services)


def test_downloads_are_kept_in_var_unless_told_otherwise(folder):
    assert folders.downloads_folder(folder, {}) == folder / "lab-downloads"
    elsewhere = folders.downloads_folder(
        folder, {"BENCHLAB_LAB_DOWNLOADS": "/srv/cache"}
    )
    assert str(elsewhere) == "/srv/cache"


# `script/lab` as a person meets it, with a mirror that has two versions.


@pytest.fixture
def var(monkeypatch):
    folder = short_folder()
    monkeypatch.setenv("BENCHLAB_VAR", str(folder / "var"))
    yield folder / "var"
    shutil.rmtree(folder)


@pytest.fixture
def published(mirror, monkeypatch):
    known = (replace(mirror.publish("9.6.24"), cflags="-O0"), mirror.publish("14.19"))
    monkeypatch.setattr(releases, "every", lambda: known)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("BENCHLAB_MAVEN", mirror.address)
    return known


def test_all_versions_are_made_and_a_second_time_nothing_is_asked_for(
    var, mirror, published, capsys
):
    assert command.main([]) == 0
    assert "2 of 2 versions are ready" in capsys.readouterr().out
    flags = {
        each.parent.name: each.read_text() for each in (var / "lab").glob("*/cflags")
    }
    assert flags == {"9.6.24": "-O0\n"}
    mirror.asked.clear()
    assert command.main([]) == 0
    assert mirror.asked == []


def test_a_choice_makes_just_that(var, mirror, published):
    assert command.main(["14"]) == 0
    assert [path.name for path in (var / "lab").iterdir()] == ["14.19"]


def test_a_version_that_fails_does_not_keep_the_other(
    var, mirror, published, capsys, monkeypatch
):
    monkeypatch.setattr("benchlab.lab.downloads.WAITS_SECONDS", ())
    del mirror.files[published[0].path]
    assert command.main([]) == 1
    told = capsys.readouterr()
    assert "1 of 2 versions are ready" in told.out
    assert "PostgreSQL 9.6.24 could not be downloaded" in told.err


def test_a_repository_that_is_away_is_asked_for_one_version_only(
    var, mirror, published, capsys, monkeypatch
):
    monkeypatch.setattr("benchlab.lab.downloads.WAITS_SECONDS", ())
    monkeypatch.setenv("BENCHLAB_MAVEN", "http://127.0.0.1:9")
    assert command.main([]) == 1
    assert capsys.readouterr().err.count("could not be downloaded") == 1


def test_the_list_tells_what_one_should_know_of_a_build(capsys):
    assert command.main(["--list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "without optimisation" in lines["9.5"]
    assert lines["18"].endswith("15 MB")


def test_each_command_of_the_guide_is_understood():
    """docs/lab.md: a command, two blanks or more, and what it does."""
    shown = re.findall(
        r"^script/lab(.*?)(?:  |$)",
        (REPOSITORY / "docs/lab.md").read_text(),
        re.MULTILINE,
    )
    asked = [command._parsed(shlex.split(each)) for each in shown]
    assert len(asked) == 7
    assert [each.versions for each in asked[:2]] == [[], ["9.6", "14"]]
    assert asked[-1].block_sizes == [16]


def test_registering_without_a_running_benchlab_is_refused(
    var, mirror, published, capsys
):
    assert command.main(["--register"]) == 1
    assert "no BenchLab runs" in capsys.readouterr().err


def test_a_source_is_built_once_for_each_block_size(var, tmp_path, capsys):
    """Of a small source whose configure and make are scripts: what they are called with is real."""
    archive = source(tmp_path, version="18.4")
    asked = ["--build", str(archive), "--block-sizes", "8", "32", "--no-register"]
    assert command.main(asked) == 0
    made = sorted(path.name for path in (var / "lab").iterdir())
    assert made == ["18.4-32kB", "18.4-8kB"]
    told = (var / "lab/18.4-32kB/options").read_text()
    assert "--with-blocksize=32" in told
    assert "--without-icu" in told
    assert "building" in capsys.readouterr().out
    assert command.main(asked) == 0
    assert "building" not in capsys.readouterr().out


def test_a_build_that_has_another_block_size_or_fails_leaves_nothing(
    var, tmp_path, capsys
):
    for said, told in (("8192", "says block_size = 8192"), ("", "ended with 2")):
        archive = source(tmp_path, version="18.4", says=said)
        asked = ["--build", str(archive), "--block-sizes", "16", "--no-register"]
        assert command.main(asked) == 1
        assert told in capsys.readouterr().err
        assert list((var / "lab").iterdir()) == []
    assert (
        command.main(["--build", str(tmp_path / "nothing.tar"), "--no-register"]) == 1
    )
    assert "cannot be unpacked" in capsys.readouterr().err


def source(folder, *, version, says="$size"):
    """An archive like one of PostgreSQL: configure writes a Makefile that installs a `postgres`.

    It says the block size that it was configured with, or another one; without one make fails.
    """
    root = folder / f"postgresql-{version}"
    (root / "src/backend").mkdir(parents=True, exist_ok=True)
    configure = root / "configure"
    configure.write_text(CONFIGURE.replace("RELEASE", version).replace("SAYS", says))
    configure.chmod(0o755)
    archive = folder / f"{root.name}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(root, root.name)
    return archive


CONFIGURE = r"""#!/bin/sh
PACKAGE_VERSION='RELEASE'
for word; do
    case $word in --prefix=*) prefix=${word#*=} ;; --with-blocksize=*) kb=${word#*=} ;; esac
done
size=$((kb * 1024))
said=SAYS
mkdir contrib
printf 'all:\ninstall:\n' >contrib/Makefile
[ -n "$said" ] || { printf 'all:\n\texit 1\n' >Makefile; exit 0; }
printf 'all:\ninstall:\n\tmkdir -p $(DESTDIR)%s/bin\n' "$prefix" >Makefile
printf '\tprintf "#!/bin/sh\\necho %s\\n" >$(DESTDIR)%s/bin/postgres\n' "$said" "$prefix" >>Makefile
printf '\tchmod 755 $(DESTDIR)%s/bin/postgres\n' "$prefix" >>Makefile
printf '\techo "%s" >$(DESTDIR)%s/options\n' "$*" "$prefix" >>Makefile
"""


def test_on_another_machine_the_lab_says_what_to_do(
    var, published, capsys, monkeypatch
):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert command.main([]) == 1
    assert "install versions by its packages" in capsys.readouterr().err
