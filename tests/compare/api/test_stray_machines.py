"""A rerun on another machine: the runs of the machine that both sides have are compared."""

import pytest

from runs.histories.services import changes
from runs.models import Campaign
from tests.history_points import commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db

A, B = "Xeon A", "Xeon B"


def measured(number, level, machine, *, job, ref="main"):
    tps = [level, level * 1.003, level * 0.998]
    store(repeats(commit(number, ref), tps=tps, hardware=machine, job=job))


@pytest.fixture
def ask(get):
    def asked(head, base):
        query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
        found = get("compare/", **query)
        (row,) = found["rows"]
        return found["overall"], [each["code"] for each in row["despite"]], row

    return asked


@pytest.fixture
def main():
    store(history([1000.0] * 12, noise=0.004, hardware=A))


@pytest.mark.parametrize(("level", "word"), [(900.0, "slower"), (1000.0, "same")])
@pytest.mark.parametrize("base", ["history:main", f"revision:{sha(11)}"])
def test_a_head_that_was_first_tried_elsewhere_is_judged_by_its_rerun(
    main, ask, base, level, word
):
    measured(20, 400.0, B, job="first", ref="pr")
    measured(20, level, A, job="rerun", ref="pr")

    overall, despite, row = ask(20, base)

    assert (overall, row["head"]["n"]) == (word, 3)
    assert "other_machines" in despite
    assert row["head_value"] == pytest.approx(level, rel=0.01)


def test_a_stray_run_of_the_base_spoils_neither_it_nor_the_next_commit(main, ask):
    measured(12, 400.0, B, job="first")
    measured(12, 1000.0, A, job="rerun")
    measured(13, 900.0, A, job="next")

    overall, despite, row = ask(13, f"revision:{sha(12)}")
    assert (overall, row["base"]["n"]) == ("slower", 3)
    assert "other_machines" in despite
    assert ask(13, "history:main")[0] == "slower"


def test_sides_that_share_no_machine_are_not_comparable(main, ask):
    measured(20, 400.0, B, job="first", ref="pr")
    measured(20, 410.0, "Xeon C", job="rerun", ref="pr")

    assert ask(20, f"revision:{sha(11)}")[0] == "not_comparable"
    assert ask(20, "history:main")[0] == "not_comparable"


def test_the_page_gives_the_answer_of_the_gate(main, ask, client):
    measured(20, 400.0, B, job="first", ref="pr")
    measured(20, 900.0, A, job="rerun", ref="pr")

    _overall, _despite, row = ask(20, f"revision:{sha(11)}")
    pair = f"s=nightly~revision%3D{sha(11)}&s=nightly~revision%3D{sha(20)}"
    page = client.get(f"/compare/?{pair}").content.decode()
    assert row["size"] in page
    assert "measured one side alone are left out" in page


def test_a_rerun_elsewhere_is_no_change_of_the_history():
    store(history([1000.0] * 30, noise=0.004, hardware=A))
    measured(30, 400.0, B, job="first")
    changes.find(campaign_id=Campaign.objects.get().pk)
    measured(30, 1000.0, A, job="rerun")

    assert changes.find(campaign_id=Campaign.objects.get().pk) == []


def test_what_is_counted_is_judged_without_the_stray_machine_too(main, ask, get):
    for number in range(12):
        store(repeats(commit(number), latency=[0, 1, 0], hardware=A, job=f"n{number}"))
    for machine, counts in ((B, [400, 500, 450]), (A, [0, 1, 0])):
        store(repeats(commit(20, "pr"), latency=counts, hardware=machine, job=machine))

    found = get(
        "compare/",
        campaign="nightly",
        base="history:main",
        head=f"revision:{sha(20)}",
        metric="latency",
    )

    (row,) = found["rows"]
    assert row["head"]["n"] == 3
    assert row["verdict"] != "slower"
