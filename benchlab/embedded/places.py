"""Where an instance keeps its files.

`var/` belongs to whoever runs the web service. What the unprivileged account needs lies in
`var/services`, or, when that account cannot get into var/ (a clone below /root, say), in a folder
of its own below /var/lib to which `var/services` is a link. No other folder's mode is touched.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from benchlab.embedded.account import Account

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
        self.artifacts = var / "artifacts"
        self.target_keys = var / "target"

    def prepare(self, account: Account) -> None:
        """Make the folders. Servers will run as that account."""
        if not self.var.exists():
            self.var.mkdir(parents=True)
            # others may pass through to services/ when they are another account, but not look
            self.var.chmod(0o711 if account.switch else 0o700)
        for folder in (self.logs, self.artifacts, self.target_keys):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        self._prepare_services(account)

    @property
    def services(self) -> Path:
        """The folder for the servers' account, without symbolic links."""
        return (self.var / "services").resolve()

    def _prepare_services(self, account: Account) -> None:
        link = self.var / "services"
        if not link.exists() and not account.can_enter(self.var):
            link.unlink(missing_ok=True)
            link.symlink_to(self._folder_elsewhere())
        link.mkdir(mode=0o711, exist_ok=True)
        self.services.chmod(0o711)

    def _folder_elsewhere(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.var.resolve())).hexdigest()[:12]
        folder = ELSEWHERE / f"benchlab-{digest}"
        if folder.exists():  # var/ was deleted since: its secrets are gone, so start afresh
            aside = folder.with_name(folder.name + ".old")
            number = 1
            while aside.exists():
                number += 1
                aside = folder.with_name(f"{folder.name}.old{number}")
            folder.rename(aside)
        folder.mkdir(mode=0o711)
        return folder
