"""Mails go to a server that may be slow: nothing else waits for them, and none is lost."""

import socket
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone

from runs.access.services import projects
from runs.histories.services import mails
from runs.histories.services import missing_uploads as watchdog
from runs.models import Campaign
from tests.history_points import commit, repeats, store


@pytest.fixture
def mailing(settings, transactional_db, django_user_model):
    settings.SENDS_MAIL = True
    project = projects.default()
    project.members.add(
        django_user_model.objects.create_user("ichiro", "ichiro@example.org")
    )


@pytest.fixture
def absent(mailing):
    """A campaign whose missing uploads were reported."""
    store(repeats(commit(1), tps=[1000.0]))
    campaign = Campaign.objects.get()
    campaign.runs.update(queued_at=timezone.now() - timedelta(days=2))
    watchdog.expect(campaign=campaign, every=timedelta(days=1))
    watchdog.look()
    return campaign


@pytest.fixture
def swallowing(settings):
    """A mail server that takes connections and never says a word, until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.getsockname()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_TIMEOUT = 10
        yield server


@contextmanager
def sending(server):
    """Another worker, which is in the middle of a mail; its mail server hangs up at the end."""
    sent = []

    def work():
        sent.append(mails.send())
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    caller, _address = server.accept()
    try:
        yield sent
    finally:
        caller.close()
        worker.join(20)


def test_nothing_waits_while_a_mail_server_is_silent(absent, swallowing):
    with sending(swallowing), transaction.atomic():
        assert Campaign.objects.select_for_update(nowait=True).get() == absent


def test_no_transaction_is_open_while_a_mail_server_is_silent(absent, swallowing):
    with sending(swallowing), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL"
            " AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone() == (0,)


def test_what_a_killed_worker_was_mailing_is_mailed_by_another_one_later(absent):
    Campaign.objects.update(mailing_since=timezone.now())
    assert mails.send() == 0

    Campaign.objects.update(mailing_since=timezone.now() - mails.TRY_TAKES)
    assert mails.send() == 1
    assert Campaign.objects.get().mailing_since is None


def test_two_workers_send_nothing_twice_and_what_fails_is_sent_later(
    absent, swallowing, settings
):
    with sending(swallowing) as sent:
        settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
        assert mails.send() == 0
    assert (sent, mail.outbox) == ([0], [])

    assert [mails.send(), mails.send()] == [1, 0]
    assert len(mail.outbox) == 1


def test_an_absence_that_another_worker_has_told_meanwhile_is_told_once(absent):
    Campaign.objects.update(missing_told_at=None)
    seen = watchdog._late()
    assert watchdog.look() == [absent]
    assert [watchdog._tell(campaign) for campaign in seen] == [False]


def test_an_absence_that_is_told_while_another_is_mailed_is_mailed_as_well(
    absent, monkeypatch
):
    def report_another(*_mail):
        Campaign.objects.update(missing_told_at=timezone.now())

    monkeypatch.setattr(mails, "send_mail", report_another)
    assert mails.send() == 1
    monkeypatch.undo()

    assert mails.send() == 1


def test_an_absence_of_long_ago_is_no_news(absent):
    long_ago = timezone.now() - mails.NEWS_FOR - timedelta(minutes=1)
    Campaign.objects.update(missing_told_at=long_ago)
    assert mails.send() == 0
