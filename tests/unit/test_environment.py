"""What is wrong in the environment ends the program with one line that says which and what."""

import json
import os
import subprocess
import sys

import pytest

from benchlab.environment import Environment
from tests.each import check_each
from tests.migrated import ROOT

# Variable, reader, its other arguments, what it must not hold.
WRONG = [
    ("BENCHLAB_PROXIES", "int", {"default": 0}, "one"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "abc"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "0"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "nan"),
    ("BENCHLAB_TLS", "bool", {"default": False}, "maybe"),
    ("DATABASE_URL", "db", {"default": ""}, "nonsense"),
    ("DATABASE_URL", "db", {"default": ""}, "mysql://host/benchlab"),
    ("DATABASE_URL", "db", {"default": ""}, "postgresql://u:hidden@host:port/benchlab"),
    ("DATABASE_URL", "db", {"default": ""}, "postgresql://u:hidden@host:5432"),
    ("DATABASE_REPLICA_URL", "db", {"default": ""}, "standby.example"),
    ("REDIS_URL", "redis", {"default": ""}, "nonsense"),
    ("REDIS_URL", "redis", {"default": ""}, "redis://host:port/0"),
    ("EMAIL_URL", "mail", {"default": ""}, "mail.example"),
    ("BENCHLAB_SITES", "slugs", {}, "tokyo,Not one"),
    ("BENCHLAB_RETENTION", "days", {}, "files"),
    ("BENCHLAB_RETENTION", "days", {}, "files=-1"),
    ("BENCHLAB_RETENTION", "days", {}, "figures=10"),
    ("BENCHLAB_RETENTION", "days", {}, "files=1,files=2"),
    ("TIME_ZONE", "time_zone", {"default": "UTC"}, "Mars/Olympus"),
    ("TIME_ZONE", "time_zone", {"default": "UTC"}, "../etc/passwd"),
    ("LOG_LEVEL", "one_of", {"choices": ("INFO", "DEBUG"), "default": "INFO"}, "loud"),
]


def test_a_wrong_value_is_named_and_no_password_is_told(monkeypatch):
    def is_told(sample):
        name, reader, arguments, value = sample
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            getattr(Environment(), reader)(name, **arguments)
        line = str(ended.value)
        assert line.startswith(f"BenchLab: {name} ")
        assert "\n" not in line
        assert "hidden" not in line

    check_each(WRONG, is_told)


def test_nothing_is_the_default_and_what_is_right_is_taken(monkeypatch):
    for value in ("", "  "):
        monkeypatch.setenv("X", value)
        assert Environment().int("X", default=3) == 3
        assert Environment().bool("X", default=True) is True
        assert Environment().mail("X", default="") == ""
        assert Environment().db("X", default="") == {}
    monkeypatch.setenv("X", "tokyo, berlin,")
    assert Environment().slugs("X") == ("tokyo", "berlin")
    monkeypatch.setenv("X", "files=365, uploads = 0")
    assert Environment().days("X") == {"files": 365, "uploads": 0}
    monkeypatch.setenv("X", "off")
    assert Environment().bool("X", default=True) is False
    monkeypatch.setenv("X", "postgresql://u:p%40@host:5433/lab")
    found = Environment().db("X", default="")
    assert (found["NAME"], found["PORT"], found["PASSWORD"]) == ("lab", 5433, "p@")


@pytest.mark.parametrize(
    ("name", "value"),
    [("BENCHLAB_SUPERVISE_SECONDS", "often"), ("SECRET_KEY", ""), ("DATABASE_URL", None)],
)
def test_a_command_ends_with_one_line_and_a_status(name, value, tmp_path):
    """The third is a database at a port where nobody listens."""
    environment = os.environ | {name: value or "postgresql://x:hidden@127.0.0.1:9/x"}
    if name == "SECRET_KEY":
        environment[name] = ""
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("BenchLab: ")
    assert "hidden" not in line


def test_a_standby_is_one_setting(tmp_path):
    code = (
        "from django.conf import settings as s; import json;"
        "found = s.DATABASES['replica'];"
        "print(json.dumps([found['PORT'], found['TEST']['MIRROR'],"
        " s.DATABASE_ROUTERS, 'benchlab.replica.ReadReplica' in s.MIDDLEWARE]))"
    )
    environment = os.environ | {
        "DATABASE_REPLICA_URL": "postgresql://x:y@standby:5433/x",
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
    }
    told = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment)
    assert json.loads(told) == [5433, "default", ["benchlab.replica.Router"], True]
