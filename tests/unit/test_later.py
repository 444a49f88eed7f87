"""Modules that are loaded when something of them is first used."""

import subprocess
import sys
from pathlib import Path

import pytest

from runs.later import Later

ROOT = Path(__file__).parents[2]

# Each in a process of its own: what is loaded, and what comes of its use.
CASES = {
    "the statements of sqlparse": (
        (
            "import benchlab, sys, sqlparse; before = 'sqlparse.sql' in sys.modules; "
            "print(before, sqlparse.split('select 1; select 2'))"
        ),
        "False ['select 1;', 'select 2']",
    ),
    "the exceptions of click, and click after them": (
        (
            "import benchlab, sys, click, click.exceptions as e; "
            "before = 'click.core' in sys.modules; "
            "print(before, click.ClickException is e.ClickException, click.Command.__module__, "
            "issubclass(click.UsageError, e.ClickException))"
        ),
        "False True click.core True",
    ),
    "redis for asyncio": (
        (
            "import benchlab, sys, redis; before = 'redis.asyncio.client' in sys.modules; "
            "print(before, redis.asyncio.Redis.__module__)"
        ),
        "False redis.asyncio.client",
    ),
    "numpy, which psycopg must not see before": (
        (
            "import sys; from runs.arrays import np; before = 'numpy' in sys.modules; "
            "print(before, np.arange(3).sum(), 'numpy' in sys.modules)"
        ),
        "False 3 True",
    ),
    "a module that has been loaded": (
        (
            "import json, sys; from runs.later import load_later, load_package_later; "
            "load_later('json'); load_package_later('email'); "
            "load_package_later('no_such_package'); "
            "print(sys.modules['json'] is json, 'email.parser' in sys.modules, "
            "'no_such_package' in sys.modules)"
        ),
        "True False False",
    ),
}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES)
def test_a_module_is_loaded_by_its_first_use(code: str, expected: str):
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == expected


def test_what_a_module_does_not_have_is_said_as_usual():
    later = Later("json")
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'nothing'"):
        _ = later.nothing
    assert later.dumps([1]) == "[1]"


def test_a_module_is_hidden_in_a_block_only():
    code = (
        "from runs.later import without\n"
        "with without('colorsys'):\n"
        "    try: import colorsys\n"
        "    except ImportError: print('hidden')\n"
        "import colorsys; print(colorsys.__name__)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout == "hidden\ncolorsys\n"
