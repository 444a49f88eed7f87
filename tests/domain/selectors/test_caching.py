"""Answers in the cache: kept for a version and a release, and made again for another of either."""

from itertools import count

import pytest
from django.core.cache import cache

from runs.selectors import caching


@pytest.fixture
def made():
    cache.clear()
    yield count()
    cache.clear()


def test_an_answer_is_made_once_for_each_version(made):
    asked = [caching.answer("tables", version, lambda: next(made)) for version in "1121"]
    assert asked == [0, 0, 1, 0]


def test_an_answer_of_another_release_is_made_again(made, monkeypatch):
    first = caching.answer("tables", "1", lambda: next(made))
    monkeypatch.setattr(caching, "code", lambda: "of another release")
    assert caching.answer("tables", "1", lambda: next(made)) == first + 1


def test_a_dear_answer_is_made_again_at_most_every_so_often(made, monkeypatch):
    monkeypatch.setattr(caching, "DEAR_SECONDS", 0.0)
    monkeypatch.setattr(caching, "SELDOM", 1e9)
    assert [caching.answer("wide", version, lambda: next(made)) for version in "123"] == [0, 0, 0]
    monkeypatch.setattr(caching, "SELDOM", 0.0)
    cache.clear()
    assert [caching.answer("wide", version, lambda: next(made)) for version in "123"] == [1, 2, 3]


def test_a_changed_template_is_another_release(settings, tmp_path):
    settings.BASE_DIR = tmp_path
    (tmp_path / "templates").mkdir()
    page = tmp_path / "templates" / "page.html"
    page.write_text("one")
    digests = set()
    for text in ("one", "two!"):
        page.write_text(text)
        caching.code.cache_clear()
        digests.add(caching.code())
    caching.code.cache_clear()
    assert len(digests) == 2
