"""Each row of the table of faults: planted, charged to its place, and no run is burnt.

Of two servers one is at fault; the other is blamed for nothing.
"""

import ast
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone

from benchlab.embedded.embedded_server import free_port
from runs.campaigns.services import campaigns
from runs.execution.clusters import preparing
from runs.execution.fault_table import FAULTS, as_markdown
from runs.execution.ssh import sessions
from runs.management.commands import faults
from runs.models import Run, Server, SSHKey
from runs.queue.services import execution, leases, supervision, sweeping
from runs.servers.services import servers, ssh_keys
from runs.shared import signs, worker_health
from runs.workloads.services import scenarios
from tests import factories
from tests.migrated import ROOT

Mend = Callable[[], None]


class Plant:
    """A server at fault, with what a plant needs of it."""

    def __init__(self, server, sshd, monkeypatch):
        self.server, self.sshd, self.monkeypatch = server, sshd, monkeypatch

    def update(self, **fields) -> Mend:
        """Change its row; as it was again."""
        before = {name: getattr(self.server, name) for name in fields}
        rows = Server.objects.filter(pk=self.server.pk)
        rows.update(**fields)
        return lambda: rows.update(**before)

    def configure(self, line: str) -> Mend:
        """Another line of sshd's configuration; without it again."""
        path = self.sshd.folder / "sshd_config"
        before = path.read_text()
        self.sshd.configure(line)

        def mend() -> None:
            self.sshd.stop()
            path.write_text(before)
            self.sshd.start()

        return mend


def sshd_is_stopped(plant: Plant) -> Mend:
    plant.sshd.stop()
    return plant.sshd.start


def key_is_removed(plant: Plant) -> Mend:
    plant.sshd.let_in("")
    return lambda: plant.sshd.let_in(servers.public_key())


def another_host_key(plant: Plant) -> Mend:
    paths = (plant.sshd.folder / "host_key", plant.sshd.folder / "host_key.pub")
    before = {path: path.read_bytes() for path in paths}
    plant.sshd.stop()
    plant.sshd.new_host_key()
    plant.sshd.start()

    def mend() -> None:
        plant.sshd.stop()
        for path, content in before.items():
            path.write_bytes(content)
        plant.sshd.start()

    return mend


def key_of_another_instance(plant: Plant) -> Mend:
    own = ssh_keys.default()
    sealed = Fernet(Fernet.generate_key()).encrypt(b"key")
    other = SSHKey.objects.create(
        name="other", public_key=own.public_key, private_key_encrypted=sealed
    )
    return plant.update(ssh_key=other)


def folder_of_root(plant: Plant) -> Mend:
    if os.geteuid() != 0:
        pytest.skip("a folder that its own login cannot open again needs root")
    base = Path(plant.server.base_dir)
    owner = base.stat()
    os.chown(base, 0, 0)
    base.chmod(0o700)
    return lambda: os.chown(base, owner.st_uid, owner.st_gid)


def disk_is_too_small(plant: Plant) -> Mend:
    before = preparing.BYTES_TO_SPARE
    plant.monkeypatch.setattr(preparing, "BYTES_TO_SPARE", 10**18)

    def mend() -> None:
        plant.monkeypatch.setattr(preparing, "BYTES_TO_SPARE", before)
        Server.objects.filter(pk=plant.server.pk).update(needs={})

    return mend


def shell_executes_nothing(plant: Plant) -> Mend:
    return plant.configure("ForceCommand echo This account is not available.")


def one_session(plant: Plant) -> Mend:
    # On a busy machine two sessions of a short run need not overlap for longer than the waits.
    plant.monkeypatch.setattr(sessions, "WAITS_SECONDS", ())
    return plant.configure("MaxSessions 1")


def hop_is_away(plant: Plant) -> Mend:
    hop = factories.server(
        "hop",
        address="127.0.0.1",
        port=free_port(0),
        base_dir="",
        ssh_key=ssh_keys.default(),
    )
    return plant.update(jump=hop)


def worker_cannot_read_its_home(plant: Plant) -> Mend:
    def unreadable(*_args, **_options):
        raise PermissionError(13, "Permission denied", "/root/.ssh/crt")

    patched = pytest.MonkeyPatch()
    patched.setattr("runs.execution.ssh.ssh.asyncssh.connect", unreadable)
    return patched.undo


PLANTS: dict[str, Callable[[Plant], Mend]] = {
    "worker_fault": worker_cannot_read_its_home,
    "hop_unreachable": hop_is_away,
    "host_unreachable": sshd_is_stopped,
    "login_refused": key_is_removed,
    "host_key_changed": another_host_key,
    "private_key_unreadable": key_of_another_instance,
    "base_dir_not_writable": folder_of_root,
    "disk_too_small": disk_is_too_small,
    "no_report": shell_executes_nothing,
    "too_few_sessions": one_session,
}
# What other tests plant: where.
OF_SERVERS = "tests/ssh/test_server_faults.py"
CONNECTION = "tests/ssh/test_connection.py"
FULL_DISK = "tests/ssh/test_full_disk.py"
FAILURES = "tests/ssh/test_failures.py"
LEASES = "tests/queue/services/test_leases.py"
ELSEWHERE = {
    "no_heartbeat": (LEASES, "no_heartbeat"),
    "taken_over": (LEASES, "a_lost_run_goes_before_the_queue_and_its_taker_knows"),
    "worker_stopped": (LEASES, "worker_stopped"),
    "end_not_seen": (LEASES, "end_not_seen"),
    "turns_stopped": ("tests/ssh/test_slices.py", "turns_stopped"),
    "connection_lost": (CONNECTION, "a_dropped_connection_is_told_as_lost"),
    "hop_login_refused": (CONNECTION, "a_hop_that_refuses_the_key_is_named"),
    "hop_key_changed": (CONNECTION, "a_hop_with_another_host_key_is_not_passed"),
    "other_file_system": ("tests/ssh/test_storage.py", "other_file_system"),
    "missing_program": (OF_SERVERS, "a_program_that_is_away_for_a_while_costs_no_run"),
    "disk_almost_full": (FULL_DISK, "a_disk_that_fills_up_under_the_load"),
    "disk_full": (FULL_DISK, "a_step_that_a_full_disk_failed_says_so"),
    "lease_behind": (OF_SERVERS, "an_original_and_its_copy_never_measure_both"),
    "target_restarted": (FAILURES, "what_fails_after_a_restart_is_told_as_a_restart"),
    "not_set_back": ("tests/ssh/test_governor.py", "not_set_back"),
    "cleanup_incomplete": ("tests/ssh/test_cleaning.py", "cleanup_incomplete"),
    "not_swept": ("tests/ssh/test_sweep.py", "not_swept"),
    "database_out_of_reach": ("tests/ssh/test_namespaces.py", "database_out_of_reach"),
    "postgres_stopped": (FAILURES, "a_server_killed_under_the_load"),
    "server_process_killed": (FAILURES, "server_process_killed"),
    "server_process_crashed": (FAILURES, "server_process_crashed"),
    "out_of_memory": (FAILURES, "the_kernel_killed_for_lack_of_memory"),
    "step_timeout": ("tests/ssh/test_step_limits.py", "step_timeout"),
    "lost_for_good": ("tests/queue/services/test_workers.py", "lost_for_good"),
    "internal_error": (LEASES, "internal_error"),
}


@pytest.fixture
def racks_of_two(racks, binaries):
    """Two servers of which nobody has said anything, and a run waiting on each."""
    faulty, healthy = racks(2, [binaries.postgresql18])
    scenarios.sync()
    draft = factories.draft(faulty, title="On both", repeats=1)
    campaign = campaigns.create(draft=draft)
    yield faulty, healthy, campaign
    worker_health._state["until"] = 0.0
    signs.redis_client().delete(worker_health.KEY)


@pytest.mark.openssh
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", PLANTS)
def test_a_fault_is_charged_to_its_place_and_burns_no_run(
    racks, racks_of_two, monkeypatch, code
):
    faulty, healthy, campaign = racks_of_two
    sshd = racks.sshd_at[faulty.address, faulty.port]
    [scope] = {fault.scope for fault in FAULTS if code in fault.codes}
    mend = PLANTS[code](Plant(faulty, sshd, monkeypatch))
    try:
        claim = leases.claim(server_id=faulty.pk, holder="worker")
        execution.execute(claim)
        run = Run.objects.get(pk=claim.run_id)
        assert run.events.filter(code=code).exists(), run.message
        sweeping.sweep_where_needed(server_id=faulty.pk)
        if scope != "worker":
            assert leases.claim(server_id=faulty.pk, holder="worker") is None
    finally:
        mend()
    # No run was burnt, ...
    assert {run.state for run in campaign.runs.all()} <= {"queued", "lost"}
    # ... and only what is at fault is blamed.
    faulty.refresh_from_db()
    healthy.refresh_from_db()
    assert (healthy.state, healthy.problem_code) == (Server.State.READY, "")
    assert (faulty.state == Server.State.READY) == (scope == "worker")
    assert faulty.problem_code == ("" if scope == "worker" else code)
    assert bool(faulty.problem_remedy) == (scope != "worker")
    assert worker_health.is_unfit() == (scope == "worker")
    # Once it is mended, a check finds that by itself.
    long_ago = timezone.now() - timedelta(minutes=10)
    Server.objects.filter(pk=faulty.pk).update(checked_at=long_ago)
    supervision.look_again(server_id=faulty.pk)
    faulty.refresh_from_db()
    assert (faulty.state, faulty.problem_code) == (Server.State.READY, "")


def test_the_document_has_the_table():
    text = faults.PLACE.read_text()
    assert faults.insert_table(text) == text, "manage.py faults --write"
    assert as_markdown() in text


def test_each_row_is_planted():
    codes = {code for fault in FAULTS for code in fault.codes}
    assert codes == PLANTS.keys() | ELSEWHERE.keys()
    assert not PLANTS.keys() & ELSEWHERE.keys()
    missing = [
        f"{code}: {file}"
        for code, (file, word) in ELSEWHERE.items()
        if word not in (ROOT / file).read_text()
    ]
    assert missing == []


def test_whatever_holds_a_server_has_a_row():
    """Codes of what is raised as a fault of a server, or as one out of reach."""
    codes = {code for fault in FAULTS for code in fault.codes}
    raised = set()
    for path in (ROOT / "runs").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ServerFault":
                raised |= set(re.findall(r"code='(\w+)'", ast.unparse(node)))
            if isinstance(node, ast.ClassDef) and {
                "ServerFault",
                "HostUnreachable",
                "LoginRefused",
                "HostKeyChanged",
            } & {node.name, *(ast.unparse(base) for base in node.bases)}:
                raised |= set(re.findall(r"code = '(\w+)'", ast.unparse(node)))
    assert {"missing_program", "too_few_sessions", "worker_fault"} <= raised
    assert raised <= codes
