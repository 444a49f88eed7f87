"""A results database that may be a copy of another one waits until a person says who measures."""

import pytest
from django.core.management import CommandError, call_command

from runs import background
from runs.histories.services import mails
from runs.models import Campaign, Instance, Lease, Run, Server
from runs.operations.selectors import health_checks, readiness
from runs.operations.services import backups, copies
from runs.queue.services import leases, sweeping, transitions
from runs.shared import duties
from runs.shared.copies import hold, is_held
from runs.shared.duties import Duty
from runs.shared.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    """A folder of an instance's own."""
    settings.SEAL_KEY = str(tmp_path / "var" / "ed25519.pem")
    return tmp_path / "var"


@pytest.fixture
def servers():
    made = [factories.server(slug, versions=["16.14"]) for slug in ("rack", "shelf")]
    for server in made:
        Lease.objects.get_or_create(server=server)
    return made


def queued(server):
    return factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=1
    )


def held_by():
    return Instance.objects.get().held_by


def test_the_first_look_signs_and_later_ones_find_the_same_host(var):
    for _turn in range(3):
        copies.look()
    assert not is_held()
    assert (var / copies.FILE).stat().st_mode & 0o777 == 0o600
    assert Instance.objects.get().signature


def test_a_key_that_cannot_be_written_holds_nothing_up(settings, caplog, tmp_path):
    (tmp_path / "file").touch()
    settings.SEAL_KEY = str(tmp_path / "file" / "ed25519.pem")
    copies.look()
    assert not is_held()
    assert "is not known" in caplog.text


def test_no_backup_has_the_key(settings, var, tmp_path):
    copies.look()
    assert copies.FILE in {path.name for path in var.iterdir()}
    assert copies.FILE not in backups._secrets()["seals"]


def no_key(var, _tmp_path, _monkeypatch):
    (var / copies.FILE).unlink()


def another_key(var, _tmp_path, _monkeypatch):
    (var / copies.FILE).write_text("0" * 64)


def another_epoch(_var, _tmp_path, _monkeypatch):
    Instance.objects.update(epoch=7)


def another_folder(var, tmp_path, _monkeypatch):
    var.rename(tmp_path / "moved")
    var.symlink_to(tmp_path / "moved")


def another_machine(_var, tmp_path, monkeypatch):
    (tmp_path / "machine-id").write_text("f" * 32)
    monkeypatch.setattr(copies, "MACHINE_ID", tmp_path / "machine-id")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (no_key, "restored"),
        (another_key, "restored"),
        (another_epoch, "restored"),
        (another_folder, "moved"),
        (another_machine, "moved"),
    ],
)
def test_a_copy_is_held_and_says_why(change, reason, var, tmp_path, monkeypatch):
    copies.look()
    change(var, tmp_path, monkeypatch)
    copies.look()
    assert held_by() == reason
    assert Instance.objects.get().why_held
    copies.take_over(gone=[])
    copies.look()
    copies.look()
    assert not is_held()


def test_nothing_runs_on_a_held_copy(servers):
    rack, _shelf = servers
    queued(rack)
    hold(Instance.Hold.RESTORED)
    assert leases.claim(server_id=rack.pk, holder="worker") is None
    assert leases.idle_lease(rack.pk) is None
    with pytest.raises(ServiceError) as refused:
        sweeping.sweep(server=rack)
    assert refused.value.code == "held"


def test_no_mail_leaves_a_held_copy(monkeypatch, settings):
    settings.SENDS_MAIL = True
    factories.campaign("nightly")
    monkeypatch.setattr(mails, "_absences", Campaign.objects.all)
    monkeypatch.setattr(mails, "_send_absence", lambda _pk: 1)
    hold(Instance.Hold.RESTORED)
    assert mails.send() == 0
    copies.take_over(gone=[])
    assert mails.send() == 1


def test_a_held_copy_makes_no_backup(tmp_path):
    hold(Instance.Hold.RESTORED)
    with pytest.raises(ServiceError) as refused:
        backups.make(folder=tmp_path / "backups", passphrase="secret")
    assert refused.value.code == "held"
    assert not (tmp_path / "backups").exists()


# Duties that change and tell nothing outside: a copy may do them.
INWARD = {
    "artifacts.send_waiting",
    "certificates.judge_some",
    "changes.judge_some",
    "changes.wake",
    "deliveries.forget",
    "kept_verdicts.look",
    "loads.remove_expired",
    "partitions.look_after",
    "seals.request_missing",
    "seals.wake",
}


def test_each_duty_of_control_is_known_to_go_outside_or_not():
    every = (*background.DUTIES, *duties.ADDED)
    assert {duty.name for duty in every if not duty.is_outward} == INWARD


@pytest.fixture
def done(monkeypatch):
    """The names of two duties as control does them, of which one goes outside."""
    names = []

    def duty(name):
        return lambda: names.append(name)

    outward = Duty(duty("outward"), is_outward=True)
    monkeypatch.setattr(background, "DUTIES", (outward, Duty(duty("inward"))))
    monkeypatch.setattr(duties, "ADDED", [])
    monkeypatch.setattr(background.waiting, "is_any", lambda: True)
    return names


def test_nothing_goes_outside_before_control_has_looked_whether_it_is_a_copy(done, var):
    copies.look()
    (var / copies.FILE).unlink()
    background.watch()
    assert done == ["inward"]


def test_control_leaves_out_what_goes_outside(done):
    hold(Instance.Hold.MOVED)
    background.watch()
    assert done == ["inward"]
    copies.take_over(gone=[])
    background.watch()
    assert done == ["inward", "outward", "inward"]


def test_each_server_has_to_be_answered_for_once(servers):
    hold(Instance.Hold.RESTORED)
    for answers in (
        {"gone": []},
        {"gone": ["rack"]},
        {"gone": ["rack", "shelf"], "left": ["shelf"]},
        {"gone": ["rack", "shelf", "other"]},
    ):
        with pytest.raises(ServiceError) as refused:
            copies.take_over(**answers)
        assert refused.value.code == "not_answered"
    assert is_held()


def test_who_takes_over_goes_on_with_some_servers_and_leaves_the_others(servers):
    rack, shelf = servers
    of_rack, of_shelf = queued(rack).runs.get(), queued(shelf).runs.get()
    claim = leases.claim(server_id=shelf.pk, holder="a")
    transitions.transition(run_id=of_shelf.pk, to="lost", code="x", token=claim.token)
    hold(Instance.Hold.RESTORED)
    copies.take_over(gone=["rack"], left=["shelf"])
    assert Instance.objects.get().epoch == 2
    of_shelf.refresh_from_db()
    shelf.refresh_from_db()
    assert (of_shelf.state, shelf.is_maintained) == (Run.State.CANCELLED, True)
    Server.objects.filter(pk=rack.pk).update(needs_sweep=False)
    claim = leases.claim(server_id=rack.pk, holder="a")
    assert (claim.run_id, claim.last_tokens, claim.mark[:2]) == (
        of_rack.pk,
        {rack.pk: None},
        "2-",
    )
    with pytest.raises(ServiceError) as refused:
        copies.take_over(gone=["rack"], left=["shelf"])
    assert refused.value.code == "not_held"


def test_the_command_names_the_servers_and_takes_over(servers, capsys):
    hold(Instance.Hold.RESTORED)
    with pytest.raises(CommandError, match="Say of each server"):
        call_command("take_over")
    assert capsys.readouterr().out.split() == ["rack", "shelf"]
    call_command("take_over", "--gone", "rack", "--left", "shelf")
    assert not is_held()
    hold(Instance.Hold.RESTORED)
    call_command("take_over", "--all-gone")
    assert not is_held()


def test_the_page_asks_an_administrator(servers, admin_client, client):
    hold(Instance.Hold.BEHIND, "rack")
    assert client.get("/take-over/").status_code == 302
    page = admin_client.get("/take-over/").content.decode()
    assert "may be a copy" in page
    assert "A server was claimed by a copy of it." in page
    admin_client.post("/take-over/", {"server-rack": "gone"})
    assert is_held()
    admin_client.post("/take-over/", {"server-rack": "gone", "server-shelf": "left"})
    assert not is_held()
    assert "is not held" in admin_client.get("/take-over/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_readiness_and_the_first_page_say_that_it_may_be_a_copy(client, silences_anew):
    hold(Instance.Hold.BEHIND, "rack")
    outcome = health_checks.copy()
    assert (outcome.status, "rack was claimed" in outcome.reason) == ("failed", True)
    silences_anew()
    assert "this results database may be a copy" in client.get("/").content.decode()


@pytest.fixture
def silences_anew():
    yield readiness._kept_silences.clear
    readiness._kept_silences.clear()
