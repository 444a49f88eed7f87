"""What others take of a server: when it is asked, who waits for it, and what pages say of it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.campaigns.services import repeats
from runs.execution.errors import HostUnreachable
from runs.execution.machine.busy import Busy
from runs.models import Campaign, HourlyLoad, Lease, Run, Server
from runs.queue.services import leases, loads
from runs.servers.selectors import fitness
from runs.shared.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db

COMPILING = Busy(0.9, (("cc1plus", 0.61), ("postgres", 0.24)))


@pytest.fixture
def server():
    made = factories.server(
        "rack", name="Rack", versions=["16.14"], checked_at=timezone.now()
    )
    Lease.objects.get_or_create(server=made)
    return made


def asked(server, **ago):
    Server.objects.filter(pk=server.pk).update(
        load_at=timezone.now() - timedelta(**ago)
    )
    return server.pk in loads.due().values_list("pk", flat=True)


def queued(server, **fields):
    campaign = factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=1
    )
    Campaign.objects.filter(pk=campaign.pk).update(**fields)
    return campaign


def quiet(server, **ago):
    Server.objects.filter(pk=server.pk).update(
        quiet_since=timezone.now() - timedelta(**ago)
    )


def claim(server):
    return leases.claim(server_id=server.pk, holder="worker")


def test_an_idle_server_is_asked_every_ten_minutes_and_each_minute_where_runs_wait_for_it(
    server,
):
    assert loads.due().exists()
    assert [asked(server, minutes=minutes) for minutes in (2, 11)] == [False, True]
    queued(server, waits_for_quiet=True)
    assert [asked(server, seconds=seconds) for seconds in (30, 90)] == [False, True]


def test_a_server_with_a_run_is_not_asked(server):
    queued(server)
    assert claim(server)
    assert not asked(server, hours=1)


def test_runs_wait_until_the_machine_was_free_for_a_while(server):
    queued(server, waits_for_quiet=True)
    assert claim(server) is None
    quiet(server, seconds=30)
    assert claim(server) is None
    quiet(server, minutes=5)
    assert claim(server)


def test_others_do_not_wait(server):
    queued(server)
    loads.keep(server=server, found=COMPILING)
    assert claim(server)


def test_free_is_since_the_first_look_that_found_it_so(server):
    loads.keep(server=server, found=Busy(0.02))
    server.refresh_from_db()
    since = server.quiet_since
    loads.keep(server=server, found=Busy(0.04))
    server.refresh_from_db()
    assert server.quiet_since == since
    loads.keep(server=server, found=COMPILING)
    server.refresh_from_db()
    assert server.quiet_since is None


def test_each_hour_has_the_mean_and_the_highest_of_its_looks(server, monkeypatch):
    begin = timezone.now().replace(minute=0)
    for minute, share in ((0, 0.02), (10, 0.3), (70, 0.1)):
        moment = begin + timedelta(minutes=minute)
        monkeypatch.setattr(timezone, "now", lambda moment=moment: moment)
        loads.keep(server=server, found=Busy(share))
    first, second = server.hourly_loads.order_by("hour")
    assert (first.looks, first.share, first.highest) == (2, pytest.approx(0.16), 0.3)
    assert (second.looks, second.share, second.highest) == (1, 0.1, 0.1)

    # Two weeks later only what is younger is left: a server never has more rows than hours.
    later = begin + HourlyLoad.KEPT + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    loads.keep(server=server, found=Busy(0.0))
    hours = list(server.hourly_loads.order_by("hour").values_list("share", flat=True))
    assert hours == [0.1, 0.0]


def test_a_look_that_fails_leaves_nothing_of_the_last_one(server, monkeypatch):
    loads.keep(server=server, found=Busy(0.02))
    monkeypatch.setattr(loads.logins, "ask", unanswered)
    monkeypatch.setattr(loads.logins, "way_to", lambda _server: ())
    loads.look(server_id=server.pk)
    server.refresh_from_db()
    assert (server.load_share, server.quiet_since) == (None, None)
    assert server.load_at is not None


def unanswered(question, _server):
    question.close()
    raise HostUnreachable("Nobody answers.")


def invalid_runs(server, number=3):
    campaign = factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=number
    )
    campaign.runs.update(
        state=Run.State.WITHDRAWN,
        code=Run.Validity.INVALID,
        validity=Run.Validity.INVALID,
        certificate={"is_curable": True},
        plan={},
    )
    campaign.state = Campaign.State.FINISHED
    campaign.save()
    return campaign


def test_invalid_runs_are_measured_again_when_the_machine_is_free(server, monkeypatch):
    campaign = invalid_runs(server)
    monkeypatch.setattr("runs.queue.services.plans.copied", lambda run: run.plan)
    assert repeats.number_to_await(campaign) == 3
    assert repeats.await_quiet(campaign=campaign) == 3
    assert campaign.waits_for_quiet
    assert campaign.runs.filter(state=Run.State.QUEUED).count() == 3
    assert claim(server) is None
    quiet(server, minutes=5)
    assert claim(server)
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.FINISHED)
    with pytest.raises(ServiceError) as refused:
        repeats.await_quiet(campaign=campaign)
    assert refused.value.code == "nothing_to_repeat"


def answer(server):
    return fitness.judge_servers([Server.objects.get(pk=server.pk)])[0]


# What is true of the server, and the beginning of the answer.
ANSWERS = {
    "refused": (
        {"state": "refused", "problem": "No key."},
        "cannot",
        "Rack cannot measure: No key.",
    ),
    "maintained": (
        {"maintenance_since": timezone.now()},
        "cannot",
        "Rack measures nothing",
    ),
    "to be cleaned up": ({"needs_sweep": True}, "cannot", "Rack cannot measure yet"),
    "full": ({"free_bytes": 2**20}, "cannot", "Rack cannot measure: 1 MB are free"),
    "busy": (
        {"load_share": 0.9},
        "cannot",
        "Rack cannot measure now: other programs take 90 %",
    ),
    "quiet": (
        {"load_share": 0.012},
        "can",
        "Rack can measure: other programs take 1 %",
    ),
    "asked long ago": (
        {"load_share": 0.9, "load_at": timezone.now() - timedelta(hours=3)},
        "unknown",
        "Rack is ready; its load was not asked",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_one_sentence_says_whether_a_server_can_measure(case, server):
    fields, can, beginning = ANSWERS[case]
    runs = factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=2
    ).runs
    runs.update(state=Run.State.FINISHED, validity="valid", origin="executed")
    Server.objects.filter(pk=server.pk).update(**({"load_at": timezone.now()} | fields))
    found = answer(server)
    assert (found.can, found.sentence[: len(beginning)]) == (can, beginning)
    assert [certificate.judgement for certificate in found.certificates] == [
        "valid",
        "valid",
    ]


def test_a_server_whose_runs_are_mostly_invalid_can_hardly_measure(server):
    invalid_runs(server, number=12)
    loads.keep(server=server, found=Busy(0.01))
    found = answer(server)
    assert (found.can, len(found.certificates)) == ("doubtful", fitness.NEWEST)
    assert "10 of its last 10 runs are invalid" in found.sentence


def test_the_servers_page_and_the_first_page_answer_it_first(server, admin_client):
    invalid_runs(server)
    Server.objects.filter(pk=server.pk).update(load_at=timezone.now())
    loads.keep(server=server, found=COMPILING)
    page = admin_client.get("/servers/rack/").content.decode()
    sentence = "Rack cannot measure now: other programs take 90 % of its processors."
    assert sentence in page
    assert "cc1plus 61 %, postgres 24 %" in page
    assert page.count("dots__dot--invalid") == 4
    assert page.index(sentence) < page.index("PostgreSQL installations")
    assert sentence in admin_client.get("/").content.decode()
    japanese = admin_client.get("/servers/rack/", headers={"Accept-Language": "ja"})
    assert "Rack は今は測定できません" in japanese.content.decode()
