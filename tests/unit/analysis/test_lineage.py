"""Commits that a branch has left behind, by random histories with forced pushes and merges."""

from random import Random

import pytest

from runs.analysis.lineage import Commit, left_behind


def grown(random, number):
    """A branch as it was pushed: (sha, parents) of all commits that were ever its, in time."""
    made, line = [("0", ())], ["0"]
    for name in map(str, range(1, number)):
        if len(line) > 4 and random.random() < 0.1:
            del line[-random.randrange(1, 4) :]
        parents = [line[-1]]
        if len(made) > 5 and random.random() < 0.15:
            parents.append(random.choice(made[-5:])[0])
        made.append((name, tuple(dict.fromkeys(parents))))
        line.append(name)
    return made


def ancestors(sha, parents):
    found = {sha}
    for parent in parents[sha]:
        found |= ancestors(parent, parents)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_where_all_commits_are_known_those_left_are_the_others_than_ancestors(seed):
    made = grown(Random(seed), 60)
    known = dict(made)

    left = left_behind(Commit(sha, "main", parents) for sha, parents in made)

    assert left == set(known) - ancestors(made[-1][0], known)


def test_where_commits_were_not_measured_no_ancestor_is_left():
    failures, told = [], 0
    for seed in range(200):
        random = Random(seed)
        made = grown(random, 60)
        own = ancestors(made[-1][0], dict(made))
        measured = [each for each in made[:-1] if random.random() < 0.9] + made[-1:]
        left = left_behind(Commit(sha, "main", parents) for sha, parents in measured)
        told += len(left)
        failures += [(seed, sha) for sha in left & own]

    assert not failures
    assert told > 50


def test_commits_without_parents_and_of_other_branches_stay():
    commits = [
        Commit("1", "main", ()),
        Commit("2", "main", ()),
        Commit("3", "main", ("2",)),
    ]
    assert not left_behind(commits)

    fork = [
        Commit("1", "main", ()),
        Commit("2", "main", ("1",)),
        Commit("f", "fix", ("1",)),
    ]
    assert not left_behind(fork)


def test_a_child_that_a_wrong_clock_dates_before_its_parent_stays():
    commits = [
        Commit("1", "main", ()),
        Commit("3", "main", ("2",)),
        Commit("2", "main", ("1",)),
    ]

    assert not left_behind(commits)
