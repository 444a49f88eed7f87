"""The same uploads end with the same list, in whatever order they came."""

from itertools import chain
from random import Random

import pytest

from runs.histories.services import changes
from runs.models import Campaign, Change
from tests.history_points import commit, noisy, repeats, store

pytestmark = pytest.mark.django_db

COMMITS = 36


def uploads(seed, campaign):
    """One job a commit: two series, one with a step, a step back and a stray job."""
    random = Random(seed)
    begin, back = random.randrange(10, 14), random.randrange(22, 27)
    made = []
    for number in range(COMMITS):
        level = (
            1000 * (0.9 if begin <= number < back else 1) * (0.8 if number == 5 else 1)
        )
        of = {"campaign": campaign, "job": f"job {number}"}
        runs = repeats(commit(number), tps=noisy(level, random=random), **of)
        runs += repeats(
            commit(number), tps=noisy(500, random=random), levels={"clients": 1}, **of
        )
        made.append(runs)
    return made


def listed(campaign, batches):
    """What stands after these batches, each analysed when it has arrived."""
    for batch in batches:
        store(*batch)
        changes.find(campaign_id=Campaign.objects.get(slug=campaign).pk)
    standing = Change.objects.filter(campaign__slug=campaign, kind__in=Change.STEPS)
    return sorted(
        (
            each.cell.levels["clients"],
            each.cell.revision.sha,
            round(each.ratio, 6),
            each.earliest,
        )
        for each in standing.exclude(decision="refuted")
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_in_one_batch_one_by_one_and_in_random_order(seed):
    shuffled = Random(seed).sample(uploads(seed, "shuffled"), COMMITS)

    batch = listed("batch", [list(chain.from_iterable(uploads(seed, "batch")))])

    assert len(batch) == 2
    assert listed("in-order", [[own] for own in uploads(seed, "in-order")]) == batch
    assert listed("shuffled", [[own] for own in shuffled]) == batch
