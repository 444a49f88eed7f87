"""Registering and inspecting servers over real SSH, and runs whose server cannot be used."""

import gc
import resource
import shutil
from pathlib import Path

import pytest

from benchlab.embedded.embedded_server import free_port
from benchlab.release import own_release
from runs.campaigns.services import campaigns
from runs.execution.clusters import preparing
from runs.models import Campaign, Lease, PreparedCluster, Run, Server
from runs.operations.selectors import health_checks
from runs.queue.services import execution, leases, supervision, sweeping, transitions
from runs.servers.services import host_keys, servers, ssh_keys
from runs.shared import signs, worker_health
from runs.shared.errors import ServiceError
from runs.tasks import execute_next
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]


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
def registered(openssh, account, base_dir: Path, binaries) -> Server:
    return servers.register(
        name="Rack 1",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=f"{base_dir}/lab",
        bindirs=[str(binaries.postgresql16), str(binaries.postgresql18), "/no/such"],
    )


@pytest.fixture
def ready(registered) -> Server:
    fingerprint = servers.fingerprint(registered.offered_host_key)
    return servers.inspect(
        server=host_keys.confirm(server=registered, fingerprint=fingerprint)
    )


def test_nothing_is_executed_before_a_person_confirmed_the_host_key(
    registered, base_dir
):
    assert registered.state == Server.State.UNCONFIRMED
    with pytest.raises(ServiceError) as told:
        servers.inspect(server=registered)
    assert told.value.code == "host_key_not_confirmed"
    assert list(base_dir.iterdir()) == []


def test_another_fingerprint_than_the_offered_one_is_not_pinned(registered):
    with pytest.raises(ServiceError) as told:
        host_keys.confirm(server=registered, fingerprint="SHA256:other")
    assert told.value.code == "fingerprint_differs"
    registered.refresh_from_db()
    assert registered.host_key == ""


@pytest.mark.probes
def test_hardware_os_and_installations_are_discovered(ready, binaries):
    assert ready.state == Server.State.READY
    assert ready.hardware.threads > 0
    assert ready.hardware.memory_bytes > 10**8
    assert ready.environment.kernel.startswith("Linux ")
    assert ready.free_bytes > 10**6
    found = {each.bindir: each for each in ready.installations.all()}
    sixteen, eighteen = (
        found[str(binaries.postgresql16)],
        found[str(binaries.postgresql18)],
    )
    assert (sixteen.major, eighteen.major) == ("16", "18")
    assert sixteen.version_num == 160000 + int(sixteen.version.split(".")[1])
    assert eighteen.pgbench_version_num == eighteen.version_num
    assert eighteen.has_psql
    assert "--prefix" in eighteen.configure_options
    assert "/no/such" not in found


@pytest.mark.probes
def test_what_built_a_server_is_told_without_pg_config(ready, binaries, base_dir):
    """As the lab's versions come: of the programs only the server's own."""
    there = binaries.postgresql18
    for name in ("postgres", "initdb", "pg_ctl"):
        copied = base_dir / "bare" / "bin" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(there / name, copied)
    (base_dir / "bare" / "lib").symlink_to(there.parent / "lib")
    (base_dir / "bare").chmod(0o755)
    ready.bindirs = [str(copied.parent), str(there)]
    ready.save()
    servers.inspect(server=ready)
    bare, whole = (ready.installations.get(bindir=each) for each in ready.bindirs)
    assert (bare.has_psql, bare.configure_options) == (False, "")
    assert bare.cflags == whole.cflags
    assert bare.cflags.startswith("-Wall")
    assert bare.compiler == whole.compiler
    assert bare.compiler.startswith("gcc")
    # Before 9.6 a server does not say it: whoever installed it may.
    server = copied.with_name("postgres")
    server.write_bytes(
        server.read_bytes().replace(
            b"-Wall -Wmissing-prototypes", b"-Wall -Wno-nothing-at-alls"
        )
    )
    (base_dir / "bare" / "cflags").write_text("-O0\n")
    servers.inspect(server=Server.objects.get(pk=ready.pk))
    assert ready.installations.get(bindir=bare.bindir).cflags == "-O0"
    # Its libraries go: it is not offered any more, and the server's page says why, once.
    said = "postgres: error while loading shared libraries: libz.so.1"
    copied.with_name("postgres").unlink()
    copied.with_name("postgres").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 127\n")
    copied.with_name("postgres").chmod(0o755)
    for _time in range(2):
        again = servers.inspect(server=Server.objects.get(pk=ready.pk))
    assert again.installations.get(bindir=bare.bindir).removed_at is not None
    event = again.events.get(code="installation_broken")
    assert event.message == f"{bare.bindir}: {said}"


@pytest.mark.probes
def test_inspecting_again_notices_what_is_gone_and_changes_nothing_else(ready):
    count = ready.installations.count()
    hardware = ready.hardware_id
    ready.installations.create(
        bindir="/opt/gone/bin", version="9.2.24", version_num=90224
    )
    again = servers.inspect(server=ready)
    assert again.installations.filter(removed_at=None).count() == count
    assert again.installations.get(bindir="/opt/gone/bin").removed_at is not None
    assert again.hardware_id == hardware


@pytest.mark.probes
def test_folders_that_are_added_are_found_by_the_next_inspection(
    ready, binaries, base_dir
):
    copied = base_dir / "pg" / "bin"
    copied.parent.mkdir()
    copied.parent.chmod(0o755)
    copied.symlink_to(binaries.postgresql18)
    ready.bindirs = []
    ready.save()
    servers.inspect(server=ready)
    assert not ready.installations.filter(
        bindir=str(binaries.postgresql18), removed_at=None
    )
    servers.add_bindirs(server=ready, bindirs=[str(copied), str(copied)])
    again = servers.inspect(server=Server.objects.get(pk=ready.pk))
    found = again.installations.get(bindir=str(binaries.postgresql18))
    assert found.removed_at is None
    assert (found.block_size, found.extensions) == (8192, ["plpgsql", "vector"])
    assert again.bindirs == [str(copied)]


def test_a_changed_host_key_refuses_the_server_and_offers_the_new_one(ready, openssh):
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    refused = servers.inspect(server=ready)
    assert (refused.state, refused.problem_code) == (
        Server.State.REFUSED,
        "host_key_changed",
    )
    assert "compare the new fingerprint" in refused.problem_remedy
    offered = servers.fingerprint(refused.offered_host_key)
    with pytest.raises(ServiceError) as told:
        host_keys.confirm(server=refused, fingerprint=offered)
    assert told.value.code == "host_key_pinned"
    other = "y" if offered[-9] == "x" else "x"
    for typed in (
        "",
        offered[-7:],
        other + offered[-8:],
        servers.fingerprint(refused.host_key),
    ):
        with pytest.raises(ServiceError) as told:
            host_keys.replace(server=refused, typed=typed)
        assert told.value.code == "fingerprint_differs"
    old = servers.fingerprint(refused.host_key)
    replaced = host_keys.replace(server=refused, typed=f" {offered[-8:]} ", by="ichiro")
    assert servers.inspect(server=replaced).state == Server.State.READY
    events = list(refused.events.order_by("pk").values_list("code", "message", "by"))
    assert events[-2:] == [
        ("host_key_changed", f"{old} → {offered}", ""),
        ("host_key_replaced", f"{old} → {offered}", "ichiro"),
    ]


def test_a_host_key_that_is_shown_again_and_again_is_noted_once(ready, openssh):
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    servers.inspect(server=servers.inspect(server=ready))
    assert ready.events.filter(code="host_key_changed").count() == 1


def test_a_refused_login_says_where_the_key_goes(ready, openssh):
    (openssh.folder / "authorized_keys").write_text("")
    refused = servers.inspect(server=ready)
    assert (refused.state, refused.problem_code) == (
        Server.State.REFUSED,
        "login_refused",
    )
    assert "authorized_keys" in refused.problem_remedy


def test_a_wrong_port_is_told_at_registration():
    with pytest.raises(ServiceError) as told:
        servers.register(
            name="x",
            address="127.0.0.1",
            port=free_port(0),
            username="u",
            base_dir="/b/c",
            bindirs=[],
        )
    assert told.value.code == "host_unreachable"
    assert Server.objects.count() == 0


def test_a_long_base_directory_is_refused_before_connecting():
    with pytest.raises(ServiceError) as told:
        servers.register(
            name="x",
            address="127.0.0.1",
            port=1,
            username="u",
            base_dir="/x" * 40,
            bindirs=[],
        )
    assert (told.value.code, told.value.field) == ("base_dir_too_long", "base_dir")


def test_a_machine_is_registered_once(registered, openssh):
    with pytest.raises(ServiceError) as told:
        servers.register(
            name="again",
            address="127.0.0.1",
            port=openssh.port,
            username=registered.username,
            base_dir="/b/c",
            bindirs=[],
        )
    assert told.value.code == "server_exists"


def test_the_private_key_is_encrypted_at_rest():
    key = ssh_keys.default()
    assert b"PRIVATE KEY" not in bytes(key.private_key_encrypted)
    assert "PRIVATE KEY" in ssh_keys.private_key(key)


def short(server, **changes):
    """A draft of two short runs on one installation."""
    versions = [
        each for each in server.installations.all() if each.major in {"16", "18"}
    ]
    return factories.draft(
        server,
        title="short",
        installations=[each for each in versions if "pginstall" in each.bindir][:1],
        repeats=2,
        **changes,
    )


@pytest.fixture
def campaign(ready):
    scenarios.sync()
    return campaigns.create(draft=short(ready))


def work(server) -> Run | None:
    """What a worker does when it is woken."""
    supervision.look_again(server_id=server.pk)
    sweeping.remove_needless_clusters(server_id=server.pk)
    claim = leases.claim(server_id=server.pk, holder="test")
    if claim is None:
        return None
    execution.execute(claim)
    return Run.objects.get(pk=claim.run_id)


@pytest.mark.probes
@pytest.mark.loads
def test_a_campaign_ends_finished_and_its_cluster_is_removed(campaign, ready, base_dir):
    first, second = work(ready), work(ready)
    assert [run.state for run in (first, second)] == ["finished", "finished"]
    assert first.measurements.get(metric__name="tps").value > 0
    assert first.cluster_id == second.cluster_id
    assert first.cluster.prepared_by_id == first.pk
    assert work(ready) is None
    campaign.refresh_from_db()
    assert campaign.state == "finished"
    assert list((base_dir / "lab" / "clusters").iterdir()) == []
    assert list((base_dir / "lab" / "runs").iterdir()) == []
    steps = list(first.commands.order_by("ordinal").values_list("step", flat=True))
    assert steps.index("initdb") < steps.index("load") < steps.index("pgbench")


@pytest.fixture
def equal_campaigns(campaign, ready, settings):
    """One that has ended, and another of the same question that waits."""
    settings.KEPT_CLUSTERS_HOURS = 6.0
    while work(ready):
        pass
    again = campaigns.create(draft=short(ready))
    return campaign, again


def steps_of(run):
    return set(run.commands.values_list("step", flat=True))


def kept(server):
    return PreparedCluster.objects.get(server=server, removed_at=None)


@pytest.mark.loads
def test_the_next_campaign_of_the_same_question_uses_the_cluster_of_the_last(
    equal_campaigns, ready, base_dir
):
    _campaign, again = equal_campaigns
    cluster = kept(ready)
    assert [folder.name for folder in (base_dir / "lab" / "clusters").iterdir()] == [
        cluster.key
    ]
    assert cluster.bytes > 10**6

    run = work(ready)

    assert (run.campaign, run.state, run.cluster_id) == (again, "finished", cluster.pk)
    assert not {"initdb", "load"} & steps_of(run)
    assert kept(ready).campaign == again
    assert kept(ready).used_at > cluster.used_at


@pytest.mark.loads
def test_a_program_that_was_built_anew_gets_a_cluster_of_its_own(
    equal_campaigns, ready, base_dir
):
    mark = base_dir / "lab" / "clusters" / kept(ready).key / "prepared"
    made_by, program = mark.read_text().splitlines()
    assert program.endswith("/postgres")
    mark.write_text(f"{made_by}\n1{program}\n")

    run = work(ready)

    assert run.state == "finished"
    assert {"initdb", "load"} <= steps_of(run)
    assert kept(ready).prepared_by == run


@pytest.mark.parametrize(
    ("limit", "value"), [("KEPT_CLUSTERS_HOURS", 0.0), ("KEPT_CLUSTERS_GB", 0.001)]
)
def test_a_cluster_goes_after_its_hours_or_beyond_its_room_but_not_while_a_run_waits_for_it(
    equal_campaigns, ready, base_dir, settings, limit, value
):
    _campaign, again = equal_campaigns
    setattr(settings, limit, value)
    sweeping.remove_needless_clusters(server_id=ready.pk)
    assert kept(ready)

    campaigns.cancel(campaign=again)
    assert ready.pk in supervision._servers_with_work()
    sweeping.remove_needless_clusters(server_id=ready.pk)

    assert list((base_dir / "lab" / "clusters").iterdir()) == []
    assert not PreparedCluster.objects.filter(removed_at=None).exists()


def test_a_kept_cluster_makes_no_work_for_the_supervisor_and_a_sweep_removes_it(
    equal_campaigns, ready, base_dir
):
    campaigns.cancel(campaign=equal_campaigns[1])
    assert ready.pk not in supervision._servers_with_work()

    sweeping.sweep(server=ready)

    assert list((base_dir / "lab" / "clusters").iterdir()) == []
    assert not PreparedCluster.objects.filter(removed_at=None).exists()


def test_kept_clusters_give_way_to_a_run_that_needs_their_room(
    equal_campaigns, ready, base_dir, monkeypatch
):
    """The first attempt finds too little room; the second one, after the clean-up, has it."""
    campaigns.cancel(campaign=equal_campaigns[1])
    cluster = kept(ready)
    other = campaigns.create(draft=short(ready, settings={"work_mem": ["5MB"]}))
    with monkeypatch.context() as full:
        full.setattr(preparing, "BYTES_TO_SPARE", 10**18)
        assert work(ready).state == "queued"
    ready.refresh_from_db()
    assert (ready.state, ready.needs_sweep) == ("ready", True)

    sweeping.sweep_where_needed(server_id=ready.pk)

    assert not Path(cluster.directory).exists()
    assert work(ready).state == "finished"
    assert kept(ready).campaign == other


def test_runs_are_executed_through_a_hop(campaign, ready, openssh):
    hop = factories.server(
        "hop",
        address="localhost",
        port=openssh.port,
        username=ready.username,
        base_dir="",
        host_key=openssh.host_key,
        ssh_key=ssh_keys.default(),
    )
    Server.objects.filter(pk=ready.pk).update(jump=hop)
    assert [work(ready).state, work(ready).state] == ["finished", "finished"]
    assert work(ready) is None
    assert not PreparedCluster.objects.filter(removed_at=None).exists()


def test_runs_wait_for_a_hop_that_is_away(campaign, ready):
    hop = factories.server(
        "hop",
        address="127.0.0.1",
        port=free_port(0),
        base_dir="",
        ssh_key=ssh_keys.default(),
    )
    Server.objects.filter(pk=ready.pk).update(jump=hop)
    run = work(ready)
    assert (run.state, run.code) == ("queued", "hop_unreachable")


def test_runs_wait_for_a_server_that_does_not_answer(campaign, ready, openssh):
    openssh.stop()
    run = work(ready)
    assert (run.state, run.code) == ("queued", "host_unreachable")
    assert "Check address" in run.remedy
    ready.refresh_from_db()
    told = [run.message, *run.events.values_list("message", flat=True), ready.problem]
    assert run.message.startswith("Rack 1 cannot be reached over SSH")
    assert not [
        text for text in told if ready.address in text or f"{ready.username}@" in text
    ]
    assert (ready.state, ready.problem_code) == (
        Server.State.UNREACHABLE,
        "host_unreachable",
    )
    assert work(ready) is None
    openssh.start()
    Server.objects.filter(pk=ready.pk).update(checked_at="2020-01-01T00:00:00Z")
    assert work(ready).state == "finished"
    assert Lease.objects.get(server=ready).run_id is None


def test_a_changed_host_key_stops_the_queue_until_a_person_looks(
    campaign, ready, openssh
):
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    run = work(ready)
    assert (run.state, run.code) == ("queued", "host_key_changed")
    Server.objects.filter(pk=ready.pk).update(checked_at="2020-01-01T00:00:00Z")
    assert work(ready) is None
    ready.refresh_from_db()
    assert ready.state == Server.State.REFUSED


@pytest.fixture
def fit_again():
    """Leaves no worker of the next test paused."""
    yield
    worker_health._state["until"] = 0.0
    signs.redis_client().delete(worker_health.KEY)


def test_what_a_worker_lacks_itself_is_charged_to_no_server(
    campaign, ready, monkeypatch, fit_again
):
    def unreadable(*_args, **_options):
        raise PermissionError(13, "Permission denied", "/root/.ssh/crt")

    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.ssh.ssh.asyncssh.connect", unreadable)
        run = work(ready)
    assert (run.state, run.code, run.attempt) == ("queued", "worker_fault", 1)
    assert "/root/.ssh/crt" in run.message
    ready.refresh_from_db()
    assert (ready.state, ready.problem_code) == (Server.State.READY, "")
    outcome = health_checks.workers()
    assert (outcome.status, "/root/.ssh/crt" in outcome.reason) == ("warning", True)
    # It pauses; another worker goes on.
    execute_next(ready.pk)
    assert not campaign.runs.filter(state=Run.State.FINISHED).exists()
    assert work(ready).state == Run.State.FINISHED


def test_a_host_key_that_is_the_confirmed_one_again_needs_nobody(
    campaign, ready, openssh
):
    kept = {path: path.read_bytes() for path in openssh.folder.glob("*host*key*")}
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    assert work(ready).code == "host_key_changed"
    openssh.stop()
    for path, content in kept.items():
        path.write_bytes(content)
    openssh.start()
    Server.objects.filter(pk=ready.pk).update(checked_at="2020-01-01T00:00:00Z")
    assert ready.pk in supervision._servers_with_work()
    assert work(ready).state == Run.State.FINISHED


def test_a_failed_run_says_why_and_the_next_one_goes_on(campaign, ready):
    first, second = campaign.runs.order_by("pk")
    first.plan["settings"]["shared_buffers"] = "1EB"
    first.plan["cluster_key"] = "broken"
    first.save()
    failed = work(ready)
    assert (failed.pk, failed.state, failed.code) == (
        first.pk,
        "failed",
        "postgres_does_not_start",
    )
    assert "shared_buffers" in failed.message
    assert failed.commands.filter(step="initdb").exists()
    assert work(ready).pk == second.pk
    campaign.refresh_from_db()
    assert campaign.state == "incomplete"


def test_a_plan_of_another_version_is_told_as_such(campaign, ready):
    first = campaign.runs.order_by("pk").first()
    first.plan["scenario"] = "no-such-scenario"
    first.save()
    errored = work(ready)
    assert (errored.state, errored.code) == ("errored", "plan_of_other_version")
    assert "no-such-scenario" in errored.message


def test_a_result_that_was_stored_survives_the_death_of_its_worker(
    campaign, ready, monkeypatch
):
    """Stored, but neither cleaned up nor said to be finished: the next worker does just that."""
    claim = leases.claim(server_id=ready.pk, holder="dies")
    monkeypatch.setattr(execution, "_finish", lambda run, claim, figures: None)
    execution.execute(claim)
    monkeypatch.undo()
    run = Run.objects.get(pk=claim.run_id)
    value = run.measurements.get(metric__name="tps").value
    assert run.state == "collecting"
    assert transitions.transition(
        run_id=run.pk, to="lost", code="no_heartbeat", token=claim.token
    )
    again = work(ready)
    assert (again.pk, again.state) == (run.pk, "finished")
    assert again.measurements.get(metric__name="tps").value == value


@pytest.mark.parametrize(
    "path",
    ["/x/a$(touch /tmp/pwned)b", "/x/a;b", "/x,y/z", "/x//y", "/x/../y", "x/y", "/"],
)
def test_a_path_that_a_shell_could_read_is_refused(path):
    with pytest.raises(ServiceError) as told:
        servers.register(
            name="x",
            address="127.0.0.1",
            port=1,
            username="u",
            base_dir=path,
            bindirs=[],
        )
    assert (told.value.code, told.value.field) == ("path_not_plain", "base_dir")


def test_a_cluster_that_cannot_be_removed_does_not_stop_the_server(campaign, ready):
    ended = Campaign.objects.create(
        slug="ended", title="ended", scenario=campaign.scenario, state="finished"
    )
    cluster = PreparedCluster.objects.create(
        campaign=ended, server=ready, key="x", directory="/elsewhere/clusters/x"
    )
    assert work(ready).state == "finished"
    cluster.refresh_from_db()
    assert cluster.removed_at is not None


@pytest.mark.probes
def test_a_second_registration_of_a_machine_is_noticed_and_needs_a_folder_of_its_own(
    ready, openssh, account, base_dir
):
    again = servers.register(
        name="Rack 1 again",
        address="localhost",
        port=openssh.port,
        username=login_name(account),
        base_dir=ready.base_dir,
        bindirs=[],
    )
    again = host_keys.confirm(
        server=again, fingerprint=servers.fingerprint(openssh.host_key)
    )
    Path(ready.base_dir, "leases", str(ready.pk)).mkdir()
    refused = servers.inspect(server=again)
    assert (refused.state, refused.problem_code) == (
        Server.State.REFUSED,
        "base_dir_foreign",
    )
    assert ready.name in refused.problem
    Server.objects.filter(pk=again.pk).update(base_dir=f"{base_dir}/again")
    again = servers.inspect(server=Server.objects.get(pk=again.pk))
    assert again.state == Server.State.READY
    ready.refresh_from_db()
    assert ready.machine_id == again.machine_id is not None


# Python says of a loop that could not be made that it was not closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("act", ["run", "check", "clean up"])
def test_a_worker_without_descriptors_ends_no_run_and_blames_no_server(
    campaign, ready, fit_again, act
):
    rows = Server.objects.filter(pk=ready.pk)
    if act == "check":
        rows.update(state=Server.State.UNREACHABLE, checked_at="2020-01-01T00:00:00Z")
    rows.update(needs_sweep=act == "clean up")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A worker has both long before; what is open stays open.
    signs.redis_client().ping()
    own_release()
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        sweeping.sweep_where_needed(server_id=ready.pk)
        run = work(ready)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        gc.collect()
    assert worker_health.is_unfit()
    if act == "run":
        assert (run.state, run.code, run.attempt) == ("queued", "worker_fault", 1)
        assert "Too many open files" in run.message
    ready.refresh_from_db()
    assert ready.problem_code == ""
    rows.update(checked_at="2020-01-01T00:00:00Z")
    sweeping.sweep_where_needed(server_id=ready.pk)
    assert work(ready).state == Run.State.FINISHED
