"""`script/lab` as a person meets it, with a mirror that has two versions."""

import shutil
import tarfile

import pytest

from benchlab.lab import command, releases
from tests.ssh.openssh import short_folder


@pytest.fixture
def var(monkeypatch):
    folder = short_folder()
    monkeypatch.setenv("BENCHLAB_VAR", str(folder / "var"))
    yield folder / "var"
    shutil.rmtree(folder)


@pytest.fixture
def published(mirror, monkeypatch):
    known = (mirror.publish("9.6.24"), mirror.publish("14.19"))
    monkeypatch.setattr(releases, "every", lambda: known)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("BENCHLAB_MAVEN", mirror.address)
    return known


def test_all_versions_are_made_and_a_second_time_nothing_is_asked_for(
    var, mirror, published, capsys
):
    assert command.main([]) == 0
    assert "2 of 2 versions are ready" in capsys.readouterr().out
    mirror.asked.clear()
    assert command.main([]) == 0
    assert mirror.asked == []


def test_a_choice_makes_just_that(var, mirror, published):
    assert command.main(["14"]) == 0
    assert [path.name for path in (var / "lab").iterdir()] == ["14.19"]


def test_a_version_that_fails_does_not_keep_the_other(var, mirror, published, capsys, monkeypatch):
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


def test_registering_without_a_running_benchlab_is_refused(var, mirror, published, capsys):
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


def test_a_build_that_has_another_block_size_or_fails_leaves_nothing(var, tmp_path, capsys):
    for said, told in (("8192", "says block_size = 8192"), ("", "ended with 2")):
        archive = source(tmp_path, version="18.4", says=said)
        asked = ["--build", str(archive), "--block-sizes", "16", "--no-register"]
        assert command.main(asked) == 1
        assert told in capsys.readouterr().err
        assert list((var / "lab").iterdir()) == []
    assert command.main(["--build", str(tmp_path / "nothing.tar"), "--no-register"]) == 1
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


def test_on_another_machine_the_lab_says_what_to_do(var, published, capsys, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert command.main([]) == 1
    assert "install versions by its packages" in capsys.readouterr().err
