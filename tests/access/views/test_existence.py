"""Absent and private answer alike: the same status and body for every reader and address."""

import json
import os
import re
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from runs.access.selectors.permission_table import Role
from runs.access.services import projects, tokens
from runs.models import Campaign, Membership, Run
from runs.shared.slugs import qualify_slug
from tests import factories
from tests.access.views import test_permissions as table
from tests.api import upload_bodies
from tests.rights import ADDRESSES

pytestmark = pytest.mark.django_db

# Of as many digits as the keys that an earlier run of the tests may have used.
ABSENT = 987_654_321
# What differs between any two answers.
CHANGING = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"|nonce-[\w+/=-]+|nonce="[^"]+"|"X-CSRFToken": "\w+"'
)


def absent_of(known):
    """The same names, of things that are not there."""
    return {
        word: {key: _absent(key, value) for key, value in names.items()}
        for word, names in known.items()
    }


def _absent(key, value):
    if key == "name":
        return value
    return "absent" if isinstance(value, str) else ABSENT


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
    names = sorted(
        {str(each) for of in hidden.values() for each in of.values()}, key=len
    )[::-1]
    names = [each for each in names if len(each) > 2 and each != "stdout"] + [
        "absent",
        ABSENT,
    ]
    found = []
    for name, method, *paths in pairs(hidden):
        if not name.startswith(only):
            continue
        seen = []
        for path in paths:
            client.cookies.pop("messages", None)  # of the answer before
            seen.append(table.asked(client, method, path, **fields))
        if seen[0].status_code == 500 or (
            len(
                {
                    (a.status_code, body(a, p, names))
                    for a, p in zip(seen, paths, strict=True)
                }
            )
            > 1
        ):
            found.append((name, method, [each.status_code for each in seen]))
    return found


def test_a_private_object_is_for_others_as_one_that_is_not_there(hidden, settings):
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    assert len(list(pairs(hidden))) > 60
    told = {"anonymous": differences(Client(), hidden)}
    # Who may most elsewhere, and with script/test --all who may least, too.
    for role in (Role.VIEWER, Role.MAINTAINER)["BENCHLAB_TEST_ALL" not in os.environ :]:
        user = User.objects.create_user(role.name.lower())
        elsewhere = projects.create(slug=f"of-{role.name.lower()}", is_public=False)
        Membership.objects.create(user=user, project=elsewhere, role=role.name.lower())
        client = Client()
        client.force_login(user)
        told[role.name] = differences(client, hidden)
    for scope in ("read", "admin"):
        header = table._header(
            tokens.create(name=scope, scopes=[scope], project=elsewhere)
        )
        told[scope] = differences(Client(), hidden, only="api:", headers=header)

    assert not {reader: found for reader, found in told.items() if found}


# What is named in the query or in the body, with `hidden` and its keys in place of what is there.
NAMED = (
    ("GET", "/compare/?s={campaign}", None),
    ("GET", "/compare/?q={campaign}", None),
    ("GET", "/compare/cells/?a={cell}&b={cell}", None),
    ("GET", "/compare/why/?a={cell}&b={cell}", None),
    ("GET", "/configurations/diff/?a=run:{run}&b=campaign:{campaign}", None),
    ("GET", "/configurations/diff/?a=configuration:of-{campaign}&b=cell:{cell}", None),
    ("GET", "/configurations/new/?from=of-{campaign}", None),
    ("GET", "/workloads/new/?from=of-{campaign}", None),
    ("GET", "/bisections/new/?campaign={campaign}", None),
    ("GET", "/audit/?project={project}", None),
    ("GET", "/api/v1/runs/?campaign={campaign}", None),
    ("GET", "/api/v1/measurements/?run={run}", None),
    ("GET", "/api/v1/compare/?base=campaign:{campaign}&head=run:{run}", None),
    ("GET", "/api/v1/history/?campaign={campaign}", None),
    ("GET", "/api/v1/changes/?campaign={campaign}", None),
    (
        "POST",
        "/api/v1/bisections/",
        {"campaign": "{campaign}", "base": "run:{run}", "head": "a"},
    ),
    ("POST", "/api/v1/schedules/", {"campaign": "{campaign}", "title": "t"}),
    (
        "POST",
        "/api/v1/configurations/",
        {"name": "n", "settings": {}, "project": "{project}"},
    ),
)


def test_what_a_query_or_a_body_names_is_answered_alike(hidden, settings):
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    run = Run.objects.get(pk=hidden["run"]["pk"])
    there = {
        "campaign": "hidden",
        "project": "secret",
        "run": run.pk,
        "cell": run.cell_id,
    }
    absent = {"campaign": "absent", "project": "absent", "run": ABSENT, "cell": ABSENT}
    user = User.objects.create_user("stranger")
    elsewhere = projects.create(slug="beta", is_public=False)
    Membership.objects.create(user=user, project=elsewhere, role="maintainer")
    stranger = Client()
    stranger.force_login(user)
    header = table._header(tokens.create(name="t", scopes=["admin"], project=elsewhere))
    told = []
    for client in (Client(), stranger, Client(headers=header)):
        for method, path, given in NAMED:
            seen = []
            for names in (there, absent):
                client.cookies.pop("messages", None)
                sent = json.dumps(given or {}) if given is not None else ""
                for key, value in names.items():
                    sent = sent.replace(f"{{{key}}}", str(value))
                with transaction.atomic():
                    answer = client.generic(
                        method, path.format(**names), sent, "application/json"
                    )
                    transaction.set_rollback(True)
                place = unquote(answer.get("Location", ""))
                text = CHANGING.sub("", answer.content.decode() + place)
                for value in {*map(str, there.values()), *map(str, absent.values())}:
                    text = re.sub(rf"\b{value}\b", "NAME", text)
                seen.append((answer.status_code, text))
            if seen[0] != seen[1]:
                told.append((method, path, [status for status, _text in seen]))
    assert not told


def test_an_upload_is_answered_alike_whatever_names_others_hide(hidden):
    made = projects.create(slug="beta", is_public=False)
    header = table._header(
        tokens.create(name="t", scopes=["read", "upload"], project=made)
    )
    client = Client(headers=header)

    def upload(name, expect=201, by=client):
        answer = by.post(
            "/api/v1/uploads/", upload_bodies.run(campaign=name), "application/json"
        )
        assert answer.status_code == expect, answer.content
        return answer.json()

    names = ("hidden", "hidden", "hidden--beta", "absent")
    slugs = [upload(name)["campaign"] for name in names]
    assert slugs == ["hidden--beta", "hidden--beta", "hidden--beta", "absent--beta"]
    own = Campaign.objects.get(slug="hidden--beta")
    assert (own.project.slug, own.uploaded_as, own.title) == (
        "beta",
        "hidden",
        "hidden",
    )
    assert own.runs.count() == 3
    history = client.get("/api/v1/history/?campaign=hidden").json()
    assert history["campaign"] == "hidden--beta"
    Campaign.objects.filter(slug="hidden").update(project=projects.default())
    assert upload("hidden")["campaign"] == "hidden--beta"

    # A public project cannot try names of private ones either.
    token = tokens.create(name="t", scopes=["upload"], project=projects.default())
    public = Client(headers=table._header(token))
    for name in ("hidden--beta", "none--beta"):
        assert (
            upload(name, expect=422, by=public)["errors"][0]["code"] == "campaign_name"
        )


def test_a_private_campaign_of_an_earlier_release_keeps_its_address(hidden):
    secret = Campaign.objects.get(slug="hidden").project
    Campaign.objects.filter(slug="hidden").update(origin="uploaded")
    header = table._header(tokens.create(name="t", scopes=["upload"], project=secret))
    body = upload_bodies.run(campaign="hidden", scenario="fixed-point-read")
    answer = Client(headers=header).post("/api/v1/uploads/", body, "application/json")
    assert answer.json()["campaign"] == "hidden", answer.content


def test_the_name_of_a_private_campaign_is_cut_with_its_digest():
    secret = projects.create(slug="s" * 70, is_public=False)
    slugs_of = {
        qualify_slug(f"{'n' * 110}{end}", secret, of=Campaign) for end in ("a", "b")
    }
    assert len(slugs_of) == 2
    assert {len(slug) for slug in slugs_of} == {120}


def test_the_name_of_a_public_campaign_is_its_projects_alone(hidden):
    made = projects.create(slug="gamma", is_public=False)
    header = table._header(tokens.create(name="t", scopes=["upload"], project=made))
    client = Client(headers=header)
    factories.campaign("open", project=projects.default(), origin="uploaded", repeats=0)
    body = upload_bodies.run(campaign="open")
    answer = client.post("/api/v1/uploads/", body, "application/json")
    assert answer.json()["campaign"] == "open--gamma"
