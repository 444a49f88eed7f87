"""Pages of a campaign of commits: where they are compared, and what is shown once."""

import html
import re

import pytest
from django.urls import reverse

from runs.models import Change, Metric, Run
from tests.history_points import commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db
COMPARE = re.compile(r'href="(/compare/\?[^"]+)"')


def text_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return html.unescape(answer.content.decode())


def sides(page):
    """Of each comparison that a page offers the commits, the baseline first."""
    return [
        tuple(re.findall("revision%3D([0-9a-f]+)", address))
        for address in COMPARE.findall(page)
    ]


def run_of(number):
    return Run.objects.filter(cell__revision__sha=sha(number)).order_by("pk").first()


def test_a_run_of_a_commit_is_compared_with_the_one_before_and_the_newest(client):
    store(history([1000, 900, 1000, 1000]))
    expected = {
        0: [(sha(0), sha(3))],
        1: [(sha(0), sha(1)), (sha(1), sha(3))],
        3: [(sha(2), sha(3))],
    }
    for number, pairs in expected.items():
        page = text_of(client, f"/runs/{run_of(number).pk}/")
        assert sides(page) == pairs
        for address in COMPARE.findall(page):
            compared = text_of(client, address)
            assert "One series has nothing to be compared with" not in compared
    page = text_of(client, f"/runs/{run_of(1).pk}/")
    assert f"Compare this commit with the one before, {sha(0)}" in " ".join(
        page.split()
    )
    (address, _newest) = COMPARE.findall(page)
    assert f"Revision {sha(1)} is " in text_of(client, address)
    assert "slower than" in text_of(client, address)


def test_a_campaign_compares_the_commits_around_its_newest_change(client):
    store(history([1000] * 20 + [800] * 20, noise=0.001))
    run = run_of(20)
    Change.objects.create(
        cell=run.cell,
        run=run,
        metric=Metric.objects.get(name="tps"),
        kind="step",
        ratio=0.8,
        before=1000,
        after=800,
    )
    page = text_of(client, "/campaigns/nightly/")
    assert sides(page)[-1] == (sha(19), sha(20))
    compared = text_of(client, COMPARE.findall(page)[-1])
    assert "slower than" in compared


def test_a_campaign_without_a_change_compares_its_newest_two_commits(client):
    store(history([1000]))
    assert '/compare/?s=nightly"' in text_of(client, "/campaigns/nightly/")
    store(history([1000], first=1))
    assert sides(text_of(client, "/campaigns/nightly/"))[-1] == (sha(0), sha(1))


def test_a_run_without_a_commit_offers_no_comparison(client, finished_campaign):
    page = text_of(client, f"/runs/{finished_campaign.runs.first().pk}/")
    assert not sides(page)
    assert 'href="/compare/?s=finished"' in text_of(client, "/campaigns/finished/")


def test_uploads_have_no_order_of_execution(client, finished_campaign):
    store(history([1000, 1000]))
    uploaded = text_of(client, "/campaigns/nightly/")
    assert "Order of execution" not in uploaded
    assert "0: finished" not in uploaded
    assert "Order of execution" in text_of(client, "/campaigns/finished/")


def test_a_note_is_written_to_each_condition_once(member):
    for clients in (1, 8):
        store(history([1000] * 5, of={"clients": clients}))
    page = text_of(member, reverse("campaign-detail", args=["nightly"]))
    points = re.findall(r'<option value="\d+">([^<]*)</option>', page)
    assert sorted(points) == ["Clients 1", "Clients 8"]


def test_a_branch_is_compared_with_what_it_is_based_on(client):
    store(history([1000, 1000]))
    of_branch = commit(5, ref="feature", parents=[sha(0)])
    store(repeats(of_branch, tps=[900, 905, 910]))
    page = text_of(client, f"/runs/{run_of(5).pk}/")
    assert sides(page)[0] == (sha(0), sha(5))
