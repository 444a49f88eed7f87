"""Preflight and editing over real SSH: every problem at once, nothing changed, no hanging."""

import os
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.campaigns.services import campaigns, drafts
from runs.campaigns.services.designs import resolve
from runs.execution import preflight as engine
from runs.execution.machine import privileged
from runs.execution.machine.privileged import Action
from runs.execution.machine.treatment import Treatment
from runs.models import Server
from runs.servers.services import edits as server_edits
from runs.servers.services import logins, preflight, servers, ssh_keys
from runs.servers.services.edits import Edit
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.directing import names
from tests.ssh.openssh import OpenSSH, login_name, short_folder
from tests.ssh.test_base_dir import tree
from tests.ssh.test_command import PARAMETERS, PGBENCH, planted

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


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
    """A ready server whose base directory is not claimed yet."""
    scenarios.sync()
    made = factories.server(
        "rack",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=str(base_dir),
        host_key=openssh.host_key,
        ssh_key=ssh_keys.default(),
        free_bytes=10**12,
    )
    printed = subprocess.run(
        [binaries.postgresql18 / "postgres", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    version = printed.stdout.split()[2]
    number = factories.version_num(version)
    options = {"bindir": str(binaries.postgresql18), "pgbench_version_num": number}
    factories.installation(made, version, has_psql=True, **options)
    return made


def errors(found) -> list[str]:
    return [finding.code for finding in found.findings if finding.level == "error"]


def draft(server, **fields):
    return drafts.Draft(
        **{
            "title": "short",
            "scenario": "fixed-point-read",
            "server": server,
            "installations": list(server.installations.all()),
            "levels": {"clients": [1]},
            "parameters": {"scale": 1, "duration": 1},
            "repeats": 3,
            **fields,
        }
    )


def test_a_server_as_it_should_be_is_clear_and_stays_untouched(server, base_dir):
    found = preflight.check_server(server)
    assert errors(found) == []
    assert found.is_clear
    assert found.target.free_bytes > 0
    assert found.target.memory_bytes >= found.target.available_bytes > 0
    assert abs(found.target.skew_s) <= 1
    assert list(base_dir.iterdir()) == []


def test_a_campaign_that_fits_is_clear(server):
    assert errors(preflight.check_design(resolve(draft(server)))) == []


@pytest.mark.usefixtures("nothing_allowed")
def test_every_problem_is_told_at_once_with_server_and_remedy(server, base_dir):
    (base_dir / "precious").write_text("data")
    before = tree(base_dir)
    base_dir.chmod(0o777)
    factories.installation(server, "9.2.24", bindir="/opt/gone/bin")
    server.privileges = ["drop_caches"]
    server.save()
    asked = draft(server, parameters={"scale": 2_000_000, "duration": 1}, title=" ")
    found = preflight.check_design(resolve(asked))
    assert {
        "no_title",
        "base_dir_foreign",
        "base_dir_world_writable",
        "missing_program",
        "disk_too_small",
    } <= set(errors(found))
    assert "privilege_missing" in {finding.code for finding in found.findings}
    assert not found.is_clear
    assert all(
        finding.server == server.name and finding.remedy for finding in found.findings
    )
    assert len(set(found.findings)) == len(found.findings)
    assert tree(base_dir) == before


def test_memory_for_shared_buffers_is_looked_at(server):
    huge = factories.configuration("huge", settings={"shared_buffers": "4TB"})
    assert "memory_too_small" in errors(
        preflight.check_design(resolve(draft(server, configuration=huge)))
    )


def test_an_installation_of_another_version_is_told(server):
    server.installations.update(version="18.999")
    assert errors(preflight.check_server(server)) == ["installation_changed"]


@pytest.mark.parametrize("name", ["runs", "clusters"])
def test_a_link_that_leads_out_is_told(server, base_dir, name):
    (base_dir / ".benchlab").write_text(f"benchlab {logins.instance_name()} .\n")
    (base_dir / name).symlink_to("/tmp")
    assert errors(preflight.check_server(server)) == ["leads_out"]


def test_a_program_that_an_action_needs_and_is_not_there_is_told(server, monkeypatch):
    nowhere = Action("governor", "", (("/no/such/cpupower", "-g", "performance"),))
    monkeypatch.setattr(privileged, "action", lambda _name: nowhere)
    server.privileges = ["governor"]
    server.save()
    found = preflight.check_server(server).findings
    told = [each.message for each in found if each.code == "missing_program"]
    assert len(told) == 1
    assert "/no/such/cpupower" in told[0]


def test_the_mark_of_another_benchlab_is_told(server, base_dir):
    (base_dir / ".benchlab").write_text("benchlab another .\n")
    assert errors(preflight.check_server(server)) == ["base_dir_foreign"]


def test_a_folder_that_cannot_be_made_is_told(server, account):
    if not account.switch:
        pytest.skip("needs a folder of root's own")
    server.base_dir = "/root-only/lab"
    server.save()
    assert errors(preflight.check_server(server)) == ["base_dir_not_writable"]


def test_a_changed_host_key_is_told_and_nothing_is_executed(server, openssh):
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    assert errors(preflight.check_server(server)) == ["host_key_changed"]


def test_a_host_that_accepts_and_says_nothing_costs_seconds(server, monkeypatch):
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server.port = silent.getsockname()[1]
        server.save()
        found = preflight.check_server(server)
    assert errors(found) == ["host_unreachable"]
    assert found.seconds < 5


def changed(server, **fields) -> Edit:
    given = {name: getattr(server, name) for name in Edit.__dataclass_fields__}
    return Edit(**given | fields)


def test_a_server_that_moved_keeps_its_host_key(server, openssh):
    Server.objects.filter(pk=server.pk).update(port=1)
    edited = server_edits.edit(
        server=server, to=changed(server, name="Rack 7"), by="ichiro"
    )
    edited = servers.inspect(server=edited)
    assert (edited.state, edited.host_key, edited.name) == (
        "ready",
        openssh.host_key,
        "Rack 7",
    )
    event = edited.events.get(code="edited")
    assert (event.code, event.by) == ("edited", "ichiro")
    assert f"port: 1 → {openssh.port}" in event.message


def test_an_unused_base_directory_is_given_back(server, base_dir):
    servers.inspect(server=server)
    assert sorted(names(base_dir)) == [".benchlab", "clusters", "leases", "runs"]
    server.refresh_from_db()
    edited = server_edits.edit(
        server=server, to=changed(server, base_dir=f"{base_dir}/inner")
    )
    assert list(base_dir.iterdir()) == []
    assert servers.inspect(server=edited).state == "ready"
    assert names(base_dir) == ["inner"]


def test_a_base_directory_in_which_something_lies_is_not_left(server, base_dir):
    servers.inspect(server=server)
    (base_dir / "clusters" / "left").mkdir()
    server.refresh_from_db()
    with pytest.raises(ServiceError) as told:
        server_edits.edit(server=server, to=changed(server, base_dir="/elsewhere/lab"))
    assert (told.value.code, told.value.field) == ("base_dir_in_use", "base_dir")
    assert (base_dir / ".benchlab").exists()
    server.refresh_from_db()
    assert server.base_dir == str(base_dir)


def test_a_base_directory_that_runs_wait_for_is_not_changed(server):
    campaign = campaigns.create(draft=draft(server))
    with pytest.raises(ServiceError) as told:
        server_edits.edit(server=server, to=changed(server, base_dir="/elsewhere/lab"))
    assert told.value.code == "base_dir_in_use"
    campaign.runs.filter(pk=campaign.runs.first().pk).update(state="measuring")
    with pytest.raises(ServiceError) as told:
        server_edits.edit(server=server, to=changed(server, username="other"))
    assert told.value.code == "server_busy"


def test_a_base_directory_from_which_load_is_to_come_is_not_changed(server):
    plan = {"generators": [{"server_id": server.pk}]}
    factories.run(server=factories.server("database"), plan=plan)
    with pytest.raises(ServiceError) as told:
        server_edits.edit(server=server, to=changed(server, base_dir="/elsewhere/lab"))
    assert told.value.code == "base_dir_in_use"


def test_a_hop_needs_no_base_directory(server, openssh, account):
    hop = server_edits.edit(server=server, to=changed(server, base_dir=""))
    assert servers.inspect(server=hop).state == "ready"
    behind = servers.register(
        name="behind",
        address="localhost",
        port=openssh.port,
        username=login_name(account),
        base_dir="/b/c",
        bindirs=[],
        jump=hop,
    )
    assert servers.fingerprint(behind.offered_host_key) == servers.fingerprint(
        openssh.host_key
    )
    assert errors(preflight.check_server(hop)) == ["only_a_hop"]


def test_a_hop_whose_key_changed_is_named_and_the_server_behind_it_comes_back(
    server, openssh
):
    hop = factories.server(
        "hop",
        address="localhost",
        port=openssh.port,
        username=server.username,
        base_dir="",
        host_key=factories.HOST_KEY,
        ssh_key=ssh_keys.default(),
    )
    Server.objects.filter(pk=server.pk).update(jump=hop)
    behind = servers.inspect(server=Server.objects.get(pk=server.pk))
    assert (behind.state, behind.problem_code) == ("unreachable", "hop_key_changed")
    assert behind.problem.startswith("At the hop hop: ")
    assert behind.offered_host_key == ""
    Server.objects.filter(pk=hop.pk).update(host_key=openssh.host_key)
    assert servers.inspect(server=Server.objects.get(pk=server.pk)).state == "ready"


# Preflight of load generators over real SSH: asked together with the databases.


@pytest.fixture
def generator(server, account):
    """A machine besides the database's that generates the load."""
    folder = short_folder()
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    made = factories.server(
        "load",
        address="localhost",
        port=server.port,
        username=server.username,
        base_dir=str(folder),
        host_key=server.host_key,
        ssh_key=server.ssh_key,
    )
    [known] = server.installations.all()
    number = known.pgbench_version_num
    factories.installation(
        made, known.version, bindir=known.bindir, pgbench_version_num=number
    )
    yield made
    shutil.rmtree(folder)


def told_of(machine, found) -> set[str]:
    assert all(each.remedy for each in found.findings)
    return {
        each.code
        for each in found.findings
        if each.server == machine.name and each.level == "error"
    }


def test_a_load_generator_is_asked_too_and_stays_untouched(server, generator):
    found = preflight.check_design(resolve(draft(server, generators=[generator])))
    assert errors(found) == []
    assert found.has_answers
    assert found.names == f"{server.name}, {generator.name}"
    assert list(Path(generator.base_dir).iterdir()) == []


def test_every_problem_of_a_load_generator_names_it(server, generator):
    Path(generator.base_dir, "precious").write_text("data")
    generator.installations.update(bindir="/opt/gone/bin")
    server.address = "nowhere.invalid"
    server.save()
    found = preflight.check_design(resolve(draft(server, generators=[generator])))
    assert told_of(generator, found) == {
        "base_dir_foreign",
        "missing_program",
        "database_not_resolved",
    }
    assert "nowhere.invalid" in " ".join(each.message for each in found.findings)


def test_a_load_generator_with_another_host_key_is_told(server, generator):
    generator.host_key = factories.HOST_KEY
    generator.save()
    found = preflight.check_design(resolve(draft(server, generators=[generator])))
    assert told_of(generator, found) == {"host_key_changed"}
    assert not found.has_answers


def test_only_what_the_campaign_does_on_a_load_generator_is_asked_of_its_sudo(
    server, generator
):
    generator.privileges = ["drop_caches", "governor"]
    generator.save()
    asked = draft(server, generators=[generator])
    assert told_of(generator, preflight.check_design(resolve(asked))) == set()
    asked = replace(asked, treatment=Treatment(governor="performance"))
    refused = {"privilege_missing", "missing_program"}
    assert told_of(generator, preflight.check_design(resolve(asked))) & refused


def test_a_silent_database_and_a_silent_generator_are_waited_for_together(
    server, generator, monkeypatch
):
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for each in (server, generator):
            each.address, each.port = "127.0.0.1", silent.getsockname()[1]
            each.save()
        found = preflight.check_design(resolve(draft(server, generators=[generator])))
    assert "host_unreachable" in told_of(server, found) & told_of(generator, found)
    assert found.seconds < 5.5


def test_an_address_without_a_route_is_told_and_one_with_a_route_is_not():
    alone = ["unshare", "--net", "--map-root-user"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*alone, "true"], check=False).returncode
    ):
        pytest.skip("needs a network namespace")
    script = Path(engine.__file__).with_name("preflight.sh").read_text()
    addresses = ["198.51.100.1", "127.0.0.1"]
    asked = ["sh", "-c", script, "preflight", "/tmp", "mark", "--", "--", *addresses]
    up = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    said = subprocess.run(
        [*alone, *up, *asked], capture_output=True, text=True, check=True
    )
    target = engine.read(said.stdout, before=0, after=0)
    assert (target.no_routes, target.unresolved) == (("198.51.100.1",), ())
    assert "ip" in target.tools


def test_a_generator_without_ip_is_told_what_to_install(server, generator, monkeypatch):
    monkeypatch.setattr(
        engine, "_SCRIPT", engine._SCRIPT.replace("perf ip", "perf no-such-ip")
    )
    found = preflight.check_design(resolve(draft(server, generators=[generator])))
    assert told_of(server, found) == set()
    [error] = [each for each in found.findings if each.level == "error"]
    assert (error.server, error.code) == (generator.name, "missing_program")
    assert "iproute2" in error.remedy


def test_what_is_no_command_is_refused_before_it_is_queued(server, base_dir, tmp_path):
    commands = base_dir / "commands"
    commands.mkdir()
    commands.chmod(0o755)
    codes = planted(commands, tmp_path / "outside")
    (commands / "bench.sh").write_text(PGBENCH)
    (commands / "bench.sh").chmod(0o755)
    before = tree(base_dir)

    def asked(*names_asked: str):
        return draft(
            server,
            scenario="command",
            levels={"command": list(names_asked)},
            parameters=PARAMETERS,
        )

    assert errors(preflight.check_design(resolve(asked("bench.sh")))) == []
    found = preflight.check_design(resolve(asked("bench.sh", *codes)))
    assert sorted(set(errors(found))) == sorted(set(codes.values()))
    told = [finding for finding in found.findings if finding.level == "error"]
    assert len(told) == len(codes)
    assert all("There are: bench.sh." in finding.remedy for finding in told)
    assert tree(base_dir) == before
    commands.rename(tmp_path / "commands")
    commands.symlink_to(tmp_path / "commands")
    found = preflight.check_design(resolve(asked("bench.sh")))
    assert "command_is_link" in errors(found)
