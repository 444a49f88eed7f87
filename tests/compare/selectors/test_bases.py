"""A commit is judged by what it is based on: branches of many shapes, and every door alike."""

from dataclasses import replace
from random import Random

import pytest

from runs.cells.selectors import revisions
from runs.models import Campaign, Revision
from runs.uploads.services import GivenRevision
from tests.each import examples
from tests.history_points import commit, left_at, noisy, repeats, sha, store

pytestmark = pytest.mark.django_db


def measured(number, ref="main", *, parents=(), level=1000.0, **fields):
    """A commit with three runs of a job of its own."""
    made = commit(number, ref, [sha(parent) for parent in parents], **fields)
    values = noisy(level, noise=0.003, random=Random(number))
    store(repeats(made, tps=values, job=f"job {number}"))


def unmeasured(number, *, parents=()):
    """A commit that is known without a run of this campaign."""
    project = Revision.objects.first().project
    Revision.objects.create(
        project=project, sha=sha(number), parents=[sha(parent) for parent in parents]
    )


def line(head, ref="main", number=10):
    """The numbers of the commits that a head is compared with, and whether time tells them."""
    found = revisions.line_before(
        Campaign.objects.get(slug="nightly"),
        Revision.objects.get(sha=sha(head)),
        ref,
        number,
    )
    return [int(revision.sha, 16) for revision in found.revisions], found.is_by_time


def main(numbers, *, change=None, level=800.0):
    """Commits on main, one based on the other; from `change` on at another level."""
    for number in numbers:
        parents = [number - 1] if number > min(numbers) else []
        is_changed = change is not None and number >= change
        measured(number, parents=parents, level=level if is_changed else 1000.0)


@pytest.fixture
def ask(get):
    def asked(head, base="history:main"):
        query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
        return get("compare/", **query)

    return asked


@pytest.mark.parametrize("level", [800.0, 1250.0])
@pytest.mark.parametrize("base", ["history:main", "revision:main"])
@pytest.mark.parametrize("left_at", [3, 7])
def test_a_branch_is_not_judged_by_what_it_lacks(ask, base, left_at, level):
    """Stale branches, from before a loss and from before a gain of main."""
    main(range(1, 13), change=9, level=level)
    measured(20, "topic", parents=[left_at])

    body = ask(20, base)

    assert body["exit_code"] == 0
    assert body["overall"] in ("same", "no_sign")
    assert body["notes"] == []


@pytest.mark.parametrize("digits", [8, 40])
def test_parents_by_more_or_fewer_digits_lead_to_the_same_base(ask, digits):
    def spelled(number):
        return f"{number:08x}{'f' * 32}"[:digits]

    for number in range(1, 13):
        made = GivenRevision(
            f"{number:08x}ffff",
            ref="main",
            committed_at=commit(number).committed_at,
            parents=(spelled(number - 1),) if number > 1 else (),
        )
        level = 1000.0 if number < 9 else 800.0
        values = noisy(level, noise=0.003, random=Random(number))
        store(repeats(made, tps=values, job=f"job {number}"))
    made = replace(commit(20, "topic"), parents=(spelled(7),))
    values = noisy(1000.0, noise=0.003, random=Random(20))
    store(repeats(made, tps=values, job="job 20"))

    body = ask(20)

    assert (body["exit_code"], body["notes"]) == (0, [])
    found = revisions.line_before(
        Campaign.objects.get(slug="nightly"),
        Revision.objects.get(sha=sha(20)),
        "main",
        10,
    )
    assert [int(one.sha[:8], 16) for one in found.revisions] == [7, 6, 5, 4, 3, 2, 1]


def test_a_rebased_branch_has_what_main_has(ask):
    main(range(1, 13), change=9)
    measured(20, "topic", parents=[7])
    measured(21, "topic", parents=[12], level=800.0)

    assert (ask(20)["exit_code"], ask(21)["exit_code"]) == (0, 0)
    assert line(21)[0][0] == 12


def test_a_commit_that_merges_main_is_judged_by_both(ask):
    main(range(1, 13), change=9)
    measured(20, "topic", parents=[7])
    measured(21, "topic", parents=[20, 12], level=800.0)

    assert ask(21)["exit_code"] == 0
    assert line(21)[0][0] == 12


def test_a_branch_of_a_branch_leads_to_main(ask):
    main(range(1, 13), change=9)
    measured(20, "topic", parents=[6])
    measured(21, "further", parents=[20])
    unmeasured(22, parents=[21])
    measured(23, "further", parents=[22])

    assert ask(23)["exit_code"] == 0
    assert line(23) == ([6, 5, 4, 3, 2, 1], False)


def test_a_fork_is_judged_by_where_it_left(ask):
    main(range(1, 13), change=9)
    measured(20, "fork:main", parents=[4])

    assert ask(20)["exit_code"] == 0
    assert line(20) == ([4, 3, 2, 1], False)


def test_commits_after_the_one_it_left_are_no_base_though_that_was_not_measured(ask):
    """Main's measured commits are all newer than where the branch left it: there is no base."""
    measured(1)
    Revision.objects.filter(sha=sha(1)).update(ref="other")
    unmeasured(4, parents=[1])
    unmeasured(5, parents=[4])
    for number in range(6, 9):
        measured(number, parents=[number - 1], level=800.0)
    Revision.objects.filter(sha=sha(4)).update(parents=[])
    measured(20, "topic", parents=[4])

    assert line(20) == ([], False)
    assert ask(20)["overall"] == "baseline_made"


def test_without_parents_the_time_tells_and_the_answer_says_so(ask):
    for number in range(1, 6):
        measured(number)
    measured(20, "topic")

    assert line(20) == ([5, 4, 3, 2, 1], True)
    (note,) = ask(20)["notes"]
    assert "found by its time" in note


@pytest.mark.parametrize("is_measured", [True, False])
@pytest.mark.parametrize("has_parents", [True, False])
def test_a_branch_whose_own_commits_are_not_measured_is_judged_by_its_merge_base(
    ask, has_parents, is_measured
):
    """Its parents lead nowhere, and neither do those of main, which is measured now and then."""
    for number in range(1, 13):
        if number != 5 or is_measured:
            parents = [number - 1] if has_parents and number > 1 else []
            measured(number, parents=parents, level=800.0 if number >= 9 else 1000.0)
    measured(20, "topic", parents=[19], merge_base=left_at(5))

    numbers, is_by_time = line(20)

    assert numbers == [5, 4, 3, 2, 1][0 if is_measured else 1 :]
    assert not is_by_time
    assert ask(20)["exit_code"] == 0


def test_what_follows_a_merge_base_is_no_base_though_nobody_knows_its_date(ask):
    main(range(5, 13), change=9)
    Revision.objects.filter(sha=sha(5)).update(ref="other")
    left = left_at(5)
    measured(20, "topic", parents=[19], merge_base=type(left)(left.sha))

    assert line(20) == ([], False)


def test_before_the_last_known_parent_the_time_tells(ask):
    for number in range(1, 6):
        measured(number)
    measured(6, parents=[5])
    measured(20, "topic", parents=[6])

    assert line(20) == ([6, 5, 4, 3, 2, 1], False)


def graph(seed):
    """A random graph of commits on main and on branches: parents by number, and refs."""
    random = Random(seed)
    parents, refs = {1: []}, {1: "main"}
    tips = {"main": 1}
    for number in range(2, 16):
        act = random.choice(
            ["main", "main", "branch", "grow", "update", "merge", "push"]
        )
        branches = [ref for ref in tips if ref != "main"]
        ref, of = "main", [tips["main"]]
        if act == "branch" or (act in ("grow", "update", "push") and not branches):
            ref, of = f"topic{number}", [random.randrange(1, number)]
        elif act == "grow":
            ref = random.choice(branches)
            of = [tips[ref]]
        elif act == "update":
            ref = random.choice(branches)
            of = [tips[ref], tips["main"]]
        elif act == "push":
            ref = random.choice(branches)
            of = [tips["main"]]
        elif act == "merge" and branches:
            of = [tips["main"], tips[random.choice(branches)]]
        parents[number], refs[number] = sorted(set(of), reverse=True), ref
        tips[ref] = number
    return parents, refs


def ancestors_of(number, parents):
    found, waiting = set(), list(parents[number])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += parents[one]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_every_base_of_a_random_graph_is_an_ancestor(seed):
    parents, refs = graph(seed)
    random = Random(seed)
    for number, of in parents.items():
        if number > 1 and random.random() < 0.15:
            unmeasured(number, parents=of)
        else:
            measured(number, refs[number], parents=of)
    shas = set(
        Revision.objects.filter(cells__isnull=False).values_list("sha", flat=True)
    )
    for head in random.sample(range(2, 16), examples(5)):
        if sha(head) not in shas:
            continue
        numbers, is_by_time = line(head, number=20)
        on_main = {
            number
            for number in ancestors_of(head, parents)
            if refs[number] == "main" and sha(number) in shas
        }
        assert set(numbers) <= ancestors_of(head, parents), (seed, head)
        assert set(numbers) == on_main, (seed, head)
        assert not is_by_time


@pytest.mark.parametrize("seed", range(30))
def test_of_branches_that_are_measured_now_and_then_the_base_is_an_ancestor(seed):
    """What is not measured is not known; branches say where they left main."""
    parents, refs = graph(seed)
    random = Random(seed)
    shas = {1}
    measured(1)
    for number in range(2, 16):
        if random.random() < 0.4:
            continue
        shas.add(number)
        on_main = [one for one in ancestors_of(number, parents) if refs[one] == "main"]
        fields = {} if refs[number] == "main" else {"merge_base": left_at(max(on_main))}
        measured(number, refs[number], parents=parents[number], **fields)
    for head in random.sample(sorted(shas - {1}), min(examples(5), len(shas) - 1)):
        numbers, is_by_time = line(head, number=20)
        on_main = {
            one for one in ancestors_of(head, parents) & shas if refs[one] == "main"
        }
        assert set(numbers) <= on_main, (seed, head)
        assert numbers[0] == max(on_main), (seed, head)
        assert not (is_by_time and refs[head] != "main")


def test_badge_gate_and_page_have_one_base(client, ask):
    main(range(1, 13), change=9)

    body = ask(12)
    badge = client.get("/campaigns/nightly/badge.svg").content.decode()
    of_history = client.get(
        "/campaigns/nightly/badge.svg?base=history:main"
    ).content.decode()

    assert body["exit_code"] == 0
    assert badge == of_history
    assert ("the same" if body["overall"] == "same" else "no sign of a change") in badge
