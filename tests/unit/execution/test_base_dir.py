"""Paths on a target."""

import pytest

from runs.execution.base_dir import BaseDir, is_plain_path


@pytest.mark.parametrize(
    "path", ["/b", "/var/tmp/bench_lab-1.0", "/a/.b", "/Users/Jo Doe/x", "/家/x"]
)
def test_plain_paths_are_allowed(path):
    assert is_plain_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "b",
        "/b/",
        "/b//c",
        "/b/../c",
        "/b,c",
        "/b$c",
        "/b`c",
        "//b",
        "/b\n",
        '/b"c',
        "/b'c",
    ],
)
def test_others_are_not(path):
    assert not is_plain_path(path)


def test_a_mark_names_the_benchlab_and_the_very_place():
    base = BaseDir("/lab", "instance")
    assert base.mark("/lab/clusters/a") != base.mark("/lab/clusters/b")
    assert base.mark("/lab/clusters/a") != BaseDir("/lab", "other").mark("/lab/clusters/a")
