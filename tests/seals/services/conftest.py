"""What the tests of seals share: the program that verifies an export offline."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "script/benchlab-verify"


@pytest.fixture(scope="module")
def program():
    """The program as a module."""
    loader = SourceFileLoader("benchlab_verify", str(PROGRAM))
    made = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader)
    )
    loader.exec_module(made)
    return made


@pytest.fixture
def offline(program, tmp_path, monkeypatch, capsys):
    """Verify rows of an export: the exit status, and what is printed.

    The last line counts them again, as anybody can who changes an export.
    """

    def run(rows, *arguments):
        path = tmp_path / "export.ndjson"
        if rows[-1]["type"] == "end":
            rows = [*rows[:-1], {**rows[-1], "lines": len(rows)}]
        path.write_text("".join(program.canonical(row) + "\n" for row in rows))
        monkeypatch.setattr(sys, "argv", ["benchlab-verify", str(path), *arguments])
        status = program.main()
        return status, capsys.readouterr().out

    return run
