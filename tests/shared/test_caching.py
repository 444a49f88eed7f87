"""Answers in the cache: kept for a version and a release, and made again for another of either."""

from itertools import count

import pytest
from django.core.cache import cache
from django.db import transaction

from runs.models import CacheVersion, Campaign
from runs.shared import caching
from tests import factories


@pytest.fixture
def made():
    cache.clear()
    yield count()
    cache.clear()


def test_an_answer_is_made_once_for_each_version(made):
    asked = [
        caching.answer("tables", version, lambda: next(made)) for version in "1121"
    ]
    assert asked == [0, 0, 1, 0]


def test_an_answer_of_another_release_is_made_again(made, monkeypatch):
    first = caching.answer("tables", "1", lambda: next(made))
    monkeypatch.setattr(caching, "code", lambda: "of another release")
    assert caching.answer("tables", "1", lambda: next(made)) == first + 1


def test_what_control_makes_says_whether_it_is_of_now_and_is_made_at_most_every_so_often(
    made, monkeypatch
):
    asked = []

    def at(version):
        caching.make_latest(
            "wide", version, lambda: {"wide": next(made), "page 2": "more"}
        )
        found = caching.latest("wide", version, lambda: asked.append(version))
        return found.value, found.is_current

    assert caching.latest("wide", "1", lambda: asked.append("0")) == caching.Latest()
    monkeypatch.setattr(caching, "SELDOM", 0)
    assert [at(version) for version in "1122"] == [
        (0, True),
        (0, True),
        (1, True),
        (1, True),
    ]
    assert caching.latest("page 2", "2").is_current
    monkeypatch.setattr(caching, "SELDOM", 1e9)
    # A second question within seconds would be the same.
    assert [at(version) for version in "34"] == [(1, False), (1, False)]
    assert asked == ["0"]


def test_two_controls_make_nothing_at_the_same_time(made):
    def make():
        caching.make_latest("other", "1", lambda: {"other": next(made)})
        return {"wide": next(made)}

    caching.make_latest("wide", "1", make)
    assert caching.latest("wide", "1").value == 0
    assert caching.latest("other", "1").value is None


@pytest.mark.django_db(transaction=True)
def test_what_a_transaction_saw_and_took_back_is_kept_for_nobody(made):
    """Its version would be that of the next change, which others then look for."""
    campaign = factories.campaign(title="first")

    def title():
        return caching.answer(
            "title",
            caching.versions([campaign.pk]).whole,
            lambda: Campaign.objects.get(pk=campaign.pk).title,
        )

    def rename(title):
        Campaign.objects.filter(pk=campaign.pk).update(title=title)

    assert title() == "first"
    assert caching.versions([campaign.pk]) != caching.NEVER
    with transaction.atomic():
        assert caching.versions([campaign.pk]) == caching.NEVER
        rename("taken back")
        assert title() == "taken back"
        transaction.set_rollback(True)
    rename("second")
    assert title() == "second"


@pytest.mark.parametrize(
    ("before", "after", "tells"),
    [
        ("running", "finished", True),
        # The noise of its cells is known no more until it ends again.
        ("finished", "running", True),
        ("finished", "cancelled", True),
        ("queued", "running", False),
    ],
)
def test_what_others_know_of_a_machine_changes_with_who_has_ended(
    db, before, after, tells
):
    def number():
        return CacheVersion.objects.filter(subject="machines").values("number").first()

    campaign = factories.campaign()
    campaigns = Campaign.objects.filter(pk=campaign.pk)
    campaigns.update(state=before)
    known = number()

    campaigns.update(state=after)

    assert (number() != known) == tells


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
