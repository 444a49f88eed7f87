"""The same wish makes clusters of all versions alike."""

import pytest

from runs.execution.postgres import options_for


@pytest.mark.parametrize(
    ("version", "wanted", "given"),
    [
        (90224, (), ()),
        (90305, (), ("-N",)),
        (90305, ("--data-checksums",), ("-N", "--data-checksums")),
        (90305, ("-k",), ("-N", "--data-checksums")),
        (170006, ("--no-data-checksums",), ("-N",)),
        (170006, ("--wal-segsize=64",), ("-N", "--wal-segsize=64")),
        (180000, (), ("-N", "--no-data-checksums")),
        (180000, ("--data-checksums",), ("-N", "--data-checksums")),
    ],
)
def test_checksums_are_where_they_were_asked_for_and_nowhere_else(version, wanted, given):
    assert options_for(version, wanted) == given


@pytest.mark.parametrize(
    ("version", "option", "reason"),
    [
        (90224, "--data-checksums", r"--data-checksums from PostgreSQL 9\.3 on"),
        (90224, "-k", r"-k from PostgreSQL 9\.3 on"),
        (100023, "--wal-segsize=64", "--wal-segsize from PostgreSQL 11 on"),
    ],
)
def test_an_option_that_came_later_is_refused_with_the_reason(version, option, reason):
    with pytest.raises(ValueError, match=reason):
        options_for(version, [option])
