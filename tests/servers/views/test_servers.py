"""Servers: list, registration, host key and inspection."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.models import (
    AuditEntry,
    Environment,
    HourlyLoad,
    Server,
    ServerCheck,
    Topology,
)
from runs.servers.selectors import fitness
from runs.servers.selectors import servers as server_selectors
from runs.servers.services import servers, ssh_keys
from runs.servers.views.servers import load_figure
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db

GIVEN = {
    "name": "db1",
    "address": "127.0.0.1",
    "port": "1",
    "username": "benchlab",
    "base_dir": "/srv/benchlab",
    "bindirs": "",
}


@pytest.fixture
def offered():
    """A server whose key waits for a person, where nothing listens."""
    return factories.server(
        "offered",
        state="unconfirmed",
        host_key="",
        offered_host_key=factories.HOST_KEY,
        ssh_key=ssh_keys.default(),
        address="127.0.0.1",
        port=1,
    )


def test_an_empty_list_says_what_to_do(client):
    assert "No servers yet" in client.get("/servers/").content.decode()


def test_the_lists_queries_do_not_grow(client, django_assert_num_queries):
    for number in range(5):
        factories.server(f"server-{number}", versions=["16.14"])
    with django_assert_num_queries(3):
        client.get("/servers/")


def test_a_visitor_registers_nothing(client):
    assert client.get("/servers/new/").status_code == 302
    assert client.post("/servers/new/", GIVEN).status_code == 302
    assert not Server.objects.exists()


def test_the_form_shows_the_key_to_let_in(member):
    assert servers.public_key() in member.get("/servers/new/").content.decode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"username": "no good"}, "Not a user name."),
        ({"base_dir": "relative"}, "Give an absolute path"),
        ({"bindirs": "pgsql/bin"}, "pgsql/bin is not an absolute path."),
        ({"port": "70000"}, "less than or equal to 65535"),
        ({"name": ""}, "This field is required."),
        ({"base_dir": ""}, "Name a folder that BenchLab may write in"),
        ({"address": "http://10.0.0.5"}, "Write the host alone, without http://."),
        ({"address": "ssh://10.0.0.5:22"}, "Write the host alone, without ssh://."),
        ({"address": "10.0.0.5:22"}, "The port has a field of its own."),
        ({"address": "[2001:db8::1]:22"}, "The port has a field of its own."),
        ({"address": "root@db1"}, "The user has a field of its own."),
        ({"address": "db1/data"}, "Not the name or the IP address of a host."),
        ({"address": "-oProxyCommand=id"}, "Not the name or the IP address of a host."),
    ],
)
def test_bad_input_is_said_and_registers_nothing(member, changed, message):
    response = member.post("/servers/new/", GIVEN | changed)
    assert message in response.content.decode()
    assert not Server.objects.exists()


@pytest.mark.parametrize(
    ("written", "address"),
    [
        (" db1.example.org ", "db1.example.org"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("pg_server", "pg_server"),
    ],
)
def test_names_and_ip_addresses_of_hosts_are_taken(member, written, address):
    member.post("/servers/new/", GIVEN | {"address": written})

    assert Server.objects.get().address == address


def test_a_hop_is_asked_for_by_name(member):
    member.post("/servers/new/", GIVEN | {"base_dir": "", "is_only_a_hop": "on"})

    assert Server.objects.get().is_only_a_hop


def test_a_machine_that_does_not_answer_is_told_on_its_page(member):
    assert member.post("/servers/new/", GIVEN).url == "/servers/db1/"
    assert 'hx-trigger="every 1s"' in member.get("/servers/db1/").content.decode()
    carry_out()
    page = member.get("/servers/db1/").content.decode()
    assert "host_unreachable" in page
    assert "Fetch the host key" in page
    assert "every 1s" not in page


def test_the_offered_fingerprint_is_shown_with_the_way_to_check(client, offered):
    page = client.get("/servers/offered/").content.decode()
    assert servers.fingerprint(factories.HOST_KEY) in page
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in page
    assert "Log in to confirm it." in page


def test_another_fingerprint_is_refused_in_words(member, offered):
    response = member.post(
        "/servers/offered/confirm/", {"fingerprint": "SHA256:x"}, follow=True
    )
    assert "fingerprint_differs" in response.content.decode()
    offered.refresh_from_db()
    assert offered.host_key == ""


def test_the_confirmed_key_is_pinned_and_the_machine_looked_at(member, offered):
    fingerprint = servers.fingerprint(factories.HOST_KEY)
    member.post("/servers/offered/confirm/", {"fingerprint": fingerprint})
    carry_out()
    offered.refresh_from_db()
    assert offered.host_key == factories.HOST_KEY
    assert offered.problem_code == "host_unreachable"
    assert offered.problem_code in member.get("/servers/offered/").content.decode()


@pytest.mark.parametrize("action", ["confirm", "inspect"])
def test_a_visitor_changes_nothing(client, ready_server, action):
    assert client.post(f"/servers/db1/{action}/").status_code == 302
    assert client.get(f"/servers/db1/{action}/").status_code in {302, 405}


def test_inspecting_without_a_confirmed_key_is_refused_in_words(member, offered):
    response = member.post("/servers/offered/inspect/", follow=True)
    assert "host_key_not_confirmed" in response.content.decode()


def test_a_mistyped_server_is_deleted_with_all_that_belongs_to_it(member):
    member.post("/servers/new/", GIVEN)
    assert (
        'action="/servers/db1/delete/"' in member.get("/servers/db1/").content.decode()
    )
    page = member.post("/servers/db1/delete/", follow=True).content.decode()
    assert "The server “db1” was deleted." in page
    assert not Server.objects.exists()
    assert not Topology.objects.exists()
    assert not ServerCheck.objects.exists()
    assert AuditEntry.objects.filter(
        action="server_deleted", subject="server db1"
    ).exists()
    assert member.post("/servers/new/", GIVEN).url == "/servers/db1/"


def test_a_server_that_was_confirmed_or_is_in_use_is_not_deleted(
    member, ready_server, offered
):
    assert "/servers/db1/delete/" not in member.get("/servers/db1/").content.decode()
    page = member.post("/servers/db1/delete/", follow=True).content.decode()
    assert "server_was_confirmed" in page
    factories.campaign("uploaded", on=offered)
    page = member.post("/servers/offered/delete/", follow=True).content.decode()
    assert "server_in_use" in page
    assert Server.objects.count() == 2


def test_a_problem_is_shown_with_its_remedy(client):
    factories.server(
        "gone",
        state="unreachable",
        problem_code="host_unreachable",
        problem="It does not answer.",
        problem_remedy="Start it.",
    )
    page = client.get("/servers/gone/").content.decode()
    for words in ("host_unreachable", "It does not answer.", "Start it."):
        assert words in page


def test_a_ready_server_shows_its_installations(member, ready_server):
    page = member.get("/servers/db1/").content.decode()
    assert "/usr/lib/postgresql/18.4/bin" in page
    assert "/campaigns/new/?server=db1" in page


def test_an_unknown_server_is_not_found(client):
    assert client.get("/servers/none/").status_code == 404


def test_a_machines_setup_and_its_changes_are_shown(client):
    server = factories.server("rack")
    server.environment.facts = {
        "kernel_settings": {"vm.swappiness": "1"},
        "storage": {"filesystem": "xfs", "device": "vda", "options": ["rw", "noatime"]},
    }
    server.environment.save()
    server.events.create(
        code="environment_changed", message="kernel_settings.vm.swappiness: 60 → 1"
    )
    page = client.get("/servers/rack/").content.decode()
    assert "xfs vda" in page
    assert "rw,noatime" in page
    assert "kernel_settings.vm.swappiness: 60 → 1" in page


def test_a_disk_is_told_in_words(client):
    server = factories.server("rack")
    disks = [
        {"name": "sda", "model": "WD Gold", "size_bytes": 2**40, "rotational": True},
        {"name": "vda", "model": "", "size_bytes": None, "rotational": False},
        {"name": "vdb", "model": "", "size_bytes": None, "rotational": None},
    ]
    server.hardware.facts = {**server.hardware.facts, "disks": disks}
    server.hardware.save()
    page = " ".join(client.get("/servers/rack/").content.decode().split())
    for told in ("sda WD Gold", "rotating", "vda", "solid state"):
        assert told in page
    assert re.findall(r"\b(?:True|False)\b", page) == []


def test_one_account_for_everything_is_told_to_who_has_logged_in(
    client, administrator, ready_server, settings
):
    for is_shared in (False, True):
        settings.SHARED_ACCOUNT = is_shared
        assert (
            "shared_account" in administrator.get("/servers/").content.decode()
        ) == is_shared
    client.logout()
    assert "shared_account" not in client.get("/servers/").content.decode()


@pytest.fixture
def campaign():
    server = factories.server("db1")
    made = factories.campaign(
        "c", factors={"version": ["9.2.24", "18.4"], "clients": [1]}
    )
    flags = {
        "9.2.24": ("-g -O0", "--enable-cassert"),
        "18.4": ("-Wall -g -O2", "--with-icu"),
    }
    for cell in made.cells.all():
        cflags, options = flags[cell.version]
        cell.installation = factories.installation(
            server,
            cell.version,
            cflags=cflags,
            configure_options=options,
            block_size=8192,
        )
        cell.save()
    made.runs.update(server=server)
    return factories.finish_all(made)


def test_server_campaign_run_report_and_api_tell_the_build(client, campaign):
    run = campaign.runs.filter(cell__version="9.2.24").first()

    pages = {
        "server": "/servers/db1/",
        "campaign": "/campaigns/c/",
        "run": f"/runs/{run.pk}/",
        "report": "/campaigns/c/report/?format=html",
    }
    for name, address in pages.items():
        answer = client.get(address)
        assert answer.status_code == 200, name
        text = answer.content.decode(errors="replace")
        assert "-O0, assertions" in text, name
    told = client.get(f"/api/v1/runs/{run.pk}/").json()["build"]
    assert (told["optimisation"], told["assertions"], told["cflags"]) == (
        "-O0",
        True,
        "-g -O0",
    )


def test_the_ratio_of_a_slow_build_is_no_verdict(client, campaign):
    sides = "base=campaign:c~version=9.2.24&head=campaign:c~version=18.4"
    (row,) = client.get(f"/api/v1/compare/?{sides}&metric=tps").json()["rows"]

    assert (row["verdict"], row["reasons"][0]["code"]) == (
        "not_comparable",
        "build_differs",
    )


def test_the_limits_of_processes_have_names_and_units(client):
    server = factories.server("db1", versions=["16.14"])
    facts = {
        "kernel_settings": {"vm.swappiness": "1"},
        "limits": {"open_files": 1024, "stack_bytes": 8388608, "processes": None},
    }
    Environment.objects.filter(pk=server.environment_id).update(facts=facts)
    page = " ".join(
        re.sub(r"<[^>]+>", " ", client.get("/servers/db1/").content.decode()).split()
    )
    assert "Open files at most 1,024" in page
    assert "Stack size at most 8 MiB" in page
    assert "Processes at most unlimited" in page
    assert "stack_bytes" not in page


@pytest.mark.parametrize(
    ("level", "title"),
    [
        ("warning", "Warnings"),
        ("error", "What prevents a campaign now"),
    ],
)
def test_only_an_error_prevents_a_campaign(member, level, title):
    finding = {
        "server": "db1",
        "message": "Busy.",
        "remedy": "",
        "level": level,
        "code": "x",
    }
    check = ServerCheck.objects.create(
        kind="preflight",
        state="done",
        server=factories.server("db1"),
        asked_by="hanako",
        by_way_of="page",
        deadline=timezone.now(),
        answer={
            "is_clear": level == "warning",
            "has_answers": True,
            "findings": [finding],
        },
    )
    page = member.get(f"/servers/checks/{check.pk}/").content.decode()
    assert title in page
    polled = member.get(f"/servers/checks/{check.pk}/", headers={"HX-Request": "true"})
    assert ("HX-Refresh" in polled.headers) == (level == "error")


def test_a_server_whose_cells_are_all_in_doubt_says_so(client):
    server = factories.server("db1", versions=["16.14"])
    campaign = factories.campaign(on=server, factors={"version": ["16.14"]}, repeats=2)
    factories.finish_all(campaign)
    campaign.runs.update(hardware=server.hardware, validity="doubtful")
    for path in ("/servers/db1/", f"/hardware/{server.hardware_id}/"):
        page = client.get(path).content.decode()
        assert (
            "Every finished cell with repeats has a run that is doubtful or invalid"
            in page
        )
        assert "it takes a finished campaign" not in page


def test_the_page_draws_what_others_took_in_the_last_days(client, ready_server):
    address = f"/servers/{ready_server.slug}/chart.svg?chart=load"
    assert client.get(address).status_code == 404
    noon = timezone.now().replace(hour=12, minute=0, second=0, microsecond=0)
    HourlyLoad.objects.bulk_create(
        HourlyLoad(
            server=ready_server,
            hour=noon - timedelta(hours=hours),
            looks=6,
            share=share,
            highest=2 * share,
        )
        for hours, share in ((30, 0.02), (29, 0.25), (2, 0.01))
    )
    assert "the last days" in client.get(f"/servers/{ready_server.slug}/").text
    assert "<svg" in client.get(address).text
    figure = load_figure(server_selectors.hourly_loads(ready_server))
    means, highest = figure["data"]
    # A day without a look is a gap.
    assert means["y"] == [2.0, 25.0, None, 1.0]
    assert highest["y"] == [4.0, 50.0, 2.0]
    assert [line["y0"] for line in figure["layout"]["shapes"]] == [10.0]


@pytest.mark.parametrize(
    ("share", "word"),
    [
        (0.05, "can measure"),
        (0.5, "only in slices"),
        (0.9, "cannot measure now"),
        (None, "ready"),
    ],
)
def test_the_word_for_a_server_is_the_same_on_every_page(
    member, ready_server, share, word
):
    ready_server.load_share = share
    ready_server.load_at = timezone.now() if share else None
    ready_server.save()
    badge = re.compile(
        r'<span class="badge[^>]*>(?:<svg.*?</svg>)?([^<]*)</span>', re.DOTALL
    )
    hardware = f"/hardware/{ready_server.hardware_id}/"
    for path in ("/", "/servers/", "/servers/db1/", hardware):
        badges = [
            text.strip() for text in badge.findall(member.get(path).content.decode())
        ]
        assert word in badges, path
        assert word == "ready" or "ready" not in badges, path


def test_last_certificates_are_found_behind_whatever_waits(ready_server):
    done = factories.campaign(on=ready_server, factors={"version": ["16.14"]})
    factories.finish_all(done)
    factories.campaign(
        "queue", on=ready_server, factors={"version": ["16.14"]}, repeats=600
    )
    with CaptureQueriesContext(connection) as asked:
        fitness.judge_servers([ready_server])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_run")
        # As in a table that is too large to be read whole.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {asked[0]['sql']}")
        [[plan]] = cursor.fetchall()
    # An index that has nothing of what waits.
    assert "run_public_by_ended_here" in str(plan)
