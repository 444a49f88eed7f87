"""A forced push: commits that the branch has left behind are in no history and no baseline."""

import pytest

from runs.histories.services import changes
from runs.models import Campaign, Change
from tests.history_points import commit, noisy, repeats, sha, store

pytestmark = pytest.mark.django_db


def pushed(numbers, level, parent, *, at_once=False):
    """Commits on main, each the child of the one before it, analysed one by one or all at once."""
    for number in numbers:
        revision = commit(number, parents=[sha(parent)] if parent is not None else [])
        store(repeats(revision, tps=noisy(level), job=f"job {number}"))
        if not at_once or number == numbers[-1]:
            changes.find(campaign_id=Campaign.objects.get().pk)
        parent = number


@pytest.mark.parametrize("tracked", ["main", pytest.param("", marks=pytest.mark.slow)])
def test_what_was_taken_back_leaves_history_and_baselines_and_its_change_is_refuted(
    tracked, get
):
    """30 commits, ten at -7 % that were taken back, and 30 without them."""
    pushed(range(30), 1000.0, None, at_once=True)
    Campaign.objects.update(tracked_ref=tracked)
    pushed(range(30, 40), 930.0, 29)
    assert Change.objects.get(kind="step").decision == "open"
    pushed(range(40, 70), 1000.0, 29)
    assert not Change.objects.filter(decision="open").exists()
    assert Change.objects.get(kind="step").reason == "left_behind"

    (history,) = get("history/", campaign="nightly", metric="tps")["series"]
    assert [point["revision"] for point in history["points"]] == [
        sha(number) for number in (*range(30), *range(40, 70))
    ]

    store(
        repeats(
            commit(71, "pr", parents=[sha(42)]), tps=[1000.0, 1001.0, 999.0], job="pr"
        )
    )
    query = {"campaign": "nightly", "head": f"revision:{sha(71)}"}

    assert get("compare/", base="history:main", **query)["overall"] == "same"
    assert get("compare/", base="revision:main", **query)["base"]["revision"][
        "sha"
    ] == sha(42)
    store(repeats(commit(41), tps=[1000.0, 1001.0, 999.0], job="late"))
    before = get("compare/", campaign="nightly", head=f"revision:{sha(40)}")
    assert before["base"]["revision"]["sha"] == sha(29)
