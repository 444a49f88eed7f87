"""Artifacts come whole or not at all, and a download goes on where it broke off."""

from functools import partial

import pytest

from benchlab.embedded.embedded_server import free_port
from benchlab.lab import downloads
from benchlab.lab.errors import LabError, RepositoryAway


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
    assert [wanted for path, wanted in mirror.asked if path == release.path] == ["", "bytes=100-"]


def test_a_kept_file_that_was_damaged_since_is_downloaded_again(mirror, fetch):
    release = mirror.publish("14.19")
    fetch(release).write_bytes(b"damaged")
    assert fetch(release).read_bytes() == mirror.files[release.path]


def test_another_content_than_the_pinned_one_is_refused_and_not_kept(mirror, fetch, tmp_path):
    release = mirror.damage(mirror.publish("14.19"))
    with pytest.raises(LabError, match=f"should be {release.sha256}"):
        fetch(release)
    assert list((tmp_path / "kept").iterdir()) == []


def test_another_sha1_than_the_published_one_is_refused(mirror, fetch):
    release = mirror.publish("14.19")
    mirror.files[f"{release.path}.sha1"] = b"0" * 40
    with pytest.raises(LabError, match="publishes another SHA-1"):
        fetch(release)


def test_a_mirror_without_sha1_files_will_do(mirror, fetch):
    release = mirror.publish("14.19")
    del mirror.files[f"{release.path}.sha1"]
    assert fetch(release).exists()


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
