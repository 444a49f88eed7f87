"""An act needs its fields: a request that says nothing starts nothing, at any address."""

import pytest
from django.apps import apps
from django.test import Client
from django.urls import NoReverseMatch, reverse

from runs.access.services import projects
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.workloads.services import scenarios
from tests import factories
from tests.rights import ADDRESSES

pytestmark = pytest.mark.django_db

# What each request may leave behind: who asked for what, and how often.
TRACES = {"AuditEntry", "Session", "CacheVersion", "UserSession"}


def counts():
    return {
        model.__name__: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.managed and model.__name__ not in TRACES
    }


def without_object():
    """The addresses that take a POST and name no object, which would be what is acted on."""
    for name, rights in ADDRESSES.items():
        if "POST" not in rights or name in {"logout", "account_logout"}:
            continue
        try:
            yield name, reverse(name)
        except NoReverseMatch:
            continue


def test_a_post_without_fields_makes_nothing(admin_user, settings):
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    scenarios.sync()
    factories.server("db1", versions=["16.14", "18.4"])
    factories.configuration("own")
    projects.default()
    client = Client(raise_request_exception=False)
    client.force_login(admin_user)
    addresses = list(without_object())
    assert len(addresses) > 25
    started = []
    for name, address in addresses:
        client.get(address)  # a form may make what it shows, such as a key
        before = counts()
        if name.startswith("api:"):
            answer = client.post(address, "{}", content_type="application/json")
        else:
            answer = client.post(address, {})
        assert answer.status_code < 500, (name, answer.content[:300])
        if counts() != before:
            started.append(name)
    assert started == []


def test_an_edition_needs_its_name(client, admin_user):
    scenarios.sync()
    server = factories.server("db1", versions=["16.14", "18.4"])
    design = Design(
        "fixed-point-read", {"clients": [1]}, {"scale": 1, "duration": 5}, 3
    )
    observation = observations.create(plan=Plan("Autumn", server, [design]))
    client.force_login(admin_user)
    client.post(reverse("observation-begin", args=[observation.slug]), {})
    assert not observation.editions.exists()
