"""A suite of series that the same jobs measure: what all do together is no series' change."""

import html
import math
import re
from random import Random

import pytest
from django.contrib.auth.models import User

from runs.access.services import projects
from runs.histories.selectors import causes, histories
from runs.histories.services import changes, mails
from runs.models import Campaign, Change, HardwareProfile, Run
from tests import factories
from tests.history_points import history, sha, store

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
        store(
            history(
                levels, of={"clients": number}, seed=100 * seed + number, first=first
            )
        )


def find():
    campaign = Campaign.objects.get(slug="nightly")
    changes.find(campaign_id=campaign.pk)


def standing():
    kept = (
        Change.objects.filter(kind__in=Change.STEPS)
        .exclude(decision="refuted")
        .order_by("pk")
    )
    return [
        (each.cell.levels["clients"], int(each.cell.revision.sha, 16)) for each in kept
    ]


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

    (cause,) = causes.find_causes(histories.all_changes())
    assert {change.kind for change in cause.changes} == {"machine"}
    assert len(cause.changes) == SERIES
    assert "7 of 7 conditions" in cause.lines[0]
    assert "nothing known of the machine changed" in cause.lines[-1]
    command = "benchlab-upload --campaign nightly --scenario tpcb-like --compare main --pair base="
    assert command in cause.lines[-1]


def moved(share, hardware=("", ""), *, number=SERIES, at=20, noise=0.01, seed=1):
    """Series that lose the same share from a commit on, on the machine named there."""
    for each in range(number):
        for first, last, factor, machine in (
            (0, at, 1.0, hardware[0]),
            (at, COMMITS, 1 - share, hardware[1]),
        ):
            levels = [1000.0 * (each + 1) * factor] * (last - first)
            kept = {"of": {"clients": each}, "hardware": machine, "noise": noise}
            store(history(levels, seed=100 * seed + each + first, first=first, **kept))


@pytest.mark.parametrize("seed", range(4))
def test_a_small_move_of_most_series_is_one_item_though_each_alone_would_place_it_elsewhere(
    seed,
):
    moved(0.06, noise=0.025, seed=seed)

    find()

    found = causes.find_causes(histories.all_changes().exclude(decision="refuted"))
    assert [cause.is_machine for cause in found] == [True]
    assert abs(int(found[0].sha, 16) - 20) <= 2


def test_what_changed_on_the_machine_is_named_everywhere(get, mailoutbox, settings):
    settings.SENDS_MAIL = True
    moved(0.2, ("Xeon A", "Xeon B"))

    find()

    (cause,) = causes.find_causes(histories.all_changes())
    assert cause.lines[-1] == "The machine changed: CPU model: Xeon A → Xeon B."
    told = get("changes/", kind="machine")["results"]
    assert len(told) == SERIES
    fact = {
        "kind": "hardware",
        "name": "cpu_model",
        "before": ["Xeon A"],
        "after": ["Xeon B"],
    }
    assert told[0]["facts"] == [fact]
    user = User.objects.create_user("ichiro", email="ichiro@example.org")
    projects.default().memberships.create(user=user, role="viewer")
    mails.send()
    assert "CPU model: Xeon A → Xeon B" in mailoutbox[0].body


def test_one_series_whose_machine_changed_blames_no_commit(client):
    moved(0.1, ("Xeon A", "Xeon B"), number=1)

    find()

    assert [change.kind for change in Change.objects.all()] == ["machine"]
    assert "CPU model: Xeon A → Xeon B" in client.get("/changes/").content.decode()


def test_jobs_that_land_on_two_machines_by_turns_change_no_machine():
    for at in range(COMMITS):
        level = [1000.0 * (0.9 if at >= 20 else 1.0)]
        store(history(level, first=at, seed=at, hardware=f"Xeon {'AB'[at % 2]}"))

    find()

    assert [change.kind for change in Change.objects.all()] == ["step"]


def test_the_parent_is_measured_again_where_the_machine_is_a_server(client, log_in_as):
    moved(0.2)
    machine = HardwareProfile.objects.create(
        fingerprint="f", cpu_model="Xeon A", threads=8
    )
    factories.server("lab", hardware=machine)
    Run.objects.update(hardware=machine)

    find()

    log_in_as("maintainer")
    page = client.get("/changes/").content.decode()
    (address,) = re.findall(r'href="([^"]*bisections/new/[^"]*)"', page)
    form = client.get(html.unescape(address)).content.decode()
    assert f'value="revision:{sha(19)}"' in form
    assert f'value="revision:{sha(20)}"' in form
    assert 'value="lab" selected' in form


def test_the_api_decides_on_a_cause(client, bearer):
    moved(0.2)
    find()
    first = Change.objects.first()

    for of, number in (("change", 1), ("cause", SERIES)):
        body = {"decision": "confirmed", "of": of}
        address = f"/api/v1/changes/{first.pk}/decision/"
        answer = client.post(
            address, body, content_type="application/json", headers=bearer
        )
        assert answer.status_code == 200, answer.content
        assert Change.objects.filter(decision="confirmed").count() == number
        Change.objects.filter(pk=first.pk).update(decision="open", decided_at=None)


def test_what_half_of_the_series_lose_is_a_commits():
    for number in range(SERIES):
        levels = [
            1000 * (0.9 if at >= 20 and number < 3 else 1) for at in range(COMMITS)
        ]
        store(history(levels, of={"clients": number}, seed=number))

    find()

    assert sorted(standing()) == [(0, 20), (1, 20), (2, 20)]
    (cause,) = causes.find_causes(histories.all_changes())
    assert not cause.is_machine


def test_commit_by_commit_the_list_is_that_of_all_at_once():
    hosts = scattered(5)
    for at in range(COMMITS):
        suite(hosts[at : at + 1], seed=at, loss=(3, 20), first=at)
        if at >= 12:  # with fewer there is nothing to find
            find()

    assert [series for series, _at in standing()] == [3]
    assert abs(standing()[0][1] - 20) <= 1
