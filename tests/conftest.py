"""What all tests share."""

import os
import shutil
from pathlib import Path

import pytest
from django.conf import settings


@pytest.fixture(autouse=True)
def plain_static_files(settings, tmp_path):
    """Tests collect no static files: there is no manifest, and an empty folder to collect in."""
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture(autouse=True)
def own_artifacts(settings, tmp_path):
    """Each test keeps its artifacts in a folder of its own."""
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


@pytest.fixture(scope="session")
def sshd_binary() -> str:
    """The OpenSSH server; CI fails without it, a laptop skips."""
    found = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("sshd is missing: apt install openssh-server")
        pytest.skip("sshd is missing: apt install openssh-server")
    return found


@pytest.fixture(scope="session")
def test_folder() -> Path:
    """A short-named folder that the unprivileged account can enter."""
    assert settings.configured
    return Path(os.environ["BENCHLAB_TEST_FOLDER"])
