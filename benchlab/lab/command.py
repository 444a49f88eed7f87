"""`script/lab`: what the person at the terminal asks for and reads."""

import argparse
import fcntl
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import Places, var_from_environment
from benchlab.embedded.software import Software, software_for
from benchlab.lab import building, downloads, folders, releases
from benchlab.lab.errors import LabError, RepositoryAway
from benchlab.lab.releases import Release

SERVER = "this-machine"


def is_running(places: Places) -> bool:
    """Whether an instance holds its lock and has come far enough to know its addresses."""
    if not places.environment.exists() or not places.lock.exists():
        return False
    with places.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def register(places: Places, account: Account, bindirs: Sequence[Path]) -> None:
    """Add the folders to the running instance's server `this-machine` and inspect it.

    As the account of the service, which is not root.
    """
    software = software_for([account], places.services, is_in_use=True)
    manage, environment = (
        software.root / "manage.py",
        _environment(places, software, account),
    )
    status, output = account.printed(
        software.python,
        manage,
        "add_bindirs",
        SERVER,
        *bindirs,
        env=environment,
        cwd=software.root,
    )
    if status != 0:
        last_lines = "\n".join(output.splitlines()[-5:])
        raise LabError(f"the running instance did not take the versions:\n{last_lines}")


def _environment(
    places: Places, software: Software, account: Account
) -> dict[str, str]:
    """As the instance's own processes have it: the account cannot read the home of root."""
    lines = places.environment.read_text().splitlines()
    instance = dict(line.split("=", 1) for line in lines if "=" in line)
    settings = {"DJANGO_SETTINGS_MODULE": "benchlab.settings"}
    home = {"HOME": str(places.work)} if account.switch else {}
    return {**os.environ, **settings, **software.variables, **home, **instance}


def say(line: str) -> None:
    """Tell the person at the terminal."""
    print(f"BenchLab: {line}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the versions that are asked for; the exit status."""
    chosen = _parsed(arguments)
    try:
        if chosen.list:
            _show()
            return 0
        if chosen.build:
            return _build(chosen.build, chosen.block_sizes, register=chosen.register)
        return _make(chosen.versions, register=chosen.register)
    except (LabError, StartError) as error:
        print(f"BenchLab: {error}", file=sys.stderr, flush=True)
        return 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/lab",
        description="Makes PostgreSQL of many versions ready on this machine, and registers them "
        "as installations of a running BenchLab's server this-machine.",
    )
    parser.add_argument(
        "versions", nargs="*", help="9.6, 14, 18.0 ...; without any, all of them"
    )
    parser.add_argument(
        "--list", action="store_true", help="only say which versions there are"
    )
    parser.add_argument(
        "--build",
        type=Path,
        metavar="SOURCE",
        help="build this source archive of PostgreSQL",
    )
    parser.add_argument(
        "--block-sizes",
        type=int,
        nargs="+",
        choices=building.BLOCK_SIZES,
        default=[8, 16, 32],
        metavar="KB",
        help="with --build, an installation for each: 1, 2, 4, 8, 16 or 32; by default 8 16 32",
    )
    parser.add_argument(
        "--register",
        action=argparse.BooleanOptionalAction,
        help="fail unless a running BenchLab takes them, or leave a running one alone; without "
        "either, register them where one runs",
    )
    return parser.parse_args(arguments)


def _show() -> None:
    for release in releases.every():
        megabytes = f"{release.bytes / 1e6:5.0f} MB"
        line = f"{release.major:5} {release.version:8} {megabytes}  {release.remark}"
        print(line.rstrip())


def _make(names: Sequence[str], *, register: bool | None) -> int:
    chosen = releases.choose(names)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise LabError(
            f"the lab's binaries are for Linux on x86_64, and this is {platform.system()} on "
            f"{platform.machine()}: install versions by its packages and give their folders on the "
            "server's page"
        )
    accounts, places = Accounts.from_environment(), Places(var_from_environment())
    places.prepare(accounts)
    bindirs, failures = _make_each(chosen, places, accounts.target)
    if bindirs:
        _register(places, accounts, bindirs, is_wanted=register)
    for failure in failures:
        print(f"BenchLab: {failure}", file=sys.stderr, flush=True)
    return 1 if failures else 0


def _build(source: Path, block_sizes: Sequence[int], *, register: bool | None) -> int:
    accounts, places = Accounts.from_environment(), Places(var_from_environment())
    places.prepare(accounts)
    folder = folders.versions_folder(places, accounts.target)
    bindirs = building.build(source, block_sizes, folder, accounts.target, say=say)
    _register(places, accounts, bindirs, is_wanted=register)
    return 0


def _make_each(
    chosen: Sequence[Release], places: Places, account: Account
) -> tuple[list[Path], list[LabError]]:
    """The bin folders that are there now, and why others are not: one does not stop the next.

    Where the repository does not answer, only what was downloaded before is unpacked.
    """
    folder = folders.versions_folder(places, account)
    base, archives = downloads.repository(), folders.downloads_folder(places.var)
    bindirs: list[Path] = []
    failures: list[LabError] = []
    for release in chosen:
        is_away = any(isinstance(failure, RepositoryAway) for failure in failures)
        try:
            if not downloads.is_there(release, folder, account):
                if is_away and not downloads.is_kept(release, archives):
                    continue
                artifact = downloads.fetch(release, archives, base=base, say=say)
                downloads.unpack(release, artifact, folder, account)
                say(
                    f"PostgreSQL {release.version} is ready in {folder / release.version}"
                )
                if release.remark:
                    say(f"PostgreSQL {release.version}: {release.remark}")
            if release.cflags:
                (folder / release.version / "cflags").write_text(f"{release.cflags}\n")
            bindirs.append(folder / release.version / "bin")
        except LabError as error:
            failures.append(error)
    say(f"{len(bindirs)} of {len(chosen)} versions are ready in {folder}")
    return bindirs, failures


def _register(
    places: Places,
    accounts: Accounts,
    bindirs: Sequence[Path],
    *,
    is_wanted: bool | None,
) -> None:
    """As --register says; None: where an instance runs."""
    if is_wanted is False:
        return
    if is_running(places):
        register(places, accounts.web, bindirs)
        say(f"{len(bindirs)} versions are registered on the server this-machine")
    elif is_wanted:
        raise LabError(
            f"no BenchLab runs with its files in {places.var}: start script/server,"
            " or set BENCHLAB_VAR"
        )
    else:
        say("script/server registers them when it starts")
