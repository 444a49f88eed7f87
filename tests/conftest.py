"""What all tests share."""

import functools
import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from django.utils import translation
from playwright.sync_api import Browser, expect, sync_playwright

from tests import flushing
from tests.by_file import WAITING
from tests.fixtures.api import (  # noqa: F401 - fixtures of all tests
    bearer,
    get,
    log_in_as,
    make_token,
    no_rate_limit,
    project,
    tokens_are_read_with_each_request,
)
from tests.fixtures.pages import (  # noqa: F401 - fixtures of all tests
    administrator,
    finished_campaign,
    known,
    log_in,
    member,
    page,
    ready_server,
    tab,
)
from tests.migrated import TEMPLATE
from tests.real_services import socket_folder

CHROMIUM_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page lives for a second: compilers that optimize cost more than they spare.
    "--js-flags=--no-opt,--no-maglev",
)


# Nothing that is made until the end of collecting becomes garbage: see there.
gc.disable()

# The folders with the longest files begin, so that no process is left alone with one at the end.
SUBJECTS = (
    "access",
    "archive",
    "bisections",
    "campaigns",
    "compare",
    "configurations",
    "documents",
    "exchange",
    "histories",
    "home",
    "loads",
    "observations",
    "operations",
    "queue",
    "schedules",
    "seals",
    "servers",
    "shared",
    "topics",
    "uploads",
    "why",
)
FIRST = (*WAITING, "domain", *SUBJECTS, "web", "api", "unit")
# The shortest of the files that wait end for the same reason: below ten seconds each.
LAST = {
    "embedded/test_processes.py",
    "lab/test_lab.py",
    "ssh/test_configurations.py",
    "ssh/test_hostile_target.py",
    "ssh/test_listening.py",
    "ssh/test_needless_clusters.py",
    "ssh/test_preflight.py",
    "ssh/test_probing.py",
    "ssh/test_supervision.py",
    "ssh/test_target_setup.py",
}


def pytest_configure(config: pytest.Config) -> None:
    """Compile the translations that are older than their texts: plain `pytest` needs them too."""
    if hasattr(config, "workerinput"):
        return
    program = Path(__file__).parents[1] / "script/lib/catalog.py"
    subprocess.run([sys.executable, program], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in the order in which they begin; where is decided by tests/by_file.py."""
    tests = Path(__file__).parent
    order = {folder: place for place, folder in enumerate(FIRST)}

    def place(item: pytest.Item) -> tuple[bool, int]:
        path = item.path.relative_to(tests)
        return path.as_posix() in LAST, order.get(path.parts[0], len(FIRST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what stays until the end: modules and collected tests.

    It walked over all of them again and again, which took a tenth of the tests' processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Fail in CI what is skipped because something is missing, which a laptop may lack."""
    report = yield
    is_missing = report.skipped and "is missing" in str(report.longrepr)
    if is_missing and os.environ.get("CI"):
        report.outcome, report.longrepr = "failed", str(report.longrepr)
    return report


# A copy of a migrated database takes a tenth of a second.
connections.settings["default"]["TEST"]["TEMPLATE"] = TEMPLATE
connections.settings["default"]["HOST"] = socket_folder()


@pytest.fixture(scope="session", autouse=True)
def quick_passwords():
    """A password is hashed a million times, which is meant to take long."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def archive_read_once() -> None:
    """A process parses the archive's own files once, of which each `verify` parses all."""
    from runs.published import reading  # needs Django's settings

    parse = reading.read
    parsed = functools.cache(parse)
    reading.read = lambda path: (parsed if path.parent == reading.FOLDER else parse)(
        path
    )


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> None:
    """After a test that commits, its rows are deleted."""
    flushing.install()


@pytest.fixture(scope="session", autouse=True)
def plain_static_files(tmp_path_factory):
    """Tests collect no static files: there is no manifest, and an empty folder to collect in."""
    settings.STATIC_ROOT = tmp_path_factory.mktemp("static")
    # A live server serves static files only where it reads this name of the application.
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.staticfiles"]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        },
    }


@pytest.fixture(scope="session")
def artifacts_of_tests(tmp_path_factory) -> Iterator[Path]:
    """Folders that are not there yet, one after the other."""
    folder = tmp_path_factory.mktemp("artifacts")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_artifacts(artifacts_of_tests):
    """Each test keeps its artifacts in a folder of its own, which is made if it keeps any."""
    settings.ARTIFACTS_DIR = next(artifacts_of_tests)


@pytest.fixture(autouse=True)
def no_language_left() -> Iterator[None]:
    """The language that a request was answered in stays that of its thread."""
    yield
    translation.deactivate()


@pytest.fixture(scope="module")
def stored_throughout(
    django_db_setup, django_db_blocker
) -> Iterator[Callable[[Any], Any]]:
    """`stored_throughout(make)` stores once what the tests of a module share; what `make` gives.

    Each test rolls back only what it adds; all is rolled back after the module's last test. What
    is stored is checked at once: each test would check it again, and roll that back.
    """
    stored = transaction.atomic()

    def reach(do: Callable[[], Any]) -> Any:
        with django_db_blocker.unblock():
            return do()

    def store(make: Callable[[], Any]) -> Any:
        made = reach(make)
        reach(connection.check_constraints)
        return made

    reach(stored.__enter__)
    yield store
    reach(lambda: transaction.set_rollback(True))
    reach(lambda: stored.__exit__(None, None, None))


@pytest.fixture(scope="module")
def whole_archive(stored_throughout):
    """Every publication, stored once for a module."""
    from runs.archive import services
    from runs.published import reading  # needs Django's settings
    from runs.workloads.services import scenarios

    stored_throughout(scenarios.sync)
    stored_throughout(lambda: services.load(files=reading.files()))


@pytest.fixture(scope="session")
def sshd_binary() -> str:
    """The OpenSSH server."""
    found = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        pytest.skip("sshd is missing: apt install openssh-server")
    return found


# A page has come when it has come: a busy machine is no fault of the page.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def chromium_binary() -> str:
    """The system's Chromium."""
    for name in (
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
    ):
        if found := shutil.which(name):
            return found
    pytest.skip("Chromium is missing: apt install chromium")


@pytest.fixture(scope="module")
def chromium(chromium_binary: str) -> Iterator[Browser]:
    """Headless Chromium, closed at the end of each module.

    Its synchronous driver keeps an event loop in this thread, in which Django refuses queries and
    no test can start a loop of its own.
    """
    # A live server's threads must not hold connections when the test database is dropped.
    connections.settings["default"]["CONN_MAX_AGE"] = 0
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium_binary, args=list(CHROMIUM_OPTIONS)
        )
        yield browser
        # In this loop Django has connections of its own, which nobody sees after it.
        connections.close_all()
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def test_folder() -> Path:
    """A short-named folder that the unprivileged account can enter."""
    assert settings.configured
    return Path(os.environ["BENCHLAB_TEST_FOLDER"])
