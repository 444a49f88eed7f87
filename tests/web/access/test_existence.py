"""Absent and private answer alike: the same status and body for every reader and address."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Membership
from runs.selectors.access.rights import ADDRESSES, Role
from runs.services.access import projects, tokens
from tests import factories
from tests.web.access import test_permissions as table

pytestmark = pytest.mark.django_db

# Of as many digits as the keys that an earlier run of the tests may have used.
ABSENT = 987_654_321
SCOPES = ("read", "upload", "queue", "admin")
# What differs between any two answers.
CHANGING = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"|nonce-[\w+/=-]+|nonce="[^"]+"|"X-CSRFToken": "\w+"'
)


def absent_of(known):
    """The same names, of things that are not there."""
    return {
        word: {
            key: value if key == "name" else ("absent" if isinstance(value, str) else ABSENT)
            for key, value in names.items()
        }
        for word, names in known.items()
    }


@pytest.fixture
def hidden(db):
    """What a private project has."""
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign("hidden", project=project, on=factories.server("db2"))
    return table.names(factories.finish_all(campaign))


def pairs(hidden):
    """(address, method, private path, absent path) of all that names something private."""
    absent = absent_of(hidden)
    for shared in ("server", "hardware"):
        absent[shared] = hidden[shared]
    for name, rules in sorted(ADDRESSES.items()):
        private, other = (table.address_of(name, known) for known in (hidden, absent))
        if private != other:
            for method in rules:
                yield name, method, private, other


def body(answer, path, names):
    """The answer's text without what every answer has anew, and without the names asked for."""
    text = getattr(answer, "content", b"").decode() + answer.headers.get("Location", "")
    text = CHANGING.sub("", text).replace(path, "PATH")
    for value in names:
        text = text.replace(str(value), "NAME")
    return text


def differences(client, hidden, *, only="", **fields):
    """Where a reader could tell a private thing from an absent one, with both statuses."""
    names = sorted({str(each) for of in hidden.values() for each in of.values()}, key=len)[::-1]
    names = [each for each in names if len(each) > 2 and each != "stdout"] + ["absent", ABSENT]
    found = []
    for name, method, *paths in pairs(hidden):
        if not name.startswith(only):
            continue
        seen = []
        for path in paths:
            client.cookies.pop("messages", None)  # of the answer before
            seen.append(table.asked(client, method, path, **fields))
        if seen[0].status_code == 500 or (
            len({(a.status_code, body(a, p, names)) for a, p in zip(seen, paths, strict=True)}) > 1
        ):
            found.append((name, method, [each.status_code for each in seen]))
    return found


def test_a_private_object_is_for_others_as_one_that_is_not_there(hidden, settings):
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    assert len(list(pairs(hidden))) > 60
    told = {"anonymous": differences(Client(), hidden)}
    for role in (Role.VIEWER, Role.OPERATOR, Role.MAINTAINER):
        user = User.objects.create_user(role.name.lower())
        elsewhere = projects.create(slug=f"of-{role.name.lower()}", is_public=False)
        Membership.objects.create(user=user, project=elsewhere, role=role.name.lower())
        client = Client()
        client.force_login(user)
        told[role.name] = differences(client, hidden)
    for scope in SCOPES:
        header = table._header(tokens.create(name=scope, scopes=[scope], project=elsewhere))
        told[scope] = differences(Client(), hidden, only="api:", headers=header)

    assert not {reader: found for reader, found in told.items() if found}
