"""The accounts of an instance: one each for the service, its two stores, and the target.

A benchmark is a program that somebody else wrote. It runs in the target's account, which owns
nothing of the results database, of Redis or of the service, and knows none of their passwords.
"""

import contextlib
import fcntl
import grp
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from benchlab.embedded.account import Account, myself
from benchlab.embedded.errors import StartError

# Who may choose another account, and what it is called where nobody does.
VARIABLES = {
    "web": ("BENCHLAB_USER", "benchlab-web"),
    "postgresql": ("BENCHLAB_POSTGRESQL_USER", "benchlab-postgresql"),
    "redis": ("BENCHLAB_REDIS_USER", "benchlab-redis"),
    "target": ("BENCHLAB_TARGET_USER", "benchlab-target"),
}
NO_LOGIN = "/usr/sbin/nologin"
SYSTEM_NUMBERS = range(999, 99, -1)


@dataclass(frozen=True)
class Accounts:
    """Who runs what: `web` is pages, control and workers, `target` this machine's commands."""

    web: Account
    postgresql: Account
    redis: Account
    target: Account

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Four accounts when we are root, made where they are missing; else our own for all.

        An ordinary user may name another account for the target, which sudo lets them become.
        Raises StartError for an account that does not exist, is root, has two parts to play, or
        that sudo refuses.
        """
        if os.getuid() != 0:
            mine = myself()
            name = environ.get("BENCHLAB_TARGET_USER") or mine.name
            target = mine if name == mine.name else _account_by_sudo(name, mine.name)
            return cls(mine, mine, mine, target)
        accounts = cls(**{role: _account(role, environ) for role in VARIABLES})
        by_number: dict[int, str] = {}
        for role, (variable, _name) in VARIABLES.items():
            account: Account = getattr(accounts, role)
            prior = by_number.setdefault(account.uid, variable)
            if prior != variable:
                raise StartError(
                    f"{prior} and {variable} are both {account.name}: give each an account of its "
                    "own, so that a benchmark cannot reach the results"
                )
        return accounts

    @property
    def each(self) -> tuple[Account, ...]:
        """All of them; the same one more than once where they are not apart."""
        return (self.web, self.postgresql, self.redis, self.target)

    @property
    def is_target_apart(self) -> bool:
        """Whether what runs on the target is kept from the rest by the kernel."""
        return self.target.uid not in {
            self.web.uid,
            self.postgresql.uid,
            self.redis.uid,
        }


def _account(role: str, environ: Mapping[str, str]) -> Account:
    variable, usual = VARIABLES[role]
    name = environ.get(variable) or usual
    with contextlib.suppress(KeyError):
        return _account_to_switch_to(name, variable)
    if name != usual:
        raise StartError(
            f"there is no account {name!r}: set {variable} to an existing one"
        )
    _make(name)
    try:
        return _account_to_switch_to(name, variable)
    except KeyError:
        raise StartError(
            f"the account {name} could not be made: make it, or set {variable} to another one"
        ) from None


def _account_by_sudo(name: str, me: str) -> Account:
    variable = VARIABLES["target"][0]
    try:
        sudo_account = _account_to_switch_to(name, variable)
    except KeyError:
        raise StartError(
            f"there is no account {name!r}: set {variable} to an existing one"
        ) from None
    account = replace(sudo_account, switch=False, by_sudo=True)
    if not account.succeeds("true"):
        raise StartError(
            f"sudo does not let {me} run programs as {name} without a password: let root put"
            f" '{me} ALL=({name}) NOPASSWD: ALL' into a file of /etc/sudoers.d, or unset {variable}"
        )
    return account


def _account_to_switch_to(name: str, variable: str) -> Account:
    entry = pwd.getpwnam(name)
    if entry.pw_uid == 0:
        raise StartError(
            f"{variable}={name} is root, and nothing of an instance runs as root"
        )
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)


def _make(name: str) -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        add_account(name)
        return
    options = (
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
    )
    command = [useradd, *options, "--shell", NO_LOGIN, name]
    # Another instance may make the same one at this moment: the caller looks whether it is there.
    subprocess.run(command, capture_output=True, check=False)


def add_account(name: str, etc: Path = Path("/etc")) -> None:
    """Replaces a missing useradd: adds a group and an account that cannot log in."""
    with (etc / ".pwd.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        number = _free_number(etc)
        _append(etc / "group", f"{name}:x:{number}:\n")
        _append(
            etc / "passwd",
            f"{name}:*:{number}:{number}:BenchLab:/nonexistent:{NO_LOGIN}\n",
        )


def _free_number(etc: Path) -> int:
    numbers = {entry.pw_uid for entry in pwd.getpwall()} | {
        entry.gr_gid for entry in grp.getgrall()
    }
    for file in (etc / "passwd", etc / "group"):
        fields = (line.split(":") for line in file.read_text().splitlines())
        numbers |= {
            int(field[2]) for field in fields if len(field) > 2 and field[2].isdigit()
        }
    for number in SYSTEM_NUMBERS:
        if number not in numbers:
            return number
    raise StartError("no number is free for another system account")


def _append(path: Path, line: str) -> None:
    text = path.read_text()
    with path.open("a") as file:
        file.write(line if text.endswith("\n") or not text else f"\n{line}")
