"""Where an instance keeps its files.

`var/` and the secrets in it belong to whoever starts the instance. What other accounts need lies in
`var/services`, or, when they cannot get into var/ (a clone below /root, say), in a folder below
/var/lib to which `var/services` is a link. The service's own files lie in var/ where its account
gets there, else below services/ with links in var/. No other folder's mode is touched.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.errors import StartError

REPOSITORY = Path(__file__).resolve().parents[2]
ELSEWHERE = Path("/var/lib")


def var_from_environment(environ: Mapping[str, str] = os.environ) -> Path:
    """BENCHLAB_VAR as an absolute path, by default var/ in the repository."""
    return Path(environ.get("BENCHLAB_VAR") or REPOSITORY / "var").absolute()


class Places:
    """The paths of one instance; prepare() makes the folders."""

    def __init__(self, var: Path):
        self.var = var
        self.lock = var / "instance.lock"
        self.state = var / "instance.json"
        self.environment = var / "environment"
        self.secret_key = var / "secret_key"
        self.encryption_key = var / "encryption_key"
        self.logs = var / "logs"
        self.target_keys = var / "target"

    def prepare(self, accounts: Accounts) -> None:
        """Make the folders, and give each to the account whose it is."""
        if not self.var.exists():
            self.var.mkdir(parents=True)
            # others may pass through to services/ when they are another account, but not look
            self.var.chmod(
                0o711 if any(account.is_another for account in accounts.each) else 0o700
            )
        if accounts.target.by_sudo:
            self._let_pass(accounts.target)
        for folder in (self.logs, self.target_keys):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        self._prepare_services(accounts)
        self._prepare_files_of_the_service(accounts.web)

    def _let_pass(self, account: Account) -> None:
        """Only root could put the services elsewhere, so the account must get through var/."""
        self.var.chmod(0o711)
        if not account.can_enter(self.var):
            raise StartError(
                f"{account.name} cannot get into {self.var}: set BENCHLAB_VAR to a folder outside"
                " of your home, such as /var/tmp/benchlab, or let others pass through (chmod o+x)"
            )

    @property
    def services(self) -> Path:
        """The folder for the servers' account, without symbolic links."""
        return (self.var / "services").resolve()

    @property
    def service_folder(self) -> Path:
        """What pages and workers know as BENCHLAB_VAR: their account can get into it."""
        elsewhere = self.services / "web"
        return elsewhere if elsewhere.exists() else self.var

    @property
    def artifacts(self) -> Path:
        """The raw files of the runs."""
        return self.service_folder / "artifacts"

    @property
    def work(self) -> Path:
        """The service's home."""
        return self.service_folder / "work"

    def _prepare_files_of_the_service(self, account: Account) -> None:
        if not account.can_enter(self.var):
            elsewhere = self.services / "web"
            elsewhere.mkdir(mode=0o700, exist_ok=True)
            account.take_over(elsewhere)
        for name in ("artifacts", "seals", "static", "work"):
            folder = self.service_folder / name
            if folder.parent != self.var:
                _move(self.var / name, folder)
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
            account.take_over(folder)

    def _prepare_services(self, accounts: Accounts) -> None:
        link = self.var / "services"
        if not link.exists() and not all(
            account.can_enter(self.var) for account in set(accounts.each)
        ):
            link.unlink(missing_ok=True)
            link.symlink_to(self._folder_elsewhere())
        link.mkdir(mode=0o711, exist_ok=True)
        self.services.chmod(0o711)

    def _folder_elsewhere(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.var.resolve())).hexdigest()[:12]
        folder = ELSEWHERE / f"benchlab-{digest}"
        if (
            folder.exists()
        ):  # var/ was deleted since: its secrets are gone, so start afresh
            aside = folder.with_name(folder.name + ".old")
            number = 1
            while aside.exists():
                number += 1
                aside = folder.with_name(f"{folder.name}.old{number}")
            folder.rename(aside)
        folder.mkdir(mode=0o711)
        return folder


def _move(former: Path, folder: Path) -> None:
    """Move a folder to where its account can get at it, and leave a link to it."""
    if former.is_symlink():
        former.unlink()
    elif former.exists():
        shutil.move(former, folder)
    former.symlink_to(folder)


def write_private(path: Path, text: str) -> None:
    """Replace a file by one of mode 0600; a reader sees the old text or the new, never a part."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The secret in that file, made at the first call."""
    if not path.exists():
        write_private(path, make() + "\n")
    return path.read_text().strip()
