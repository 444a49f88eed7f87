"""What a joined host may read of secrets: copies under a key of its own.

The key of this BenchLab opens everything, also second factors and the secrets of webhooks, and
makes marks; no other host gets it. A host that may log in to servers has copies of the SSH keys and
of the keys of loads; who takes the copies away takes all that it could read.
"""

from collections.abc import Callable

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction

from runs.access.services import encryption
from runs.models import HostSecret, Load, SSHKey, WorkerHost


class NotShared(Exception):
    """This host may not read the secret."""


def new_key() -> str:
    """A key for a host."""
    return Fernet.generate_key().decode()


@transaction.atomic
def share_all(host: WorkerHost) -> int:
    """Give a host copies of all that it may read; how many."""
    HostSecret.objects.filter(host=host).delete()
    ssh_keys = list(SSHKey.objects.order_by("pk"))
    loads = list(Load.objects.kept().order_by("pk"))
    seal = _sealing(host)
    copies = [
        HostSecret(
            host=host,
            ssh_key=ssh_key,
            secret_encrypted=seal(decrypt_private_key(ssh_key)),
        )
        for ssh_key in ssh_keys
    ]
    copies += [
        HostSecret(host=host, load=load, secret_encrypted=seal(decrypt_load_key(load)))
        for load in loads
    ]
    return len(HostSecret.objects.bulk_create(copies))


def share_key(ssh_key: SSHKey, secret: str) -> None:
    """Give a new SSH key to all hosts that may log in."""
    _share([HostSecret(host=host, ssh_key=ssh_key) for host in _allowed()], secret)


def share_load(load: Load, secret: str) -> None:
    """Give the key of a new load to all hosts that may log in."""
    _share([HostSecret(host=host, load=load) for host in _allowed()], secret)


def take_back(host: WorkerHost) -> None:
    """Leave a host nothing to read."""
    HostSecret.objects.filter(host=host).delete()


def decrypt_private_key(ssh_key: SSHKey) -> str:
    """The private key. Raises InvalidToken, or NotShared on a joined host."""
    if settings.WORKER_HOST:
        return _copied(ssh_key=ssh_key)
    return encryption.decrypt(bytes(ssh_key.private_key_encrypted))


def decrypt_load_key(load: Load) -> str:
    """The load's own key. Raises InvalidToken, or NotShared on a joined host."""
    if settings.WORKER_HOST:
        return _copied(load=load)
    return encryption.decrypt(bytes(load.key_encrypted))


def _copied(**which: SSHKey | Load) -> str:
    copy = HostSecret.objects.filter(host=settings.WORKER_HOST, **which).first()
    if copy is None:
        raise NotShared
    return encryption.decrypt(bytes(copy.secret_encrypted))


def _allowed() -> list[WorkerHost]:
    joined = WorkerHost.objects.filter(joined_at__isnull=False, left_at=None)
    return list(joined.filter(may_log_in=True))


def _share(copies: list[HostSecret], secret: str) -> None:
    for copy in copies:
        copy.secret_encrypted = _sealing(copy.host)(secret)
    HostSecret.objects.bulk_create(copies)


def _sealing(host: WorkerHost) -> Callable[[str], bytes]:
    fernet = Fernet(encryption.decrypt(bytes(host.key_encrypted or b"")))
    return lambda secret: fernet.encrypt(secret.encode())
