"""The files that pages need, collected in one folder for the web service."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

# Inside the folder, so that it goes when somebody empties that.
NOTED = ".collected"


def collect() -> bool:
    """Collect them as `manage.py collectstatic` does; False where nothing has changed since."""
    folder = Path(settings.STATIC_ROOT)
    noted, digest = folder / NOTED, _digest()
    is_there = noted.exists() and (folder / "staticfiles.json").exists()
    if is_there and noted.read_text() == digest:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    noted.write_text(digest)
    return True


def _digest() -> str:
    """Of names, sizes and times of all files to collect, and of how they are stored."""
    digest = hashlib.sha256(f"{settings.VERSION} {settings.STORAGES}".encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            file = Path(storage.path(name))
            file_status = file.stat()
            digest.update(
                f"{file} {file_status.st_size} {file_status.st_mtime_ns}\n".encode()
            )
    return digest.hexdigest()
