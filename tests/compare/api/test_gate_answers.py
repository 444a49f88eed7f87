"""An answer that a CI job was given stays: nothing later changes it, and what was told is kept."""

from random import Random

import pytest

from runs.histories.services import changes
from runs.models import GateAnswer, RevisionRef, Run
from tests.each import examples
from tests.history_points import commit, history, noisy, repeats, sha, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(client, make_token):
    """What a token with these scopes is told about a commit against the last points of main."""

    def asked(head, base="history:main", form="json", scopes=("read", "upload")):
        query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
        header = {"Authorization": f"Bearer {make_token(*scopes)}"}
        found = client.get("/api/v1/compare/", query | {"format": form}, headers=header)
        assert found.status_code == 200, found.content
        return found.json() if form == "json" else found.content.decode()

    return asked


def on_main(number=12):
    store(history([1000.0] * number, noise=0.005, seed=3))


def slow(number=50):
    store(repeats(commit(number, "slow"), tps=[900.0, 903.0, 897.0], job="red"))


def test_what_a_job_was_told_is_kept_with_its_evidence(ask):
    on_main()
    slow()

    assert ask(50)["overall"] == "slower"
    ask(50, form="md")

    kept = GateAnswer.objects.get()
    runs = Run.objects.filter(cell__revision__sha=sha(50))
    assert (kept.head.sha, kept.base, kept.overall, kept.rules) == (
        sha(50),
        "history:main",
        "slower",
        kept.table["rows"][0]["comparison"]["rules"],
    )
    assert kept.runs.endswith(f"-{max(runs.values_list('pk', flat=True))}")
    assert kept.table["rows"][0]["head"]["n"] == 3


def test_what_a_reader_is_told_is_not_kept(ask, client):
    on_main()
    slow()

    ask(50, scopes=("read",))
    client.get(
        "/api/v1/compare/",
        {"campaign": "nightly", "base": "history:main", "head": f"revision:{sha(50)}"},
    )

    assert not GateAnswer.objects.exists()


def test_where_today_says_otherwise_answer_comment_and_page_say_both(ask, client):
    on_main()
    slow()
    ask(50)
    store(repeats(commit(50, "slow"), tps=[1003.0, 1001.0, 999.0] * 5, job="again"))

    today = ask(50)
    (told,) = today["told_before"]
    assert (today["overall"], today["exit_code"]) != ("slower", 1)
    assert (told["overall"], told["exit_code"], told["because"]) == (
        "slower",
        1,
        "runs",
    )
    assert "slower" in told["message"]
    assert "Runs were added" in ask(50, form="md")
    pair = f"s=nightly~revision%3D{sha(11)}&s=nightly~revision%3D{sha(50)}"
    page = client.get(f"/compare/?{pair}").content.decode()
    assert f"CI was told of {sha(50)}" in page
    assert GateAnswer.objects.count() == 2


def test_an_answer_by_older_rules_says_that_the_rules_are_newer(ask):
    on_main()
    slow()
    ask(50)
    GateAnswer.objects.update(overall="undecided", rules=1)

    assert [each["because"] for each in ask(50)["told_before"]] == ["rules"]


def other_uploads(random, number):
    """Something that is no run of the pair: later, foreign, or of commits of the history."""
    level = random.choice([500.0, 1000.0, 1500.0])
    old, new = random.randrange(11), 60 + number
    runs = noisy(level, noise=0.05, random=random)
    return [
        repeats(commit(new), tps=runs, job=f"later {number}"),
        repeats(commit(new, "slow"), tps=runs),
        repeats(commit(old), tps=runs, job=f"again {number}"),
        repeats(commit(old), tps=runs, hardware="another CPU", job=f"other {number}"),
        repeats(commit(100 + number), campaign="other", tps=runs),
        repeats(commit(new), latency=runs, job=f"more {number}"),
        repeats(commit(new), tps=runs, levels={"clients": 1}, job=f"one {number}"),
        # What is dated before the head and arrives after it.
        repeats(commit(13 + number), tps=runs, job=f"late {number}"),
        # A commit of a branch that was measured before, and is on main now.
        repeats(commit(45, "main"), tps=runs, job=f"merged {number}"),
    ][random.randrange(9)]


@pytest.mark.parametrize("seed", range(examples(6)))
def test_no_later_and_no_foreign_upload_changes_an_answer(ask, seed):
    random = Random(seed)
    on_main()
    store(repeats(commit(45, "feature"), tps=[700.0, 710.0, 705.0], job="feature"))
    level = random.choice([900.0, 960.0, 1000.0])
    store(repeats(commit(50, "slow"), tps=noisy(level, random=random), job="red"))
    campaign = Run.objects.first().campaign_id
    bases = ("history:main", f"revision:{sha(11)}")
    before = [ask(50, base) for base in bases]

    for number in range(12):
        store(other_uploads(random, number))
        changes.find(campaign_id=campaign)
        assert [ask(50, base) for base in bases] == before, number
    assert all(not each["told_before"] for each in before)
    assert RevisionRef.objects.count() <= 1
