"""Commands and configuration of a cluster."""

import pytest

from runs.execution.postgres import Cluster
from runs.execution.quoting import shell_line


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


def test_a_value_of_two_lines_is_refused(cluster):
    with pytest.raises(ValueError, match="one line"):
        cluster.configure({"work_mem": "1MB'\nport = 1"})


def test_an_old_initdb_is_not_given_an_option_that_it_does_not_know(cluster):
    assert "-N" not in cluster.initdb([])
    assert "-N" in Cluster("/b", 90300, "/b", "/c", "/s", "/log").initdb([])


def test_initdb_options_come_through(cluster):
    assert cluster.initdb(["--no-locale"])[-1] == "--no-locale"


def test_one_function_quotes_for_the_shell():
    assert shell_line(["a b", "$x", "'"]) == """'a b' '$x' ''"'"''"""
    with pytest.raises(ValueError, match="null byte"):
        shell_line(["a\0"])
