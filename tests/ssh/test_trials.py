"""Own scripts on a scratch cluster of a real server: what it finds, how it ends, what is left."""

import shutil
from types import SimpleNamespace

import pytest

from runs.campaigns.services.designs import resolve
from runs.execution.clusters import scratch
from runs.execution.errors import ConnectionLost
from runs.execution.plan import WorkloadContent
from runs.models import Lease, Server, ServerCheck, Workload
from runs.queue.services import sweeping
from runs.scenarios import registry
from runs.servers.services import host_keys, preflight, servers
from runs.shared.errors import ServiceError
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import scenarios, trials, workloads
from tests import factories
from tests.checks import carry_out
from tests.ssh.directing import left_running, names
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]

GOOD = r"""\set aid random(1, 100000 * :scale)
UPDATE pgbench_accounts SET abalance = abalance + 1
WHERE aid = :aid;
INSERT INTO orders (id) VALUES (:aid);
"""
LEVELS = {
    "scale": [1],
    "clients": [1],
    "query_mode": ["simple"],
    "connection": ["kept"],
}


@pytest.fixture
def openssh(sshd_binary, account):
    """An sshd that lets BenchLab's own key in."""
    server = OpenSSH(sshd_binary, short_folder(), account)
    server.prepare(servers.public_key())
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture
def server(openssh, account, base_dir, binaries) -> Server:
    scenarios.sync()
    made = servers.register(
        name="Rack",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=f"{base_dir}/lab",
        bindirs=[str(binaries.postgresql16), str(binaries.postgresql18)],
    )
    fingerprint = servers.fingerprint(made.offered_host_key)
    return servers.inspect(
        server=host_keys.confirm(server=made, fingerprint=fingerprint)
    )


def content(*texts, **changed):
    """A workload of scripts named a, b, ..., with a table of its own."""
    scripts = tuple(
        GivenScript(name, text) for name, text in zip("abcdef", texts, strict=False)
    )
    sql = (
        "CREATE TABLE orders (id int);\n"
        "INSERT INTO orders SELECT generate_series(1, 10 * :scale);"
    )
    return WorkloadContent(**{"scripts": scripts, "init_sql": sql, **changed})


def faults(server, *texts, **changed):
    found = trials.tried(server=server, content=content(*texts, **changed))
    return [(each.pointer, each.code) for each in found], " | ".join(
        each.message for each in found
    )


def test_scripts_are_tried_once_each_and_nothing_is_left(server, base_dir, monkeypatch):
    monkeypatch.setattr(scratch, "SCRIPT_SECONDS", 4)
    monkeypatch.setitem(scratch.SETTINGS, "statement_timeout", "1s")
    assert faults(server, GOOD, variables={"most": "3"}) == ([], "")
    told, said = faults(
        server,
        GOOD.replace("abalance + 1", "nothing + 1"),
        "SELECT 1;\nSELECT pg_sleep(3600);",
        "\\sleep 600 s\nSELECT 1;",
        "SELECT 1;\n\\set a random(2, 1)\nSELECT :a;",
        "\\set a 1 / 0\nSELECT :a;",
    )
    assert told == [
        ("/scripts/0", "sql_error"),
        ("/scripts/1", "never_ends"),
        ("/scripts/2", "never_ends"),
        ("/scripts/3", "bad_command"),
        ("/scripts/4", "bad_command"),
    ]
    for sentence in (
        "Line 2: PostgreSQL 18.",
        'column "nothing" does not exist',
        "Line 2: It does not end within",
        "Line 2: pgbench says: ",
        "empty range given to random",
        "Line 1: pgbench says:",
        "division by zero",
    ):
        assert sentence in said
    told, said = faults(
        server, GOOD, init_sql="CREATE TABLE orders (id int);\nSELECT wrong;"
    )
    assert told == [("/init_sql", "sql_error")]
    assert "Line 2: " in said
    assert left_running(base_dir) == []
    assert names(base_dir / "lab/clusters") == []
    assert not Server.objects.get(pk=server.pk).needs_sweep


def test_the_editor_shows_what_a_worker_finds(
    server, base_dir, client, django_user_model
):
    sent = {
        "name": "Own",
        "description": "",
        "variables": "",
        "init_options": "",
        "init_sql": "",
        "form-TOTAL_FORMS": 1,
        "form-INITIAL_FORMS": 0,
        "form-0-name": "read",
        "form-0-weight": 1,
        "form-0-text": "SELECT wrong;",
        "try": "1",
    }
    client.force_login(django_user_model.objects.create_superuser("hanako"))
    page = client.post("/workloads/new/", sent).content.decode()
    assert "Choose a server." in page
    page = client.post("/workloads/new/", sent | {"server": server.pk}).content.decode()
    check = ServerCheck.objects.get()
    assert f'hx-get="/servers/checks/{check.pk}/"' in page
    assert "SELECT wrong;" in page
    carry_out()
    shown = client.get(f"/servers/checks/{check.pk}/", headers={"HX-Request": "true"})
    assert "read: Line 1: PostgreSQL 18." in shown.content.decode()
    assert "data-poll" not in shown.content.decode()
    assert "HX-Refresh" not in shown
    assert "read: Line 1" in client.get(f"/servers/checks/{check.pk}/").content.decode()
    assert not Workload.objects.exists()
    assert names(base_dir / "lab/clusters") == []


def test_a_server_that_measures_is_not_disturbed(server):
    run = factories.run()
    Lease.objects.filter(server=server).update(run=run)
    with pytest.raises(ServiceError) as told:
        trials.tried(server=server, content=content(GOOD))
    assert told.value.code == "server_busy"
    assert not Server.objects.get(pk=server.pk).needs_sweep


def test_a_server_is_cleaned_up_after_a_trial_that_was_lost(
    server, base_dir, monkeypatch
):
    async def lost(*_given):
        raise ConnectionLost("gone")

    with monkeypatch.context() as patched:
        patched.setattr(scratch._Trial, "scripts", lost)
        patched.setattr(scratch, "postgres", SimpleNamespace(stop_in=lost))
        with pytest.raises(ServiceError) as told:
            trials.tried(server=server, content=content(GOOD))
    assert told.value.code == "connection_lost"
    assert names(base_dir / "lab/clusters") == [scratch.FOLDER]
    assert Server.objects.get(pk=server.pk).needs_sweep
    sweeping.sweep_where_needed(server_id=server.pk)
    assert not Server.objects.get(pk=server.pk).needs_sweep
    assert left_running(base_dir) == []
    assert names(base_dir / "lab/clusters") == []


def test_a_notice_is_no_fault_and_what_the_server_says_has_no_control_characters(
    server,
):
    assert faults(server, "DROP TABLE IF EXISTS aborted_orders;") == ([], "")
    _told, said = faults(server, "DO $$ BEGIN RAISE 'a%b', chr(27); END $$;")
    assert "a\\x1bb" in said


def test_preflight_tries_the_scripts_on_the_oldest_version_of_the_campaign(
    server, base_dir
):
    """MERGE ... RETURNING came with 17; of 16 and 18 the older one refuses it."""
    merge = (
        "MERGE INTO orders USING (SELECT 1 AS id) AS new ON orders.id = new.id\n"
        "WHEN MATCHED THEN DO NOTHING RETURNING orders.id;"
    )
    for text in (GOOD, merge):
        workloads.create(name="w", description="", content=content(text))
    found = {}
    for name in ("w@1", "w-2@1"):
        draft = factories.draft(
            server,
            scenario="pgbench",
            installations=list(server.installations.filter(version_num__gte=160000)),
            levels=LEVELS | {"script": [name]},
            parameters={
                each.name: each.default for each in registry.get("pgbench").parameters
            },
        )
        flown = preflight.check_design(resolve(draft)).findings
        found[name] = [each.message for each in flown if each.level == "error"]
    assert found["w@1"] == []
    assert ["w-2@1: a: Line 2: PostgreSQL 16." in each for each in found["w-2@1"]] == [
        True
    ]
    assert names(base_dir / "lab/clusters") == []


def test_a_pipeline_is_tried_in_the_protocol_that_has_it(server):
    pipeline = (
        "\\startpipeline\nSELECT 1;\nSELECT count(*) FROM orders;\n\\endpipeline\n"
    )
    assert faults(server, pipeline) == ([], "")
