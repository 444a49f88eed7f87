"""A pytest plugin that counts asserted facts: each `assert` of a test that was executed and held.

`script/test --count` runs with it and prints the sum, so that a change of the tests' form can show
that they assert no less than before. Formatting every passed assertion takes time; the usual run
does without.
"""

from __future__ import annotations

from typing import Any

import pytest

FACTS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FACTS] = 0
    config.pluginmanager.register(_Sum(config), "facts-sum")


class _Sum:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_assertion_pass(
        self, item: pytest.Item, lineno: int, orig: str, expl: str
    ) -> None:
        self.config.stash[FACTS] += 1

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["facts"] = self.config.stash[FACTS]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.config.stash[FACTS] += getattr(node, "workeroutput", {}).get("facts", 0)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        terminalreporter.write_line(f"asserted facts: {self.config.stash[FACTS]:,}")
