"""Preflight of load generators over real SSH: asked together with the databases."""

import os
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import preflight as engine
from runs.execution.treatment import Treatment
from runs.services.campaigns.designs import resolve
from runs.services.servers import preflight
from tests import factories
from tests.ssh.openssh import short_folder
from tests.ssh.test_preflight import draft, errors, openssh, server

__all__ = ["openssh", "server"]
pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


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
    factories.installation(made, known.version, bindir=known.bindir, pgbench_version_num=number)
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
    found = preflight.of_design(resolve(draft(server, generators=[generator])))
    assert errors(found) == []
    assert found.has_answers
    assert found.names == f"{server.name}, {generator.name}"
    assert list(Path(generator.base_dir).iterdir()) == []


def test_every_problem_of_a_load_generator_names_it(server, generator):
    Path(generator.base_dir, "precious").write_text("data")
    generator.installations.update(bindir="/opt/gone/bin")
    server.address = "nowhere.invalid"
    server.save()
    found = preflight.of_design(resolve(draft(server, generators=[generator])))
    assert told_of(generator, found) == {
        "base_dir_foreign",
        "missing_program",
        "database_not_resolved",
    }
    assert "nowhere.invalid" in " ".join(each.message for each in found.findings)


def test_a_load_generator_with_another_host_key_is_told(server, generator):
    generator.host_key = factories.HOST_KEY
    generator.save()
    found = preflight.of_design(resolve(draft(server, generators=[generator])))
    assert told_of(generator, found) == {"host_key_changed"}
    assert not found.has_answers


def test_only_what_the_campaign_does_on_a_load_generator_is_asked_of_its_sudo(server, generator):
    generator.privileges = ["drop_caches", "governor"]
    generator.save()
    asked = draft(server, generators=[generator])
    assert told_of(generator, preflight.of_design(resolve(asked))) == set()
    asked = replace(asked, treatment=Treatment(governor="performance"))
    refused = {"privilege_missing", "missing_program"}
    assert told_of(generator, preflight.of_design(resolve(asked))) & refused


def test_a_silent_database_and_a_silent_generator_are_waited_for_together(
    server, generator, monkeypatch
):
    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for each in (server, generator):
            each.address, each.port = "127.0.0.1", silent.getsockname()[1]
            each.save()
        found = preflight.of_design(resolve(draft(server, generators=[generator])))
    assert "host_unreachable" in told_of(server, found) & told_of(generator, found)
    assert found.seconds < 5.5


def test_an_address_without_a_route_is_told_and_one_with_a_route_is_not():
    alone = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("needs a network namespace")
    script = Path(engine.__file__).with_name("preflight.sh").read_text()
    addresses = ["198.51.100.1", "127.0.0.1"]
    asked = ["sh", "-c", script, "preflight", "/tmp", "mark", "--", "--", *addresses]
    up = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    said = subprocess.run([*alone, *up, *asked], capture_output=True, text=True, check=True)
    target = engine.read(said.stdout, before=0, after=0)
    assert (target.no_routes, target.unresolved) == (("198.51.100.1",), ())
    assert "ip" in target.tools


def test_a_generator_without_ip_is_told_what_to_install(server, generator, monkeypatch):
    monkeypatch.setattr(engine, "_SCRIPT", engine._SCRIPT.replace("perf ip", "perf no-such-ip"))
    found = preflight.of_design(resolve(draft(server, generators=[generator])))
    assert told_of(server, found) == set()
    [error] = [each for each in found.findings if each.level == "error"]
    assert (error.server, error.code) == (generator.name, "missing_program")
    assert "iproute2" in error.remedy
