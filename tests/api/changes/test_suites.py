"""A suite of series that the same jobs measure: what all do together is no series' change."""

import math
from random import Random

import pytest

from runs.models import Campaign, Change
from runs.selectors.histories import causes, histories
from runs.services.changes import changes
from tests.histories import history, store

pytestmark = pytest.mark.django_db

SERIES, COMMITS = 7, 30


def suite(hosts, *, seed=1, loss=(), first=0):
    """Series whose jobs have these hosts' speed; `loss` is (series, commit) of a loss of 10 %."""
    for number in range(SERIES):
        levels = [
            1000
            * (number + 1)
            * host
            * (0.9 if loss and loss[0] == number and at >= loss[1] else 1)
            for at, host in enumerate(hosts, start=first)
        ]
        store(history(levels, of={"clients": number}, seed=100 * seed + number, first=first))


def find():
    campaign = Campaign.objects.get(slug="nightly")
    changes.find(campaign_id=campaign.pk)


def standing():
    kept = Change.objects.filter(kind="step").exclude(decision="refuted").order_by("pk")
    return [(each.cell.levels["clients"], int(each.cell.revision.sha, 16)) for each in kept]


def scattered(seed):
    random = Random(seed)
    return [math.exp(random.gauss(0, 0.05)) for _job in range(COMMITS)]


@pytest.mark.parametrize("seed", range(3))
def test_hosts_that_differ_blame_no_commit_and_hide_no_loss(seed):
    suite(scattered(seed), seed=seed, loss=(3, 20))

    find()

    assert [series for series, _at in standing()] == [3]
    assert abs(standing()[0][1] - 20) <= 1


def test_three_jobs_on_a_slow_host_are_no_change():
    suite([0.8 if at in (15, 16, 17) else 1.0 for at in range(COMMITS)])

    find()

    assert standing() == []


def test_a_slower_machine_for_good_is_one_item_that_says_so():
    suite([1.0 if at < 20 else 0.8 for at in range(COMMITS)])

    find()

    (cause,) = causes.of(histories.all_changes())
    assert len(cause.changes) == SERIES
    assert "7 of 7 conditions" in cause.lines[0]
    assert cause.lines[-1].startswith("Most series moved together: the machine, or this commit.")


def test_what_half_of_the_series_lose_is_a_commits():
    for number in range(SERIES):
        levels = [1000 * (0.9 if at >= 20 and number < 3 else 1) for at in range(COMMITS)]
        store(history(levels, of={"clients": number}, seed=number))

    find()

    assert sorted(standing()) == [(0, 20), (1, 20), (2, 20)]
    (cause,) = causes.of(histories.all_changes())
    assert not cause.is_machine


def test_commit_by_commit_the_list_is_that_of_all_at_once():
    hosts = scattered(5)
    for at in range(COMMITS):
        suite(hosts[at : at + 1], seed=at, loss=(3, 20), first=at)
        find()

    assert [series for series, _at in standing()] == [3]
    assert abs(standing()[0][1] - 20) <= 1
