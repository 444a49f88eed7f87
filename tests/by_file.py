"""A pytest plugin: a file's tests stay in one process of pytest-xdist, which alone collects them.

By itself each process collects all tests, which takes eight seconds of a processor six times. With
`--collect-late` a process takes each file for one item, and collects the file when its turn comes.
Of a test that passes it then sends one message instead of five.
"""

import gc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# Files of tests that share what is costly to start: one process runs them one after the other.
TOGETHER = {
    "tests/instance/test_accounts.py": "instance",
    "tests/instance/test_examples.py": "instance",
    "tests/instance/test_losses.py": "instance",
    "tests/instance/test_main_job.py": "instance",
    "tests/client/test_campaign_run.py": "server of clients",
    "tests/client/test_ci_docs.py": "server of clients",
    "tests/client/test_comment.py": "server of clients",
    "tests/client/test_upload.py": "server of clients",
}
# Tests in these folders mostly wait for targets; those of the others keep a processor busy.
WAITING = ("instance", "client", "ssh", "embedded", "lab")
# At most so many of seven processes wait, as long as there are others.
MOST_WAITING = 5
IS_COLLECTED = pytest.StashKey[bool]()


def with_room(function: Callable[[], Any]) -> Any:
    """Call it with a data stack of 512 kB, of which deep calls take no more from the kernel.

    Python's own is of pieces of 16 kB: a loop at whose depth one ends maps and unmaps memory with
    each call, which takes seven microseconds, and took a seventh of the tests' processor time.
    """
    return function()


# In words of eight bytes: a piece that holds this frame has as much room behind it.
with_room.__code__ = with_room.__code__.replace(co_stacksize=32_800)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Any:
    """In this process and those of pytest-xdist: all that they do."""
    own = [config.pluginmanager.get_plugin("tests.by_file")]
    everything = config.pluginmanager.subset_hook_caller("pytest_cmdline_main", own)
    return with_room(partial(everything, config=config))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--collect-late", action="store_true", help="collect a file where it is run"
    )


def is_waiting(files: str) -> bool:
    """Whether a file, or the name of those that stay together, mostly waits."""
    return files in TOGETHER.values() or files.split("/")[1] in WAITING


class Scheduling(LoadFileScheduling):
    """Each file's tests in one process, and those of some files in the same one.

    Files that wait and files that compute run at the same time, from the beginning to the end: of
    both kinds the same share is left at any time, however fast the machine is. Two processors then
    always have work.
    """

    # How many files there are of each kind: those that compute, and those that wait.
    _all: tuple[int, int] | None = None

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return TOGETHER.get(file, file)

    def _assign_work_unit(self, node: Any) -> None:
        wanted = self._number_waiting() < MOST_WAITING and self._waiting_is_behind()
        if found := next(
            (each for each in self.workqueue if is_waiting(each) == wanted), None
        ):
            self.workqueue.move_to_end(found, last=False)
        super()._assign_work_unit(node)

    def _waiting_is_behind(self) -> bool:
        """Whether a larger share is left of the files that wait than of the others."""
        waiting = sum(map(is_waiting, self.workqueue))
        left = (len(self.workqueue) - waiting, waiting)
        self._all = self._all or left
        return left[1] * self._all[0] >= left[0] * self._all[1]

    def _number_waiting(self) -> int:
        """Processes that run a file which waits, or have one as their next."""
        return sum(
            any(
                is_waiting(files) and not all(done.values())
                for files, done in assigned.items()
            )
            for assigned in self.assigned_work.values()
        )

    def _reschedule(self, node: Any) -> None:
        # A process knows its next test before it begins one. More than one file in hand would wait
        # for it while others have nothing to do.
        if self._pending_of(self.assigned_work[node]) < 2 or not self.workqueue:
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Any
) -> LoadFileScheduling | None:
    """What `--dist loadfile` of script/test does."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def is_needed(event: str, report: dict[str, Any]) -> bool:
    """Whether the process that prints needs this message: not that all is well before and after."""
    if event in {"logstart", "logfinish"}:
        return False
    return (
        event != "testreport"
        or report["when"] == "call"
        or report["outcome"] != "passed"
    )


def send_only_needed(interactor: Any) -> None:
    """Let what sends messages for pytest-xdist leave out the others."""
    send = interactor.sendevent

    def sent(event: str, **values: Any) -> None:
        if is_needed(event, values.get("data", {})):
            send(event, **values)

    interactor.sendevent = sent


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """In a process of pytest-xdist: what sends is there now."""
    if session.config.getoption("collect_late"):
        for plugin in session.config.pluginmanager.get_plugins():
            # By name: pytest-xdist runs its file there, and does not import it.
            if type(plugin).__name__ == "WorkerInteractor":
                send_only_needed(plugin)


class File(pytest.Item):
    """All tests of a module, which is not imported yet."""

    running: pytest.Item | None = None
    failure: Exception | None = None

    @property
    def nodeid(self) -> str:
        """That of the test which runs: pytest-xdist asserts that a report is of its item."""
        return self.running.nodeid if self.running else super().nodeid

    def module(self) -> pytest.Module | None:
        """The module, imported; None where that cannot be done, which the test `file` then says."""
        module = self.getparent(pytest.Module)
        try:
            return module if module is not None and module.obj else None
        except Exception as failure:  # noqa: BLE001  it may be anything that a module does
            self.failure = failure
            return None

    def run(self, module: pytest.Module, following: pytest.Item | None) -> None:
        """Collect the tests and run them; `following` is what this process runs afterwards."""
        module.stash[IS_COLLECTED] = True
        items = list(self.session.genitems(module))
        self.config.hook.pytest_collection_modifyitems(
            session=self.session, config=self.config, items=items
        )
        if not items:
            # The test before was told that this file follows, and has kept what both need.
            self.session._setupstate.teardown_exact(following)
            return
        # As after the collection of all: modules and tests stay until the end.
        gc.collect()
        gc.freeze()
        for item, after in pairwise([*items, following]):
            self.running = item
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)

    def runtest(self) -> None:
        """Only for a module that cannot be imported."""
        assert self.failure is not None
        raise self.failure


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> pytest.CollectReport | None:
    """In a process of pytest-xdist: a module is one item until that is run."""
    is_late = collector.config.getoption("collect_late") and hasattr(
        collector.config, "workerinput"
    )
    if (
        not is_late
        or not isinstance(collector, pytest.Module)
        or IS_COLLECTED in collector.stash
    ):
        return None
    file = File.from_parent(collector, name="file")
    # Its tests have limits of their own.
    file.add_marker(pytest.mark.timeout(0))
    # pytest-django makes the databases that any item of the session asks for by its marker.
    file.add_marker(pytest.mark.django_db)
    return pytest.CollectReport(collector.nodeid, "passed", None, [file])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> bool | None:
    """Run the tests of a file instead of the file."""
    if not isinstance(item, File) or (module := item.module()) is None:
        return None
    item.run(module, nextitem)
    return True
