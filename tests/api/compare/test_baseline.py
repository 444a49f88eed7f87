"""What a commit is compared with: by its parents, on many branches, and never with itself."""

import pytest

from runs.models import Revision
from tests.histories import commit, repeats, sha, store

pytestmark = pytest.mark.django_db

STEADY = [1000.0, 1002.0, 998.0]


def measured(number, ref="main", *, parents=(), tps=1.0):
    """A commit with three runs; its values are 1,000 times `tps`."""
    revision = commit(number, ref=ref, parents=[sha(each) for each in parents])
    store(repeats(revision, tps=[value * tps for value in STEADY]))


@pytest.fixture
def base_of(get):
    """The sha of the base that a commit is compared with, and the word for the whole."""

    def asked(head, base="revision:main"):
        query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
        body = get("compare/", **query)
        return (body["base"] and body["base"]["revision"]["sha"], body["overall"])

    return asked


def test_the_first_commit_of_a_campaign_is_its_baseline(get, base_of):
    measured(1)

    assert base_of(1) == (None, "baseline_made")
    body = get("compare/", campaign="nightly", base="revision:main", head=f"revision:{sha(1)}")
    assert body["exit_code"] == 0


def test_a_commit_on_main_is_compared_with_its_parent_and_never_with_itself(base_of):
    measured(1, tps=1.0)
    measured(2, parents=[1], tps=0.8)

    assert base_of(2) == (sha(1), "slower")


def test_a_branch_is_compared_with_where_it_left_main(base_of):
    measured(1)
    measured(2, parents=[1], tps=0.8)
    measured(3, "feature", parents=[1])

    assert base_of(3) == (sha(1), "same")


def test_parents_that_were_not_measured_here_are_walked_over(base_of):
    measured(1)
    Revision.objects.create(
        project=Revision.objects.get(sha=sha(1)).project, sha=sha(2), parents=[sha(1)]
    )
    measured(4, tps=0.8)
    measured(3, "feature", parents=[2])

    assert base_of(3)[0] == sha(1)


def test_a_fast_forwarded_commit_is_on_both_branches(base_of):
    measured(1)
    measured(2, "feature", parents=[1])
    store(repeats(commit(2, ref="main", parents=[sha(1)]), tps=STEADY))
    measured(3, parents=[2])

    assert base_of(3)[0] == sha(2)


def test_the_same_commit_by_its_sha_is_refused(get):
    measured(1)
    measured(2)

    query = {"base": f"revision:{sha(2)}", "head": f"revision:{sha(2)}"}
    problem = get("compare/", 400, campaign="nightly", **query)
    assert problem["errors"][0]["code"] == "same_commit"
