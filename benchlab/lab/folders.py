"""The folders of the lab: the unpacked versions, and the stored downloads."""

import os
from collections.abc import Mapping
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.places import Places


def versions_folder(places: Places, account: Account) -> Path:
    """`var/lab`, or a folder next to the services if the servers' account cannot enter var/.

    The folders of an instance must have been prepared.
    """
    if account.can_enter(places.var):
        return places.var.resolve() / "lab"
    return places.services / "lab"


def downloads_folder(var: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """BENCHLAB_LAB_DOWNLOADS, by default `var/lab-downloads`."""
    return Path(
        environ.get("BENCHLAB_LAB_DOWNLOADS") or var / "lab-downloads"
    ).absolute()


def bindirs(folder: Path) -> list[Path]:
    """The bin folders of the versions that are there, by name; half-unpacked ones have another."""
    return sorted(
        bindir for bindir in folder.glob("[0-9]*/bin") if (bindir / "postgres").exists()
    )
