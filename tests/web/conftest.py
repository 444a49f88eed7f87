"""Who looks at the pages, and a browser to look with."""

import pytest
from django.contrib.auth.models import User

from runs.access.services import projects
from runs.workloads.services import scenarios
from tests import factories


@pytest.fixture
def member(client, django_user_model):
    """A client that has logged in: a maintainer of the project of everything that names none."""
    user = django_user_model.objects.create_user("ichiro", password="secret")
    projects.default().memberships.create(user=user, role="maintainer")
    client.force_login(user)
    return client


@pytest.fixture
def administrator(client, django_user_model):
    """A client that an administrator has logged in."""
    client.force_login(django_user_model.objects.create_superuser("hanako", password="secret"))
    return client


@pytest.fixture
def known(db):
    """The scenarios and metrics of the code are in the database."""
    scenarios.sync()


@pytest.fixture
def ready_server(known):
    """A server with two versions of PostgreSQL and their client programs."""
    server = factories.server("db1", name="db1")
    for version in ("16.14", "18.4"):
        number = factories.version_num(version)
        factories.installation(server, version, has_psql=True, pgbench_version_num=number)
    return server


@pytest.fixture
def finished_campaign(ready_server):
    """Two versions x clients 1, 2, 4 x 3 repeats, all finished; 18 is 10 % faster."""
    campaign = factories.campaign("finished", title="PostgreSQL 16 and 18", on=ready_server)
    return factories.finish_all(campaign, gain={"18.4": 1.1})


@pytest.fixture
def log_in(live_server, client):
    """A function that gives a browser's context the session of a user."""

    def logged_in(context, username="browser"):
        user, _created = User.objects.get_or_create(
            username=username, defaults={"is_superuser": username == "browser"}
        )
        client.force_login(user)
        cookie = client.cookies["sessionid"]
        context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": live_server.url}])

    return logged_in


# What htmx says of a request that the browser gives up because it leaves the page; a request that
# fails has its own words beside.
GIVEN_UP = ("htmx:afterRequest", "htmx:sendAbort")


def is_complaint(said):
    """Whether a line of the browser's console reports an error."""
    return said.type == "error" and not said.text.startswith(GIVEN_UP)


@pytest.fixture(scope="module")
def tab(chromium):
    """The one page that a module's tests look at, in turn: as it keeps its process, the browser
    compiles each script once, of which that of the charts takes a second of the processor.
    """
    context = chromium.new_context(locale="en")
    opened = context.new_page()
    opened.devtools = context.new_cdp_session(opened)
    yield opened
    context.close()


def forget(tab, origin):
    """Leave nothing of a test for the next one: no page that asks, no session, nothing stored."""
    tab.context.set_offline(False)
    tab.goto(f"{origin}/static/icons/favicon.svg")
    tab.evaluate("sessionStorage.clear()")
    tab.context.clear_cookies()
    tab.devtools.send(
        "Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"}
    )


@pytest.fixture
def page(tab, live_server, log_in, request):
    """A logged-in page of the size and theme that the test is marked with, which keeps what the
    browser complains about.
    """
    width, theme = getattr(request, "param", (1280, "light"))
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme=theme)
    log_in(tab.context)
    complaints = tab.complaints = []
    listeners = {
        "pageerror": lambda error: complaints.append(str(error)),
        "console": lambda said: complaints.append(said.text) if is_complaint(said) else None,
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield tab
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    forget(tab, live_server.url)
