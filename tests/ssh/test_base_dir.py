"""What BenchLab may touch on a target, over real SSH: foreign files, links, marks, a canary."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchlab.embedded.embedded_server import free_port
from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan
from runs.execution.steps import base_dir as module
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.fence import Fence
from runs.scenarios import registry
from tests.ssh.directing import execute, names, raised
from tests.ssh.openssh import short_folder

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]

READ = registry.get("fixed-point-read")


@pytest.fixture
def outside(account) -> Iterator[Path]:
    """A folder of the same user next to the base directory, with something precious in it."""
    folder = short_folder()
    (folder / "precious").write_text("data")
    if account.switch:
        for path in (folder, folder / "precious"):
            os.chown(path, account.uid, account.gid)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture
def claimed(on_host, base) -> BaseDir:
    on_host(base.claim)
    return base


@pytest.fixture
def told(on_host):
    """The code of the TargetProblem that an act on the target ends with; None where it does not."""

    def tell(act):
        try:
            on_host(act)
        except TargetProblem as problem:
            return problem.code
        return None

    return tell


def as_account(account, *argv: str | Path) -> None:
    """What the login user itself would lay there."""
    assert account.succeeds(*argv)


def test_a_folder_of_ours_is_made_and_removed(told, claimed, base_dir):
    path = f"{base_dir}/clusters/a"
    assert told(lambda host: claimed.make_folder(host, path)) is None
    assert names(base_dir / "clusters" / "a") == [".benchlab"]
    assert told(lambda host: claimed.make_folder(host, path)) is None
    assert told(lambda host: claimed.remove(host, path)) is None
    assert names(base_dir / "clusters") == []
    assert told(lambda host: claimed.remove(host, path)) is None


@pytest.mark.parametrize("can_lock", [True, False])
def test_two_removals_at_once_both_end_well(
    on_host, claimed, base_dir, monkeypatch, can_lock
):
    """As when the connection of the first has broken, which then goes on."""
    if not can_lock:
        script = module._REMOVE.replace("command -v flock", "false")
        monkeypatch.setattr(module, "_REMOVE", script)
    folder = claimed.join("runs", "1-1")
    fill = (
        'cd "$1" && mkdir $(seq 500) && '
        "for each in *; do echo $each/a $each/b; done | xargs touch"
    )

    async def act(host):
        await claimed.make_folder(host, folder)
        await host.run(["sh", "-c", fill, "fill", folder])
        await asyncio.gather(*(claimed.remove(host, folder) for _each in range(3)))

    on_host(act)
    assert names(base_dir / "runs") == []


def test_a_removal_that_comes_late_leaves_what_was_made_anew(
    on_host, claimed, base_dir
):
    folder = claimed.join("runs", "1-1")

    async def act(host):
        await claimed.make_folder(host, folder)
        first = asyncio.create_task(host.run(["flock", folder, "sleep", "1"]))
        await asyncio.sleep(0.3)
        late = asyncio.create_task(claimed.remove(host, folder))
        await asyncio.sleep(0.3)
        await host.run(["rm", "-r", folder])
        await claimed.make_folder(host, folder)
        await host.run(["touch", f"{folder}/new"])
        await asyncio.gather(first, late)

    on_host(act)
    assert (base_dir / "runs" / "1-1" / "new").exists()


def test_what_others_keep_in_a_folder_does_not_become_ours(told, claimed, base_dir):
    folder = base_dir / "runs" / "7-1"
    folder.mkdir()
    (folder / "precious").write_text("data")
    assert told(lambda host: claimed.make_folder(host, str(folder))) == "not_ours"
    assert told(lambda host: claimed.remove(host, str(folder))) == "not_ours"
    assert names(folder) == ["precious"]


def test_an_empty_folder_is_what_an_interruption_left(told, claimed, base_dir):
    folder = base_dir / "clusters" / "a"
    folder.mkdir()
    assert told(lambda host: claimed.remove(host, str(folder))) is None


@pytest.mark.parametrize(
    "mark",
    ["", "benchlab another clusters/a\n", "benchlab 0123456789abcdef clusters/b\n"],
    ids=["cut off", "of another BenchLab", "of another folder"],
)
def test_only_the_very_mark_lets_a_folder_be_removed(told, claimed, base_dir, mark):
    folder = base_dir / "clusters" / "a"
    folder.mkdir()
    (folder / ".benchlab").write_text(mark)
    (folder / "precious").write_text("data")
    assert told(lambda host: claimed.remove(host, str(folder))) == "not_ours"
    assert (folder / "precious").read_text() == "data"


def test_a_base_directory_that_lost_its_mark_is_not_touched(told, claimed, base_dir):
    path = f"{base_dir}/clusters/a"
    assert told(lambda host: claimed.make_folder(host, path)) is None
    (base_dir / ".benchlab").unlink()
    assert told(lambda host: claimed.remove(host, path)) == "not_ours"
    assert (
        told(lambda host: claimed.make_folder(host, f"{base_dir}/clusters/b"))
        == "not_ours"
    )
    assert names(base_dir / "clusters") == ["a"]


@pytest.mark.parametrize("action", ["make_folder", "remove", "check"])
def test_a_link_above_a_folder_leads_nowhere(
    told, account, claimed, base_dir, outside, action
):
    (base_dir / "clusters").rmdir()
    as_account(account, "ln", "-s", outside, base_dir / "clusters")
    as_account(account, "mkdir", outside / "a")
    # Even where the mark is the right one: the folder is not below the base directory.
    path = f"{base_dir}/clusters/a"
    if action != "make_folder":
        (outside / "a" / ".benchlab").write_text(claimed.mark(path) + "\n")
    before = tree(outside)
    assert told(lambda host: getattr(claimed, action)(host, path)) == "leads_out"
    assert tree(outside) == before


@pytest.mark.parametrize("action", ["make_folder", "remove", "check"])
def test_a_link_in_place_of_a_folder_leads_nowhere(
    told, account, claimed, base_dir, outside, action
):
    path = base_dir / "clusters" / "a"
    as_account(account, "ln", "-s", outside, path)
    before = tree(outside)
    assert told(lambda host: getattr(claimed, action)(host, str(path))) == "leads_out"
    assert tree(outside) == before
    assert path.is_symlink()


@pytest.mark.parametrize("name", ["runs", "clusters", "leases"])
def test_a_base_directory_whose_folders_are_links_is_refused(
    told, account, base, base_dir, outside, name
):
    as_account(account, "mkdir", base_dir / "elsewhere")
    on = base_dir / "elsewhere"
    inner = BaseDir(str(on), base.instance)
    (on / ".benchlab").write_text(inner.mark(inner.path) + "\n")
    as_account(account, "ln", "-s", outside, on / name)
    before = tree(outside)
    assert told(inner.claim) == "leads_out"
    assert tree(outside) == before


def test_a_cluster_whose_data_were_moved_behind_a_link_is_not_ours_to_stop(
    told, account, claimed, base_dir, outside
):
    path = f"{base_dir}/clusters/a"
    assert told(lambda host: claimed.make_folder(host, path)) is None
    assert told(lambda host: claimed.check(host, path)) is None
    as_account(account, "ln", "-s", outside, f"{path}/data")
    assert told(lambda host: claimed.check(host, path)) == "leads_out"


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(
        plan,
        levels={"version": "16.14", "clients": 1},
        parameters={"scale": 1, "duration": 1},
    )


@pytest.mark.usefixtures("prepared")
def test_a_run_stops_no_cluster_to_which_a_link_leads(
    direct, plan, base_dir, canary, account
):
    postmaster = (canary / "pgdata" / "postmaster.pid").read_text()
    data = base_dir / "clusters" / "shared" / "data"
    as_account(account, "mv", data, f"{data}.old")
    as_account(account, "ln", "-s", canary / "pgdata", data)
    director = direct(plan)
    with pytest.raises(TargetProblem) as problem:
        execute(director)
    assert problem.value.code == "leads_out"
    assert "cleanup_incomplete" in {code for code, _message in director.reporter.events}
    assert (canary / "pgdata" / "postmaster.pid").read_text() == postmaster
    pid = postmaster.split()[0]
    assert Path(f"/proc/{pid}").exists()


def test_a_base_directory_that_was_in_use_can_be_released_and_claimed_anew(
    on_host, claimed, base_dir
):
    on_host(lambda host: raised(Fence(f"{base_dir}/leases/4", 17), host))
    assert names(base_dir / "leases" / "4") == ["17", "17.0-0"]
    on_host(claimed.release)
    assert names(base_dir) == []
    on_host(BaseDir(claimed.path, "f" * 16).claim)


def test_a_base_directory_may_itself_be_a_link(told, account, base, base_dir):
    as_account(account, "mkdir", base_dir / "disk")
    as_account(account, "ln", "-s", base_dir / "disk", base_dir / "lab")
    linked = BaseDir(f"{base_dir}/lab", base.instance)
    path = f"{linked.path}/clusters/a"
    assert told(linked.claim) is None
    assert told(lambda host: linked.make_folder(host, path)) is None
    assert told(lambda host: linked.remove(host, path)) is None
    assert names(base_dir / "disk" / "clusters") == []


def test_a_link_in_place_of_the_mark_is_not_a_mark(
    told, account, base, base_dir, outside
):
    (outside / "mark").write_text(base.mark(base.path) + "\n")
    as_account(account, "ln", "-s", outside / "mark", base_dir / ".benchlab")
    assert told(base.claim) == "base_dir_foreign"


def test_the_mark_is_not_written_through_a_link(told, account, base, base_dir, outside):
    as_account(account, "ln", "-s", outside / "precious", base_dir / ".benchlab.new")
    assert told(base.claim) is None
    assert (outside / "precious").read_text() == "data"


def test_links_in_a_removed_folder_go_and_what_they_name_stays(
    told, account, claimed, base_dir, outside
):
    path = base_dir / "clusters" / "a"
    assert told(lambda host: claimed.make_folder(host, str(path))) is None
    as_account(account, "mkdir", path / "pg_tblspc")
    as_account(account, "ln", "-s", outside, path / "pg_tblspc" / "16385")
    as_account(account, "ln", "-s", outside, path / "link")
    before = tree(outside)
    assert told(lambda host: claimed.remove(host, str(path))) is None
    assert not path.exists()
    assert tree(outside) == before


@pytest.fixture
def mounted(account, base, base_dir) -> Iterator[Path]:
    """A folder of ours in which somebody has mounted a disk; sshd starts later, and sees it."""
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    folder = base_dir / "clusters" / "a"
    as_account(account, "mkdir", "-p", folder / "disk")
    for marked in (base_dir, folder):
        (marked / ".benchlab").write_text(base.mark(str(marked)) + "\n")
    options = f"size=1m,uid={account.uid},mode=700"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder / "disk"], check=True
    )
    as_account(account, "touch", folder / "disk" / "precious")
    yield folder
    subprocess.run(["umount", folder / "disk"], check=True)


def test_what_is_mounted_in_a_removed_folder_stays(mounted, openssh, told, base):
    assert told(lambda host: base.remove(host, str(mounted))) == "base_dir_not_writable"
    assert names(mounted / "disk") == ["precious"]
    assert (mounted / ".benchlab").exists()


@pytest.fixture
def canary(account, binaries, outside) -> Iterator[Path]:
    """A running cluster of somebody else under the same user, which writes nothing itself."""
    data, bindir = outside / "pgdata", binaries.postgresql16
    as_account(
        account, bindir / "initdb", "-D", data, "-U", "owner", "-A", "trust", "-N"
    )
    quiet = (
        "-c autovacuum=off -c checkpoint_timeout=1h -c listen_addresses= -c fsync=off"
    )
    options = f"-p {free_port(0)} -k {outside} {quiet}"
    log = outside / "log"
    start = (bindir / "pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", options)
    as_account(account, *start)
    yield outside
    as_account(account, bindir / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)


def test_a_run_leaves_a_neighbour_and_its_cluster_byte_for_byte(
    direct, plan, base_dir, canary, on_host, base
):
    before, postmaster = (
        tree(canary),
        (canary / "pgdata" / "postmaster.pid").read_text(),
    )
    execute(direct(plan))
    on_host(lambda host: base.remove(host, f"{base_dir}/clusters/shared"))
    assert names(base_dir / "clusters") == names(base_dir / "runs") == []
    assert (canary / "pgdata" / "postmaster.pid").read_text() == postmaster
    assert tree(canary) == before


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its mode, times and the hash of its bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        said = f"{about.st_mode:o} {about.st_uid}"
        if path.is_symlink():
            said += f" {path.readlink()}"
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            said += f" {about.st_mtime_ns} {content}"
        found[str(path.relative_to(folder))] = said
    return found
