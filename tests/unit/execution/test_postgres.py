"""Commands and configuration of a cluster."""

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.postgres import Cluster
from runs.execution.sessions import shell_line


@pytest.fixture
def cluster() -> Cluster:
    return Cluster("/pg/bin", 90224, "/client/bin", "/base/clusters/x", "/base/runs/1-1/s", "/log")


def test_settings_are_quoted_and_nothing_listens_on_the_network(cluster):
    _argv, text = cluster.configure({"search_path": "it's \\ here", "work_mem": "1MB"})
    assert text.splitlines()[1:] == [
        "# BenchLab",
        "listen_addresses = ''",
        "search_path = 'it''s \\\\ here'",
        "work_mem = '1MB'",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("archive_command", "cp %p /tmp"),
        ("Restore_Command", "curl x | sh"),
        ("ssl_passphrase_command", "true; id"),
        ("plperl.on_init", "system 'id'"),
        ("shared_preload_libraries", "pg_prewarm, /tmp/x"),
        ("dynamic_library_path", "/tmp"),
        ("work_mem", "1MB'\nport = 1"),
        ("work_mem = 1\narchive_command", "cp %p /tmp"),
    ],
)
def test_what_would_run_something_or_needs_more_than_a_line_is_refused(cluster, name, value):
    with pytest.raises(TargetProblem) as refused:
        cluster.configure({name: value})
    assert refused.value.code == "setting_refused"
    assert "Leave the setting out" in refused.value.remedy


def test_a_command_that_does_nothing_is_written(cluster):
    _argv, text = cluster.configure({"archive_command": "true"})
    assert "archive_command = 'true'" in text.splitlines()


def test_an_old_initdb_is_not_given_an_option_that_it_does_not_know(cluster):
    assert "-N" not in cluster.initdb([])
    assert "-N" in Cluster("/b", 90300, "/b", "/c", "/s", "/log").initdb([])


def test_initdb_options_come_through(cluster):
    assert cluster.initdb(["--no-locale"])[-1] == "--no-locale"


def test_one_function_quotes_for_the_shell():
    assert shell_line(["a b", "$x", "'"]) == """'a b' '$x' ''"'"''"""
    with pytest.raises(ValueError, match="null byte"):
        shell_line(["a\0"])
