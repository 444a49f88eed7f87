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
    "a function that others import by name": (
        (
            "import sys; from runs.later import load_when_called; "
            "load_when_called('colorsys', 'rgb_to_hls'); from colorsys import rgb_to_hls; "
            "before = sys.modules['colorsys']; found = rgb_to_hls(1, 1, 1); import colorsys; "
            "print(type(before).__name__, found, type(colorsys).__name__, colorsys.ONE_THIRD > 0)"
        ),
        "Later (0.0, 1.0, 0.0) module True",
    ),
    "exceptions of AMQP, and AMQP after them": (
        (
            "import benchlab, sys, amqp, amqp.exceptions as e; c = amqp.ConnectionError; "
            "before = 'amqp.connection' in sys.modules; "
            "print(before, c is e.ConnectionError, amqp.Connection.__module__)"
        ),
        "False True amqp.connection",
    ),
    "clients of clusters of redis": (
        (
            "import benchlab, redis, sys; before = type(sys.modules['redis.cluster']).__name__; "
            "from redis.cluster import ClusterNode; "
            "print(before, ClusterNode.__module__, redis.Redis.__module__)"
        ),
        "Later redis.cluster redis.client",
    ),
    "scipy's compiled functions, and all of scipy.special after them": (
        (
            "import sys; from runs import arrays; from scipy import special; "
            "found = {name: getattr(special, name) for name in special._homes}; "
            "before = 'scipy.special._orthogonal' in sys.modules; "
            "from scipy.special import roots_legendre; import scipy.special as s; "
            "print(before, len(found), all(getattr(s, name) is each for name, each in "
            "found.items() if name != 'zeta'), found['zeta'](2.0, 3.5) == s.zeta(2.0, 3.5))"
        ),
        "False 13 True True",
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
