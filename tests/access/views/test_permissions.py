"""Every address, method and role: what the table of permissions says is what happens."""

import html
import io
import re
from functools import cache
from itertools import product
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import URLResolver, get_resolver, resolve, reverse
from django.urls.converters import IntConverter, UUIDConverter
from django.utils import timezone

from runs import urls
from runs.access import addresses
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import GRANTS, Right, Role
from runs.access.services import projects, tokens
from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.execution.reporter import ArtifactData
from runs.models import (
    Annotation,
    Bisection,
    Change,
    Edition,
    Membership,
    Observation,
    Schedule,
    Webhook,
)
from runs.workloads.services import topologies
from tests import factories
from tests.each import some
from tests.rights import ADDRESSES

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Django's own, which accept more methods than they need, and change nothing of ours.
DJANGOS = frozenset({"login", "logout", "set_language"})
# Of django-allauth, which itself refuses people without business there, for example by a redirect.
ACCOUNTS = ("account_", "mfa_", "usersessions_", "socialaccount_", "openid_connect_")
# The description of the API: for everybody, whatever their token.
DESCRIBED = frozenset({"api:docs", "api:schema"})


def names(of):
    """The values in the addresses of one campaign and its objects."""
    run = of.runs.first()
    by_word = {
        "bisection": Bisection.objects.create(
            project=of.project,
            campaign=of,
            server=run.server,
            asked={
                "base": "a",
                "head": "b",
                "metrics": ["tps"],
                "effect": 2,
                "ignore": [],
            },
            draft={},
            builds=[
                {"commit": each, "installation": None, "bindir": ""} for each in "ab"
            ],
            high=1,
        ),
        "annotation": Annotation.objects.create(campaign=of, text="Note."),
        "change": Change.objects.create(
            cell=run.cell,
            run=run,
            metric=factories.metric(),
            kind="step",
            ratio=1,
            before=1,
            after=1,
        ),
        "schedule": Schedule.objects.create(
            title="Nightly",
            server=run.server,
            draft={},
            project=of.project,
            weekdays=[1],
            next_at=timezone.now(),
        ),
        "observation": observation(of, run.server),
        "webhook": Webhook.objects.create(
            project=of.project, url="https://example.org/"
        ),
        "configuration": configurations.create(
            name=f"of-{of.slug}", description="", content=Content(), project=of.project
        ),
        "workload": factories.workload(f"of-{of.slug}", project=of.project),
        "load": factories.load(f"of-{of.slug}", of.project),
        "measurement": run.measurements.first() or SimpleNamespace(pk=0),
    }
    return {
        **{word: {"pk": row.pk, f"{word}_id": row.pk} for word, row in by_word.items()},
        "run": {"pk": run.pk, "run_id": run.pk},
        "campaign": {"slug": of.slug},
        "configuration": {"slug": f"of-{of.slug}"},
        "workload": {"slug": f"of-{of.slug}"},
        "load": {"slug": f"of-{of.slug}", "campaign": of.slug},
        "artifact": {"run_id": run.pk, "name": "stdout"},
        "observation": {"slug": f"of-{of.slug}"},
        "server": {"slug": run.server.slug},
        "project": {
            "slug": of.project.slug,
            "name": factories.own_metric(of.project).name,
        },
        "hardware": {"pk": 1, "hardware_id": 1},
    }


def observation(of, server):
    """One of its project, with an edition."""
    made = Observation.objects.create(
        slug=f"of-{of.slug}",
        title="Autumn",
        server=server,
        project=of.project,
        designs=[],
        anchor="16",
    )
    Edition.objects.create(observation=made, label="2026")
    return made


# Forms that a test of what pages offer must have met.
POSTED = {
    "annotation-add",
    "bisection-cancel",
    "change-decide",
    "run-withdraw",
    "server-maintain",
}
AS_CAMPAIGN = frozenset({"annotation-add", "schedule-new"})
# Of django-allauth, whose pages know the providers that there are.
PATTERNS = {
    "openid_connect_login": {"provider_id": "oidc"},
    "openid_connect_callback": {"provider_id": "oidc"},
}


def parameters():
    """The parameters of each address by name, each with a value that names nothing."""
    found, waiting = {}, [("", {}, each) for each in get_resolver().url_patterns]
    while waiting:
        space, values, pattern = waiting.pop()
        values = {**values, **dict.fromkeys(pattern.pattern.regex.groupindex, "x")}
        numbers = [
            name
            for name, converter in pattern.pattern.converters.items()
            if isinstance(converter, IntConverter)
        ]
        values |= dict.fromkeys(numbers, 0)
        uuids = pattern.pattern.converters.items()
        values |= {
            name: UUID(int=0) for name, each in uuids if isinstance(each, UUIDConverter)
        }
        if isinstance(pattern, URLResolver):
            below = f"{space}{pattern.namespace}:" if pattern.namespace else space
            waiting += [(below, values, each) for each in pattern.url_patterns]
        else:
            found[f"{space}{pattern.name}"] = values
    return found


@cache
def all_parameters():
    return parameters()


def address_of(name, known):
    """The path of an address, naming things that are there."""
    if name == "api:nowhere":
        return "/api/v1/nothing/here/"
    bare = name.removeprefix("api:")
    word = "campaign" if bare in AS_CAMPAIGN else bare.partition("-")[0]
    values = {**known.get(word, {}), **PATTERNS.get(name, {})}
    taken = {
        key: values.get(key, other) for key, other in all_parameters()[name].items()
    }
    return reverse(name, kwargs=taken)


@pytest.fixture
def public(db):
    project = projects.default()
    campaign = factories.campaign("open", project=project, on=factories.server("db1"))
    return names(factories.finish_all(campaign))


@pytest.fixture
def private(db, django_user_model):
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign("hidden", project=project, on=factories.server("db2"))
    return names(factories.finish_all(campaign))


@pytest.fixture
def people(django_user_model):
    """Somebody of each role in the default project, each with a browser."""
    made = {Role.ANYBODY: Client()}
    for role in (
        Role.PERSON,
        Role.VIEWER,
        Role.OPERATOR,
        Role.MAINTAINER,
        Role.ADMINISTRATOR,
    ):
        user = django_user_model.objects.create_user(
            role.name.lower(), is_superuser=role == Role.ADMINISTRATOR
        )
        if role.name.lower() in Membership.Role.values:
            projects.default().memberships.create(user=user, role=role.name.lower())
        made[role] = Client()
        made[role].force_login(user)
    return made


def asked(client, method, path, **fields):
    """The answer, with nothing changed by it."""
    with transaction.atomic():
        answer = client.generic(method, path, b"", "application/json", **fields)
        transaction.set_rollback(True)
    for close in (
        answer._resource_closers
    ):  # of downloads; their `close` ends the connection, too
        close()
    return answer


def is_denied(answer):
    to_login = answer.status_code == 302 and answer.url.startswith(reverse("login"))
    return to_login or answer.status_code in {401, 403}


def cases():
    """Each address and method, once for the highest role that may not and the lowest that may."""
    for name, rules in sorted(ADDRESSES.items()):
        for method, right in rules.items():
            least = GRANTS[right].role
            yield name, method, least, False
            if least > Role.ANYBODY:
                yield name, method, Role(least - 1), True


def test_every_address_has_a_rule_and_no_rule_is_without_address():
    assert addresses.names_of(get_resolver().url_patterns) == ADDRESSES.keys()


def test_no_address_changes_the_archive():
    """Its publications are reviewed files of the repository, whatever role somebody has."""
    archive = {
        name: rules for name, rules in ADDRESSES.items() if name.startswith("archive")
    }
    assert "archive-later" in archive
    assert {method for rules in archive.values() for method in rules} == {"GET"}


def test_each_right_is_that_of_its_role_and_of_those_above(people):
    project = projects.default().pk
    wrong = []
    for role, right in product(Role, Right):
        user = SimpleNamespace(is_authenticated=False)
        if role != Role.ANYBODY:
            user = get_user(people[role])
        if permissions.may(user, right, project) != (role >= GRANTS[right].role):
            wrong.append((role.name, right))
    assert not wrong


def test_pages_and_api_let_in_whom_the_table_names_and_nobody_else(
    public, people, settings
):
    settings.RATE_ANONYMOUS = 0
    wrong = []
    for name, method, role, expected in cases():
        if name in DJANGOS or (name.startswith(ACCOUNTS) and not expected):
            continue
        answer = asked(people[role], method, address_of(name, public))
        if is_denied(answer) != expected or answer.status_code == 405:
            wrong.append((name, method, role.name, answer.status_code))

    assert not wrong


def offered(page):
    """The method and path of each form and link of a page."""
    forms = re.findall(r"<form\b[^>]*>", page)
    yield from (
        ("POST", _value(each, "action")) for each in forms if 'method="post"' in each
    )
    yield from (
        ("POST", each) for each in re.findall(r'(?:formaction|hx-post)="([^"]*)"', page)
    )
    yield from (("GET", each) for each in re.findall(r'<a\b[^>]*href="([^"]*)"', page))


def _value(tag, name):
    found = re.search(rf'{name}="([^"]*)"', tag)
    return found[1] if found else ""


def test_a_page_offers_nothing_that_its_reader_may_not_do(public, people, settings):
    """Where nobody has logged in, links may lead to the login, but no form does.

    Each page is read by every second role, and by script/test --all by each of them.
    """
    settings.RATE_ANONYMOUS = 0
    wrong, seen = set(), set()
    reading = [
        name
        for name, rules in ADDRESSES.items()
        if "GET" in rules and not _is_theirs(name)
    ]
    html_pages = [each for each in reading if not each.startswith("api:")]
    in_turn = [
        (role, name)
        for place, role in enumerate(people)
        for name in some(html_pages[place:] + html_pages[:place], 2)
    ]
    for role, name in in_turn:
        here = address_of(name, public)
        page = asked(people[role], "GET", here)
        if page.status_code != 200 or not page["Content-Type"].startswith("text/html"):
            continue
        for method, there in offered(page.content.decode()):
            path = html.unescape(there).partition("#")[0] or here
            if not path.startswith("/") or (role == Role.ANYBODY and method == "GET"):
                continue
            bare = path.partition("?")[0]
            target = resolve(bare).view_name
            offer = (role, method, target, bare)
            if target not in ADDRESSES or offer in seen or _is_theirs(target):
                continue
            seen.add(offer)
            if is_denied(asked(people[role], method, path)):
                wrong.add((role.name, name, method, target))

    assert not wrong
    assert {target for _, method, target, _ in seen if method == "POST"} > POSTED


def test_no_address_knows_a_method_that_the_table_does_not(public, people):
    wrong = []
    for name, rules in sorted(ADDRESSES.items()):
        for method in sorted({*METHODS} - {*rules}) if not _is_theirs(name) else ():
            answer = asked(people[Role.ADMINISTRATOR], method, address_of(name, public))
            if answer.status_code not in {404, 405}:
                wrong.append((name, method, answer.status_code))

    assert not wrong


def test_what_is_private_is_not_there_for_others(public, private, people):
    wrong = []
    for name, rules in sorted(ADDRESSES.items()):
        word = name.removeprefix("api:").partition("-")[0]
        if word not in permissions.SUBJECTS:
            continue
        path = address_of(name, private)
        if path == address_of(name, public):
            continue
        for method in rules:
            answer = asked(people[Role.MAINTAINER], method, path)
            if answer.status_code != 404:
                wrong.append((name, method, answer.status_code))

    assert not wrong


def test_a_token_may_what_its_scope_and_its_owner_may(
    public, people, django_user_model, settings
):
    settings.RATE_TOKEN = 0
    owner = django_user_model.objects.get(username="maintainer")
    headers = {
        scope: _header(
            tokens.create(
                name="t", scopes=[scope], project=projects.default(), by=owner
            )
        )
        for scope in ("upload", "admin")
    }
    wrong = []
    for role in ("maintainer", "viewer"):
        owner.memberships.update(role=role)
        for name, rules in sorted(ADDRESSES.items()):
            if not name.startswith("api:") or name in DESCRIBED:
                continue
            for method, right in rules.items():
                grant = GRANTS[right]
                for scope in {"upload", "admin"} if role == "maintainer" else {"admin"}:
                    may = Role[role.upper()] >= grant.role and scope in {
                        grant.scope.value,
                        "admin",
                    }
                    answer = asked(
                        Client(),
                        method,
                        address_of(name, public),
                        headers=headers[scope],
                    )
                    if is_denied(answer) == may:
                        wrong.append((role, scope, name, method, answer.status_code))

    assert not wrong


def _is_theirs(name):
    return name in DJANGOS or name.startswith(ACCOUNTS)


def _header(made):
    return {"Authorization": f"Bearer {made.text}"}


def test_the_documented_table_is_that_of_today():
    call_command("permissions", "--check", stdout=io.StringIO())


@pytest.fixture
def hidden():
    """A finished run of a private project, with a file."""
    project = projects.create(slug="secret", is_public=False)
    server = factories.server(versions=["16.14", "18.4"])
    topology = topologies.topology_of(server=server)
    campaign = factories.campaign(
        "hidden", title="Hidden", project=project, on=server, topology=topology
    )
    campaign.runs.update(hardware=server.hardware)
    run = factories.finish(campaign.runs.first(), tps=1)
    factories.artifact(run=run, data=ArtifactData("out", b"x"))
    return run


def addresses_of(run):
    return ["/campaigns/hidden/", f"/runs/{run.pk}/", f"/runs/{run.pk}/artifacts/out/"]


def test_strangers_find_nothing(client, hidden):
    for address in addresses_of(hidden):
        assert client.get(address).status_code == 404, address
    for address in ("/", "/campaigns/"):
        assert "Hidden" not in client.get(address).content.decode(), address


def pages(run):
    """Every page without a campaign's object in its address, and those of what the run uses."""
    plain = [f"/{each.pattern}" for each in urls.pages if not each.pattern.converters]
    scenario, server = run.campaign.scenario, run.server
    return [
        *plain,
        f"/scenarios/{scenario.slug}/",
        f"/servers/{server.slug}/",
        f"/hardware/{run.hardware_id}/",
        f"/topologies/{run.campaign.topology.slug}/",
    ]


def test_no_other_page_tells_of_it(member, hidden):
    seen = [(address, member.get(address)) for address in pages(hidden)]
    shown = [(address, page) for address, page in seen if page.status_code == 200]
    assert len(shown) > 20
    assert f"/hardware/{hidden.hardware_id}/" in dict(shown)
    for address, page in shown:
        told = page.getvalue().decode(errors="replace")
        assert "Hidden" not in told, address
        assert f"/runs/{hidden.pk}/" not in told, address


def test_somebody_else_cancels_nothing(member, hidden):
    assert member.post("/campaigns/hidden/cancel/").status_code == 404
    assert member.post(f"/runs/{hidden.pk}/cancel/").status_code == 404


def test_members_find_it(member, hidden):
    hidden.campaign.project.members.add(User.objects.get(username="ichiro"))

    for address in addresses_of(hidden):
        answer = member.get(address)
        assert answer.status_code == 200, address
        for close in answer._resource_closers:  # of the download
            close()
    assert "Hidden" in member.get("/campaigns/").content.decode()


@pytest.mark.parametrize("key", ["abc", "1e3"])
def test_a_key_that_is_no_number_is_not_found(member, key):
    for address in (f"/api/v1/runs/{key}/retry/", f"/api/v1/schedules/{key}/pause/"):
        assert member.post(address).status_code == 404, address
