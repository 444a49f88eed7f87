"""YAML in which every scalar is text."""

import pytest

from runs.published.errors import PublishedFileError
from runs.published.fields import parse, typed


def test_what_is_printed_stays_as_it_is():
    content = parse("{a: off, b: 0.50, c: 9.10, d: 2014-01-01, e: 10:30, f: 1_000}")

    assert list(content.values()) == ["off", "0.50", "9.10", "2014-01-01", "10:30", "1_000"]


def test_a_mapping_takes_over_another_one():
    content = parse("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}")

    assert content["other"] == {"a": "1", "b": "3"}


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(PublishedFileError, match="line 3: “a” is given twice"):
        parse("x:\n  a: 1\n  a: 2")


def test_numbers_are_numbers_but_versions_are_names():
    content = parse("{version: 10, versions: ['9.6', '10'], scale: 1000, share: 0.5, log: true}")

    assert typed(content) == {
        "version": "10", "versions": ["9.6", "10"], "scale": 1000, "share": 0.5, "log": True,
    }  # fmt: skip
    assert typed("007") == "007"
    assert typed("null") is None
