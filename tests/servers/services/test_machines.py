"""What a server is made of and has, and the keys and hops by which it is reached."""

import subprocess
from dataclasses import replace

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from runs.access.services import encryption, projects
from runs.campaigns.services import campaigns, estimates
from runs.execution.machine.machine_facts import Disk, Hardware, OperatingSystem
from runs.execution.machine.target_facts import Facts
from runs.execution.plan import RunPlan
from runs.models import Run, Server, SSHKey, Webhook
from runs.servers.services import logins as ways
from runs.servers.services import machines, ssh_keys
from runs.servers.services.tools import installed, tools_among
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


# Changes of a machine: reported once, with the changed facts.


HARDWARE = Hardware(
    cpu_model="AMD EPYC 7571",
    sockets=1,
    cores=16,
    threads=32,
    memory_bytes=64 * 2**30,
    virtualization="",
    product="",
    disks=(Disk("sda", 10**12, False, "fast"),),
)
SYSTEM = OperatingSystem(
    name="Debian 12",
    kernel="Linux 6.1",
    architecture="x86_64",
    governor="powersave",
    kernel_settings={"vm.swappiness": "60"},
)


@pytest.fixture
def server():
    server = factories.server()
    server.hardware = server.environment = None
    server.save()
    return server


def look(server, hardware=HARDWARE, system=SYSTEM):
    machines.keep(server=server, hardware=hardware, system=system)
    server.save()
    server.refresh_from_db()


def told(server):
    return [(event.code, event.message) for event in server.events.order_by("pk")]


def test_the_first_look_and_an_unchanged_machine_tell_nothing(server):
    look(server)
    look(server)
    assert told(server) == []
    assert server.hardware.threads == 32
    assert server.environment.facts["kernel_settings"] == {"vm.swappiness": "60"}


def test_a_setting_that_somebody_changed_is_told_with_both_values(server):
    look(server)
    hardware = server.hardware
    look(server, system=replace(SYSTEM, kernel_settings={"vm.swappiness": "1"}))
    assert told(server) == [
        ("environment_changed", "kernel_settings.vm.swappiness: 60 → 1")
    ]
    assert server.hardware == hardware


def test_more_memory_and_another_disk_are_told(server):
    look(server)
    disks = (Disk("sdb", 10**12, False, "fast"), Disk("sda", 2 * 10**12, True, "slow"))
    look(server, hardware=replace(HARDWARE, memory_bytes=128 * 2**30, disks=disks))
    ((code, message),) = told(server)
    assert code == "hardware_changed"
    assert f"memory_bytes: {64 * 2**30} → {128 * 2**30}" in message
    assert "model slow" in message


def test_what_was_not_known_before_is_no_change(server):
    look(server)
    look(server, system=replace(SYSTEM, tools={"sysstat": "12.6.1"}))
    assert told(server) == []
    assert server.environment.facts["tools"] == {"sysstat": "12.6.1"}


def test_pages_that_another_kernel_keeps_for_itself_are_no_change(server):
    """Wherever the bounds of a grain lie: these few MB step over one."""
    below = replace(HARDWARE, memory_bytes=64 * 2**30 + 127 * 2**20)
    above = replace(HARDWARE, memory_bytes=64 * 2**30 + 129 * 2**20)
    assert below.fingerprint != above.fingerprint
    look(server, hardware=below)
    hardware = server.hardware
    look(server, hardware=above)
    assert (server.hardware, told(server)) == (hardware, [])
    look(server, hardware=replace(HARDWARE, memory_bytes=65 * 2**30))
    assert server.hardware != hardware


NEW_KERNEL = replace(SYSTEM, kernel="Linux 6.8", governor="performance")


@pytest.fixture
def run(server):
    """A run that was queued when its server still had an older kernel, and its load generator."""
    look(server)
    generator = factories.server()
    run = factories.campaign(on=server, factors={"clients": [1]}, repeats=1).runs.get()
    run.plan = {"generators": [{"name": "load1", "server_id": generator.pk}]}
    run.hardware, run.environment = server.hardware, server.environment
    run.save()
    return run


def find(run, name="db", *, found=True, is_taken_over=False):
    facts = Facts(HARDWARE, NEW_KERNEL) if found else None
    machines.keep_found(run=run, name=name, facts=facts, is_taken_over=is_taken_over)
    run.refresh_from_db()
    run.server.refresh_from_db()


def test_a_run_has_the_facts_of_its_begin_and_its_server_tells_the_change(run):
    find(run)
    assert run.environment.kernel == run.server.environment.kernel == "Linux 6.8"
    assert run.hardware == run.server.hardware
    ((code, message),) = told(run.server)
    assert code == "environment_changed"
    assert "kernel: Linux 6.1 → Linux 6.8" in message
    find(run)
    assert len(told(run.server)) == 1


def test_a_worker_that_takes_a_run_over_tells_no_change_of_its_server(run):
    find(run, is_taken_over=True)
    assert run.environment.kernel == "Linux 6.8"
    assert run.server.environment.kernel == "Linux 6.1"
    assert told(run.server) == []


def test_a_run_whose_machine_does_not_tell_has_what_is_known_of_it(run):
    look(run.server, system=NEW_KERNEL)
    find(run, found=False)
    assert run.environment.kernel == "Linux 6.8"
    assert len(told(run.server)) == 1


def test_a_generator_is_told_of_on_its_own_page_and_not_with_the_run(run):
    generator = Server.objects.get(pk=run.plan["generators"][0]["server_id"])
    find(run, "load1")
    generator.refresh_from_db()
    assert generator.environment.kernel == "Linux 6.8"
    assert run.environment.kernel == run.server.environment.kernel == "Linux 6.1"
    assert {code for code, _message in told(generator)} >= {"environment_changed"}
    assert told(run.server) == []


@pytest.mark.parametrize("state", [Run.State.MEASURING, Run.State.LOST])
def test_what_a_run_has_set_on_its_machines_is_not_taken_for_a_change(run, state):
    Run.objects.filter(pk=run.pk).update(state=state)
    treated = replace(
        SYSTEM,
        kernel="Linux 6.8",
        governor="performance",
        kernel_settings={"vm.swappiness": "60", machines.PARANOIA: "-1"},
    )
    look(run.server, system=replace(SYSTEM, kernel_settings={machines.PARANOIA: "3"}))
    system = machines.describe_untreated(server=run.server, system=treated)
    assert (system.kernel, system.governor) == ("Linux 6.8", "powersave")
    assert system.kernel_settings == {"vm.swappiness": "60", machines.PARANOIA: "3"}
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    assert machines.describe_untreated(server=run.server, system=treated) == treated


@pytest.fixture
def tool_host():
    """Three servers' binaries, of which 14 has both tools, 16 pgbench only, and 18 none."""
    scenarios.sync()
    made = factories.server(free_bytes=100 * 10**9)
    factories.installation(made, "9.3.5", pgbench_version_num=90305, has_psql=True)
    factories.installation(made, "14.19", pgbench_version_num=140019, has_psql=True)
    factories.installation(made, "16.10", pgbench_version_num=160010)
    factories.installation(made, "18.0")
    return made


@pytest.fixture
def draft(tool_host):
    return factories.draft(
        tool_host, title="all", parameters={"scale": 1, "duration": 5}
    )


def plans(campaign):
    return [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("pk")]


def test_every_version_is_measured_by_the_newest_pgbench_and_asked_by_the_newest_psql(
    draft,
):
    found = plans(campaigns.create(draft=draft))
    assert {plan.version_num for plan in found} == {90305, 140019, 160010, 180000}
    assert {plan.client_version_num for plan in found} == {160010}
    assert {plan.client_bindir for plan in found} == {"/usr/lib/postgresql/16.10/bin"}
    assert {plan.psql_bindir for plan in found} == {"/usr/lib/postgresql/14.19/bin"}


def test_another_pgbench_may_be_chosen(draft, tool_host):
    old = tool_host.installations.get(version="9.3.5")
    found = plans(campaigns.create(draft=replace(draft, client=old)))
    assert {plan.client_version_num for plan in found} == {90305}
    assert {plan.psql_bindir for plan in found} == {"/usr/lib/postgresql/14.19/bin"}


def test_an_installation_without_pgbench_cannot_be_the_load_generator(draft, tool_host):
    without = tool_host.installations.get(version="18.0")
    [problem] = estimates.estimate(replace(draft, client=without)).problems
    assert (problem.code, problem.field) == ("missing_program", "client")


def test_a_removed_installation_is_no_tool(tool_host):
    tool_host.installations.filter(version="16.10").update(
        removed_at="2026-01-01T00:00:00Z"
    )
    assert tools_among(installed([tool_host])[tool_host.pk]).pgbench.version == "14.19"


def test_without_a_psql_there_are_no_tools(tool_host):
    tool_host.installations.update(has_psql=False)
    assert tools_among(installed([tool_host])[tool_host.pk]) is None


# Keys: generated, uploaded as ssh-keygen writes them, encrypted, rotated, deleted when unused.


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A private key as ssh-keygen writes it: (its text, the public key's two words)."""
    folder = tmp_path_factory.mktemp("keys")

    def make(*options, passphrase=""):
        path = folder / str(len(list(folder.iterdir())))
        subprocess.run(
            ["ssh-keygen", "-q", "-N", passphrase, "-f", path, *options], check=True
        )
        public = path.with_name(path.name + ".pub").read_text()
        return path.read_text(), " ".join(public.split()[:2])

    return make


FORMS = [
    pytest.param(("-t", "ed25519"), id="ed25519"),
    pytest.param(("-t", "rsa", "-b", "2048", "-m", "PEM"), id="RSA in PEM"),
    pytest.param(("-t", "ecdsa", "-m", "PKCS8"), id="ECDSA in PKCS#8"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("passphrase", ["", "open sesame"])
def test_a_key_of_ssh_keygen_is_kept_without_its_passphrase(made, form, passphrase):
    text, public = made(*form, passphrase=passphrase)
    # As a browser sends a text area.
    given = text.replace("\n", "\r\n").rstrip()
    key = ssh_keys.upload(name="rack", private_key=given, passphrase=passphrase)
    assert key.public_key.startswith(public)
    assert ssh_keys.private_key(key).startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert b"PRIVATE" not in bytes(key.private_key_encrypted)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("passphrase", "code"), [("", "passphrase_missing"), ("wrong", "wrong_passphrase")]
)
def test_a_passphrase_that_does_not_open_is_said_as_such(made, form, passphrase, code):
    text, _public = made(*form, passphrase="open sesame")
    with pytest.raises(ServiceError) as told:
        ssh_keys.upload(name="rack", private_key=text, passphrase=passphrase)
    assert (told.value.code, told.value.field) == (code, "passphrase")
    assert not SSHKey.objects.exists()


def test_what_is_no_private_key_is_said_as_such(made):
    text, public = made("-t", "ed25519")
    weak, _public = made("-t", "rsa", "-b", "1024")
    cases = {
        "": "not_a_private_key",
        "hello": "not_a_private_key",
        public: "not_a_private_key",
        text + "x" * 30_000: "not_a_private_key",
        text[:100] + text[140:]: "private_key_unreadable",
        weak: "ssh_key_too_weak",
    }
    for given, code in cases.items():
        with pytest.raises(ServiceError) as told:
            ssh_keys.upload(name="rack", private_key=given)
        assert (told.value.code, told.value.field) == (code, "private_key")


def test_a_name_and_a_key_are_kept_once(made):
    text, _public = made("-t", "ed25519")
    ssh_keys.upload(name="rack", private_key=text)
    with pytest.raises(ServiceError) as told:
        ssh_keys.upload(name="other", private_key=text)
    assert (told.value.code, told.value.field) == ("ssh_key_exists", "private_key")
    with pytest.raises(ServiceError) as told:
        ssh_keys.generate(name="rack")
    assert (told.value.code, told.value.field) == ("ssh_key_exists", "name")


def test_generated_keys_differ():
    first, second = ssh_keys.generate(name="a"), ssh_keys.generate(name="b")
    assert first.public_key != second.public_key
    assert first.public_key.startswith("ssh-ed25519 ")


def test_a_key_is_deleted_only_when_no_server_needs_it():
    key = ssh_keys.generate(name="a")
    server = factories.server("db1", ssh_key=key)
    with pytest.raises(ServiceError) as told:
        ssh_keys.delete(key=key)
    assert told.value.code == "ssh_key_in_use"
    assert "db1" in told.value.message
    server.delete()
    ssh_keys.delete(key=key)
    assert not SSHKey.objects.filter(name="a").exists()


def test_secrets_move_to_a_new_key_and_the_old_one_is_needed_no_more(settings, capsys):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEY = old
    key = ssh_keys.generate(name="a")
    private = ssh_keys.private_key(key)
    settings.ENCRYPTION_KEY = f"{new}, {old}"
    assert ssh_keys.private_key(key) == private
    call_command("rotate_encryption_key")
    assert "Encrypted 1 secrets" in capsys.readouterr().out
    key.refresh_from_db()
    settings.ENCRYPTION_KEY = new
    assert ssh_keys.private_key(key) == private
    settings.ENCRYPTION_KEY = old
    with pytest.raises(InvalidToken):
        ssh_keys.private_key(key)


def test_what_no_key_opens_is_named_and_the_rest_is_rotated(settings):
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    ssh_keys.generate(name="lost")
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    kept = ssh_keys.generate(name="kept")
    before = bytes(kept.private_key_encrypted)
    with pytest.raises(CommandError, match="SSH key lost"):
        call_command("rotate_encryption_key")
    kept.refresh_from_db()
    assert bytes(kept.private_key_encrypted) != before


def test_of_each_kind_all_are_rotated_but_those_that_no_key_opens(settings):
    def filled(name):
        settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
        user = User.objects.create_user(name)
        data = {"secret": encryption.encrypt("totp").decode()}
        return (
            ssh_keys.generate(name=name),
            Webhook.objects.create(
                project=projects.default(),
                url="https://a.example/",
                encrypted_secret=encryption.encrypt("shared").decode(),
            ),
            Authenticator.objects.create(user=user, type="totp", data=data),
        )

    _key, webhook, factor = filled("lost")
    recent = filled("recent")
    assert encryption.unreadable() == (
        lost := ["SSH key lost", f"webhook {webhook.pk}", f"second factor {factor.pk}"]
    )

    assert encryption.rotate() == (3, lost)

    settings.ENCRYPTION_KEY, old = (
        Fernet.generate_key().decode(),
        settings.ENCRYPTION_KEY,
    )
    assert len(encryption.unreadable()) == 6
    assert encryption.rotate(also=old) == (3, lost)
    assert encryption.unreadable() == lost
    assert ssh_keys.private_key(SSHKey.objects.get(pk=recent[0].pk)).startswith(
        "-----BEGIN"
    )


def reached(slug, jump=None):
    return factories.server(slug, jump=jump, address=slug, ssh_key=ssh_keys.default())


def refusal(server, jump):
    with pytest.raises(ServiceError) as told:
        ways.check_jump(server, jump)
    assert told.value.field == "jump"
    return told.value.code


def test_the_way_leads_from_the_first_hop_to_the_server():
    first = reached("first")
    last = reached("last", reached("second", first))
    assert [login.address.host for login in ways.way_to(last)] == [
        "first",
        "second",
        "last",
    ]


def test_a_server_is_no_hop_of_its_own():
    server = reached("a")
    assert refusal(server, server) == "hop_loop"


def test_a_loop_over_others_is_refused():
    first = reached("first")
    second = reached("second", first)
    assert refusal(first, reached("third", second)) == "hop_loop"


def test_three_hops_are_allowed_and_four_are_not():
    third = reached("3", reached("2", reached("1")))
    fourth = reached("4")
    ways.check_jump(fourth, third)
    fourth.jump = third
    fourth.save()
    assert refusal(reached("5"), fourth) == "too_many_hops"


def test_a_hop_before_a_hop_counts_for_those_behind_it():
    first = reached("1")
    reached("3", reached("2", first))
    outer = reached("b", reached("a"))
    assert refusal(first, outer) == "too_many_hops"
    ways.check_jump(first, reached("alone"))


def test_a_hop_without_a_confirmed_key_is_refused():
    hop = factories.server("hop", state="unconfirmed", host_key="")
    assert refusal(reached("a"), hop) == "hop_not_confirmed"
