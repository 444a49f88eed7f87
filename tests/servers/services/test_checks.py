"""Checks of servers: asked for by a request, made by a worker, one at a time for a server."""

import json
import socket
import time

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from runs.access.services import audit
from runs.campaigns.services.drafts import Draft
from runs.execution.errors import HostUnreachable
from runs.execution.plan import WorkloadContent
from runs.models import CheckedServer, Server, ServerCheck
from runs.scenarios import registry
from runs.servers.selectors.servers import last_of
from runs.servers.services import (
    edits,
    logins,
    preflight,
    server_checks,
    servers,
    ssh_keys,
)
from runs.shared.errors import ServiceError
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import scenarios, trials, workloads
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    return factories.server(
        "db1", address="127.0.0.1", port=1, ssh_key=ssh_keys.default()
    )


def overdue(check):
    """As it is when its time is over."""
    ServerCheck.objects.filter(pk=check.pk).update(deadline=timezone.now())


def test_the_same_check_is_joined_and_another_one_waits_its_turn(server):
    first = server_checks.look_at(server=server)
    assert server_checks.look_at(server=server).pk == first.pk
    with pytest.raises(ServiceError) as told:
        server_checks.request_server_check(server=server)
    assert told.value.code == "server_looked_at"
    carry_out()
    assert server_checks.request_server_check(server=server).pk != first.pk


def test_the_same_trial_is_joined_by_who_asked_for_it(server):
    content = WorkloadContent(scripts=(GivenScript("a", "SELECT 1;"),))
    first = server_checks.request_workload_check(server=server, content=content)
    assert (
        server_checks.request_workload_check(server=server, content=content).pk
        == first.pk
    )
    with (
        audit.acting(audit.Actor("ichiro", "page")),
        pytest.raises(ServiceError) as told,
    ):
        server_checks.request_workload_check(server=server, content=content)
    assert told.value.code == "server_looked_at"


def test_the_database_itself_allows_one_open_check_a_server(server):
    other = ServerCheck.objects.create(kind="inspection", deadline=timezone.now())
    server_checks.look_at(server=server)
    with pytest.raises(IntegrityError), transaction.atomic():
        CheckedServer.objects.create(server=server, server_check=other)


def test_a_campaigns_check_holds_all_its_servers_and_belongs_to_who_asked(server):
    second = factories.server(
        "db2", address="127.0.0.1", port=1, ssh_key=ssh_keys.default()
    )
    draft = factories.draft(server, more_servers=[second])
    with audit.acting(audit.Actor("ichiro", "page")):
        asked = server_checks.request_draft_check(draft=draft)
        assert server_checks.request_draft_check(draft=draft).pk == asked.pk
    for act in (
        lambda: server_checks.request_draft_check(draft=draft),
        lambda: server_checks.look_at(server=second),
    ):
        with pytest.raises(ServiceError):
            act()
    carry_out()
    asked.refresh_from_db()
    assert {each["server"] for each in asked.answer["findings"]} >= {"db1", "db2"}
    assert not CheckedServer.objects.exists()


def test_asking_takes_as_many_statements_for_one_server_as_for_ten():
    key = ssh_keys.default()
    machines = [factories.server(f"rack-{each}", ssh_key=key) for each in range(11)]
    counts = []
    for drafted in (machines[:1], machines[1:]):
        draft = factories.draft(drafted[0], more_servers=drafted[1:])
        with CaptureQueriesContext(
            connection,
        ) as made:
            server_checks.request_draft_check(draft=draft)
        counts.append(len(made))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("state", ["waiting", "active"])
def test_what_no_worker_takes_or_ends_says_so_and_lets_the_server_go(server, state):
    check = server_checks.look_at(server=server)
    ServerCheck.objects.filter(pk=check.pk).update(state=state)
    server_checks.give_up_the_overdue()
    check.refresh_from_db()
    assert check.state == state
    overdue(check)
    again = server_checks.look_at(server=server)
    check.refresh_from_db()
    codes = {"waiting": "no_worker_took_it", "active": "worker_lost"}
    assert (check.state, check.code) == ("failed", codes[state])
    assert check.remedy
    assert again.pk != check.pk


def test_a_late_worker_and_a_second_one_do_nothing(server, monkeypatch):
    made = []
    monkeypatch.setattr(servers, "inspect", lambda *, server: made.append(server))
    late = server_checks.look_at(server=server)
    overdue(late)
    server_checks.carry_out(check_id=str(late.pk))
    assert made == []
    check = server_checks.look_at(server=server)
    server_checks.carry_out(check_id=str(check.pk))
    server_checks.carry_out(check_id=str(check.pk))
    assert made == [server]


@pytest.fixture
def own_scripts(server, monkeypatch):
    """A campaign of three workloads on a server that answers, and the trials that are made."""
    scenarios.sync()
    factories.installation(server, "18.4", has_psql=True, pgbench_version_num=180004)
    content = WorkloadContent(scripts=(GivenScript("a", "SELECT 1;"),))
    made = [
        workloads.create(name=name, description="", content=content) for name in "abc"
    ]
    levels = {"script": [str(each) for each in made], "scale": [1], "clients": [1]}
    levels |= {"query_mode": ["simple"], "connection": ["kept"]}
    clear = preflight.Preflight((server,), [], (None,), 0.1)
    monkeypatch.setattr(preflight, "_fly", lambda _asked, _design: clear)
    tried = []
    monkeypatch.setattr(trials, "tried", lambda **given: tried.append(given) or [])
    pgbench = registry.get("pgbench")
    parameters = {each.name: each.default for each in pgbench.parameters}
    draft = factories.draft(
        server, scenario="pgbench", levels=levels, parameters=parameters
    )
    return draft, tried


def test_each_trial_of_a_campaigns_scripts_has_its_time(own_scripts, monkeypatch):
    draft, _made = own_scripts
    left = []

    def slowly(**_given):
        """All of a trial's time has passed when it ends."""
        check = ServerCheck.objects.get()
        left.append((check.deadline - timezone.now()).total_seconds())
        overdue(check)
        return []

    monkeypatch.setattr(trials, "tried", slowly)
    check = server_checks.request_draft_check(draft=draft)
    carry_out()
    check.refresh_from_db()
    assert check.state == "done"
    assert len(left) == 3
    assert min(left) > trials.WHOLE_SECONDS


def test_a_check_that_was_given_up_tries_no_further_scripts(own_scripts, monkeypatch):
    draft, _made = own_scripts
    made = []

    def lost(**given):
        made.append(given)
        overdue(ServerCheck.objects.get())
        server_checks.give_up_the_overdue()
        return []

    monkeypatch.setattr(trials, "tried", lost)
    check = server_checks.request_draft_check(draft=draft)
    carry_out()
    check.refresh_from_db()
    assert (check.state, check.code, len(made)) == ("failed", "worker_lost", 1)


def test_scripts_that_nobody_asked_to_run_are_named_and_not_run(own_scripts):
    draft, made = own_scripts
    check = server_checks.request_draft_check(draft=draft, tries_scripts=False)
    carry_out()
    check.refresh_from_db()
    assert check.answer["untried"] == ["a@1", "b@1", "c@1"]
    assert made == []


def test_a_fault_of_benchlab_is_told_and_ends_the_check(server, monkeypatch, caplog):
    def broken(*, server):
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(servers, "inspect", broken)
    check = server_checks.look_at(server=server)
    carry_out()
    check.refresh_from_db()
    assert (check.state, check.code) == ("failed", "internal_error")
    assert "a secret" not in check.message + check.remedy
    assert "a secret of the inside" in caplog.text


def test_an_answer_that_cannot_be_stored_ends_the_check(server, monkeypatch):
    told = {"faults": ["a\0b"]}
    monkeypatch.setitem(server_checks._MAKE, "inspection", lambda _check: told)
    check = server_checks.look_at(server=server)
    carry_out()
    check.refresh_from_db()
    assert (check.state, check.code) == ("failed", "internal_error")
    assert not CheckedServer.objects.exists()


def test_whoever_gives_a_check_up_uses_the_language_of_who_asked(server):
    with translation.override("ja"):
        check = server_checks.look_at(server=server)
    overdue(check)
    server_checks.give_up_the_overdue()
    check.refresh_from_db()
    assert check.code == "no_worker_took_it"
    assert check.message != "No worker has taken this check."


def test_a_failed_inspection_is_shown_until_a_later_one(server):
    check = server_checks.look_at(server=server)
    overdue(check)
    server_checks.give_up_the_overdue()
    assert last_of(server) == check
    server.checked_at = timezone.now()
    assert last_of(server) is None


def test_the_answer_is_in_the_language_of_who_asked(server, monkeypatch):
    spoken = []
    monkeypatch.setattr(
        servers, "inspect", lambda **_given: spoken.append(translation.get_language())
    )
    with translation.override("ja"):
        server_checks.look_at(server=server)
    carry_out()
    assert (spoken, translation.get_language()) == (["ja"], "en")


def test_an_inspection_says_nothing_about_a_server_that_was_edited_meanwhile(
    server, monkeypatch
):
    def edited_meanwhile(question, asked):
        question.close()
        Server.objects.filter(pk=asked.pk).update(
            address="192.0.2.9", state="unreachable"
        )
        raise HostUnreachable("Nothing answers at the old address.")

    monkeypatch.setattr(logins, "ask", edited_meanwhile)
    inspected = servers.inspect(server=server)
    assert (inspected.address, inspected.problem_code) == ("192.0.2.9", "")


def test_an_edit_that_needs_the_machine_waits_for_a_worker_and_is_its_authors(server):
    Server.objects.update(state="ready")
    server.refresh_from_db()
    now = {name: getattr(server, name) for name in edits.Edit.__dataclass_fields__}
    to = edits.Edit(**{**now, "base_dir": "/elsewhere/lab"})
    assert edits.restored(edits.stored(to, server=server), server=server) == to
    assert edits.needs_the_machine(server=server, to=to)
    check = server_checks.edit(server=server, to=to)
    carry_out()
    check.refresh_from_db()
    server.refresh_from_db()
    assert (check.state, check.code) == ("failed", "host_unreachable")
    assert server.base_dir != "/elsewhere/lab"


def test_an_edit_that_waited_leaves_what_was_changed_after_it(server):
    now = {name: getattr(server, name) for name in edits.Edit.__dataclass_fields__}
    asked = edits.Edit(**{**now, "base_dir": "/elsewhere/lab", "name": "Rack 1"})
    kept = edits.stored(asked, server=server)
    Server.objects.update(name="Rack 2", port=2200)
    server.refresh_from_db()
    later = edits.restored(kept, server=server)
    assert (later.base_dir, later.name, later.port) == (
        "/elsewhere/lab",
        "Rack 2",
        2200,
    )
    # Of a release that did not keep what the server was like.
    kept.pop("was")
    assert edits.restored(kept, server=server) == asked


def test_a_draft_comes_back_as_it_was(server):
    factories.installation(server, "18.4")
    chosen = factories.configuration("other")
    draft = factories.draft(
        server,
        configuration=factories.configuration("one"),
        more_configurations=[chosen],
        more_servers=[factories.server("second")],
        cluster_servers=[factories.server("third")],
        settings={"work_mem": ["1MB", "2MB"]},
        generators=[factories.server("load")],
        client=server.installations.first(),
        wanted_half_width=0.02,
        most_repeats=9,
    )
    stored = json.loads(json.dumps(draft.to_json()))
    assert Draft.from_json(stored) == draft
    # A check that waited during an update has the servers and configurations in lists.
    stored["servers"] = [stored.pop("server"), *stored.pop("more_servers")]
    more_configurations = stored.pop("more_configurations")
    stored["configurations"] = [stored.pop("configuration"), *more_configurations]
    assert Draft.from_json(stored) == draft


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["inspect", "preflight", "register", "confirm"])
def test_a_request_to_a_silent_machine_is_answered_at_once(
    client, django_user_model, monkeypatch, kind
):
    monkeypatch.setattr(logins, "MOST_SECONDS", 3.0)
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 3.0)
    client.force_login(django_user_model.objects.create_superuser("hanako"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = {"address": "127.0.0.1", "port": silent.getsockname()[1]}
        form = {
            **given,
            "name": "db2",
            "username": "b",
            "base_dir": "/srv/b",
            "bindirs": "",
        }
        made = factories.server("db1", ssh_key=ssh_keys.default(), **given)
        if kind == "confirm":
            offered = {"host_key": "", "offered_host_key": factories.HOST_KEY}
            Server.objects.filter(pk=made.pk).update(state="unconfirmed", **offered)
        sent = {"fingerprint": servers.fingerprint(factories.HOST_KEY)}
        began = time.monotonic()
        if kind == "register":
            answer = client.post("/servers/new/", form | {"port": given["port"]})
        else:
            answer = client.post(f"/servers/db1/{kind}/", sent)
        client.get(answer.url)
        assert time.monotonic() - began < 3
        assert ServerCheck.objects.get().is_open
        carry_out()
        assert time.monotonic() - began < 20
    assert not ServerCheck.objects.get().is_open
    assert "host_unreachable" in client.get(answer.url).content.decode()


def test_a_check_that_was_given_up_stays_so_when_its_worker_ends_it(
    server, monkeypatch
):
    def given_up_meanwhile(check):
        overdue(check)
        server_checks.give_up_the_overdue()

    monkeypatch.setitem(server_checks._MAKE, "inspection", given_up_meanwhile)
    check = server_checks.look_at(server=server)
    carry_out()
    check.refresh_from_db()
    assert (check.state, check.code) == ("failed", "worker_lost")
