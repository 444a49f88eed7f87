"""SSH keys, editing, another host key, and preflight in the browser's view."""

import pytest
from django.test import Client

from runs.models import Server, ServerCheck, ServerEvent, SSHKey
from runs.servers.services import edits as server_edits
from runs.servers.services import servers, ssh_keys
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db

OTHER_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBWkvqtGRCTPRMgOHzmyHQkqf1BOLe3YxiNXbuNwDvKB"
)


@pytest.fixture
def server():
    """A server whose address nobody answers at."""
    return factories.server(
        "db1", name="db1", address="127.0.0.1", port=1, ssh_key=ssh_keys.default()
    )


@pytest.mark.parametrize("is_behind_a_hop", [False, True])
def test_a_stranger_learns_the_state_of_a_server_and_not_its_address(
    member, server, is_behind_a_hop
):
    """localhost has two addresses, whose numbers are in the words of Python's own error."""
    Server.objects.update(address="localhost", username="secretive")
    server.refresh_from_db()
    if is_behind_a_hop:
        server.jump = factories.server(
            "hop",
            address="127.0.0.77",
            port=1,
            username="secretive",
            ssh_key=server.ssh_key,
        )
        server.save()
    servers.inspect(server=server)
    changed = {**vars(edit_of(server)), "port": 2, "address": "localhost."}
    server_edits.edit(server=server, to=server_edits.Edit(**changed), by="ichiro")
    pages = ["/servers/", "/servers/db1/", "/api/v1/servers/", "/api/v1/servers/db1/"]

    read = {path: Client().get(path).content.decode() for path in pages}

    assert "cannot be reached over SSH: Connection refused." in read["/servers/db1/"]
    assert "edited" in read["/servers/db1/"]
    for path, text in read.items():
        for secret in ("secretive", "localhost:", "localhost.", "127.0.0", "::1"):
            assert secret not in text, path
    for path in pages[:2]:
        assert "secretive@localhost.:2" in member.get(path).content.decode()
    assert "localhost → localhost." in member.get("/servers/db1/").content.decode()


def test_folders_of_a_machine_are_shown_to_those_who_have_logged_in(member, server):
    """The page and the API alike; what was built, and how, is everybody's."""
    Server.objects.update(base_dir="/srv/secretive/runs")
    factories.installation(server, "18.4", bindir="/srv/secretive/pg/bin")
    pages = ["/servers/db1/", "/servers/"]
    doors = ["/api/v1/servers/", "/api/v1/servers/db1/"]

    for path in pages + doors:
        assert "secretive" not in Client().get(path).content.decode(), path
    (installation,) = Client().get(doors[1]).json()["installations"]
    assert (installation["version"], installation["bindir"]) == ("18.4", None)

    page = member.get("/servers/db1/").content.decode()
    assert "/srv/secretive/runs" in page
    assert "/srv/secretive/pg/bin" in page
    (installation,) = member.get(doors[1]).json()["installations"]
    assert installation["bindir"] == "/srv/secretive/pg/bin"


def edit_of(server):
    """What it is now, as an edit."""
    names = server_edits.Edit.__dataclass_fields__
    return server_edits.Edit(**{name: getattr(server, name) for name in names})


def given(server, **changed):
    """What the edit form sends."""
    return {
        "name": server.name,
        "address": server.address,
        "port": server.port,
        "username": server.username,
        "base_dir": server.base_dir,
        "ssh_key": server.ssh_key_id,
        "jump": "",
        "bindirs": "",
        **changed,
    }


@pytest.mark.parametrize(
    "path",
    [
        "/servers/keys/",
        "/servers/db1/edit/",
        "/servers/checks/00000000-0000-4000-8000-000000000000/",
    ],
)
def test_a_visitor_is_sent_to_log_in(client, server, path):
    response = client.get(path)
    assert (response.status_code, response.url.split("?")[0]) == (302, "/login/")


@pytest.mark.parametrize(
    "path",
    [
        "/servers/keys/",
        "/servers/db1/edit/",
        "/servers/db1/host-key/",
        "/servers/db1/preflight/",
        "/campaigns/new/preflight/",
    ],
)
def test_a_visitor_changes_nothing(client, server, path):
    before, keys = Server.objects.values().get(), SSHKey.objects.count()
    assert client.post(path, given(server, name="other", typed="x")).status_code == 302
    assert Server.objects.values().get() == before
    assert SSHKey.objects.count() == keys
    assert not ServerCheck.objects.exists()


def test_keys_are_listed_with_their_servers_and_no_private_half(member, server):
    page = member.get("/servers/keys/").content.decode()
    assert server.ssh_key.public_key in page
    assert 'href="/servers/db1/"' in page
    assert "BEGIN OPENSSH" not in page.replace('placeholder="-----BEGIN OPENSSH', "")


def test_the_queries_of_the_keys_do_not_grow(member, server, django_assert_num_queries):
    for name in "abc":
        factories.server(name, ssh_key=ssh_keys.generate(name=name))
    with django_assert_num_queries(7):
        member.get("/servers/keys/")


def test_a_key_is_generated_and_deleted(member):
    assert (
        "rack 7"
        in member.post(
            "/servers/keys/", {"name": "rack 7"}, follow=True
        ).content.decode()
    )
    key = SSHKey.objects.get(name="rack 7")
    member.post(f"/servers/keys/{key.pk}/delete/")
    assert not SSHKey.objects.filter(name="rack 7").exists()


def test_a_key_in_use_is_not_deleted(member, server):
    response = member.post(f"/servers/keys/{server.ssh_key_id}/delete/", follow=True)
    assert "ssh_key_in_use" in response.content.decode()
    assert SSHKey.objects.exists()


def test_a_refused_key_is_not_sent_back(member):
    sent = {"name": "x", "private_key": "ssh-ed25519 AAAA", "passphrase": "open sesame"}
    page = member.post("/servers/keys/", sent).content.decode()
    assert "This is the public half of a key." in page
    assert "open sesame" not in page
    assert not SSHKey.objects.filter(name="x").exists()


def test_a_server_is_edited_and_looked_at_again(member, server):
    key = ssh_keys.generate(name="other")
    sent = given(
        server,
        name="Rack 1",
        bindirs="/opt/pg/bin",
        ssh_key=key.pk,
        privileges=["perf"],
    )
    assert member.post("/servers/db1/edit/", sent).url == "/servers/db1/"
    carry_out()
    server.refresh_from_db()
    assert (server.name, server.bindirs, server.ssh_key) == (
        "Rack 1",
        ["/opt/pg/bin"],
        key,
    )
    assert server.privileges == ["perf"]
    assert server.problem_code == "host_unreachable"
    assert server.host_key == factories.HOST_KEY
    event = ServerEvent.objects.get(code="edited")
    assert event.by == "hanako"


def test_the_form_gives_a_server_another_site_and_takes_it_away(
    member, server, settings
):
    settings.SITES = ("tokyo",)
    for site in ("tokyo", ""):
        member.post("/servers/db1/edit/", given(server, site=site))
        carry_out()
        assert Server.objects.get(pk=server.pk).site == site
        page = member.get("/servers/db1/edit/").content.decode()
        assert ('value="tokyo"' in page) == bool(site)


def test_an_edit_while_a_check_waits_for_its_site_is_stored_and_says_so(member, server):
    """Nobody serves the site, so the first check is still open."""
    for name in ("Rack 1", "Rack 2"):
        sent = given(server, site="tokyo", name=name)
        page = member.post("/servers/db1/edit/", sent, follow=True).content.decode()
        assert Server.objects.get(pk=server.pk).name == name
    assert ServerCheck.objects.count() == 1
    assert "No live worker" in page or "looking at this server already" in page


def test_the_sudoers_fragment_is_shown_to_who_has_logged_in(member, client, server):
    Server.objects.update(privileges=["drop_caches"])
    page = member.get("/servers/db1/").content.decode()
    assert "NOPASSWD: /usr/sbin/sysctl -w vm.drop_caches\\=3" in page
    client.logout()
    assert "NOPASSWD" not in client.get("/servers/db1/").content.decode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"base_dir": "/x,y"}, "is not a path that BenchLab can use"),
        ({"address": ""}, "This field is required."),
        ({"privileges": ["root"]}, "root is not one of the available choices"),
    ],
)
def test_a_wrong_edit_is_said_and_changes_nothing(member, server, changed, message):
    before = Server.objects.values().get()
    page = member.post("/servers/db1/edit/", given(server, **changed)).content.decode()
    assert message in page
    assert Server.objects.values().get() == before


def test_a_loop_of_hops_is_said_at_the_field(member, server):
    hop = factories.server("hop", jump=server)
    page = member.post(
        "/servers/db1/edit/", given(server, jump=hop.pk)
    ).content.decode()
    assert "passes through db1 itself" in page


@pytest.fixture
def changed_key(server):
    Server.objects.update(
        offered_host_key=OTHER_KEY,
        state="refused",
        problem_code="host_key_changed",
        problem="!",
    )
    return servers.fingerprint(OTHER_KEY)


def test_both_fingerprints_are_shown_and_one_click_is_not_enough(
    member, server, changed_key
):
    page = member.get("/servers/db1/").content.decode()
    assert changed_key in page
    assert servers.fingerprint(factories.HOST_KEY) in page
    assert 'name="typed"' in page
    assert "/servers/db1/confirm/" not in page
    member.post("/servers/db1/confirm/", {"fingerprint": changed_key})
    server.refresh_from_db()
    assert server.host_key == factories.HOST_KEY


def test_the_typed_end_of_the_new_fingerprint_replaces_the_key(
    member, server, changed_key
):
    page = member.post("/servers/db1/host-key/", {"typed": "12345678"}, follow=True)
    assert "fingerprint_differs" in page.content.decode()
    member.post("/servers/db1/host-key/", {"typed": changed_key[-8:]})
    server.refresh_from_db()
    assert server.host_key == OTHER_KEY
    assert "host_key_replaced" in member.get("/servers/db1/").content.decode()


def test_a_preflight_of_a_server_that_is_away_says_so(member, server):
    address = member.post("/servers/db1/preflight/").url
    assert "every 1s" in member.get(address).content.decode()
    carry_out()
    page = member.get(address).content.decode()
    assert "host_unreachable" in page
    assert "What the machine says" not in page
    part = member.get(address, headers={"HX-Request": "true"})
    assert "every 1s" not in part.content.decode()
    assert part["HX-Refresh"] == "true"  # its title says what prevents a campaign


def test_a_preflight_in_the_form_needs_a_complete_form(member, ready_server):
    sent = {"server": "db1", "scenario": "fixed-point-read"}
    page = member.post("/campaigns/new/preflight/", sent).content.decode()
    assert "Complete the form first." in page
    sent = {"server": "db1", "scenario": "x"}
    assert member.post("/campaigns/new/preflight/", sent).status_code == 404


def test_a_hop_offers_no_campaign_and_no_preflight(member):
    factories.server("hop", base_dir="")
    page = member.get("/servers/hop/").content.decode()
    assert "/campaigns/new/?server=hop" not in page
    assert "/servers/hop/preflight/" not in page


def test_a_hop_is_not_offered_for_a_campaign(member, ready_server):
    factories.server("a-hop", base_dir="")
    page = member.get("/campaigns/new/?server=a-hop").content.decode()
    assert 'value="db1"' in page
    assert 'value="a-hop"' not in page
