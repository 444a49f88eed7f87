"""What only one of many may do, done by all of them at the same moment."""

import threading

import pytest
from django.contrib.auth.models import User

from runs.access.services import projects
from runs.histories.services import deliveries, webhooks
from runs.models import Membership
from runs.shared.errors import ServiceError
from tests.api.receiver import Receiver
from tests.at_once import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_those_who_use_one_invitation_one_becomes_a_member(monkeypatch):
    maintainer = User.objects.create_user("hanako", is_superuser=True)
    project = projects.create(slug="nightly", is_public=True)
    secret = projects.invite(
        project=project, role="operator", note="", by=maintainer
    ).secret
    users = [User.objects.create_user(f"user{number}") for number in range(4)]
    barrier, refused, opened = (
        threading.Barrier(len(users)),
        [],
        projects.opened_invitation,
    )

    def open_together(**given):
        found = opened(**given)
        barrier.wait(10)
        return found

    def use(user):
        try:
            projects.accept(secret=secret, user=user)
        except ServiceError as error:
            refused.append(error.code)

    # All have read that the invitation is open before one of them uses it.
    monkeypatch.setattr(projects, "opened_invitation", open_together)
    at_once([lambda user=user: use(user) for user in users])

    assert refused == ["invitation_invalid"] * 3
    assert Membership.objects.filter(project=project, user__in=users).count() == 1


def test_of_many_workers_one_sends_a_report_and_none_does_while_it_is_sent(
    settings, monkeypatch
):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    send, later = deliveries._send, []

    def send_slowly(delivery):
        at_once([lambda: later.append(deliveries.deliver(delivery_id=delivery.pk))] * 2)
        return send(delivery)

    monkeypatch.setattr(deliveries, "_send", send_slowly)
    with Receiver() as receiver:
        made = webhooks.create(
            project=projects.default(), url=receiver.url, secret="s" * 20
        )
        webhooks.queue(
            event="change.found", project_id=made.webhook.project_id, content={}
        )
        delivery = made.webhook.deliveries.get()
        at_once([lambda: deliveries.deliver(delivery_id=delivery.pk)] * 8)

        assert len(receiver.requests) == 1
    assert later == [None, None]
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("delivered", 1)
