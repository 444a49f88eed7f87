"""The key with which BenchLab logs in; its private half is encrypted at rest."""

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction

from runs.execution import ssh
from runs.models import SSHKey

DEFAULT = "benchlab"


@transaction.atomic
def default() -> SSHKey:
    """This BenchLab's own key, generated at first use."""
    key = SSHKey.objects.filter(name=DEFAULT).first()
    if key is not None:
        return key
    private, public = ssh.generate_private_key()
    key, _created = SSHKey.objects.get_or_create(
        name=DEFAULT,
        defaults={
            "public_key": public,
            "private_key_encrypted": _fernet().encrypt(private.encode()),
        },
    )
    return key


def private_key(key: SSHKey) -> str:
    """The private half in OpenSSH form. Raises InvalidToken under another encryption key."""
    return _fernet().decrypt(bytes(key.private_key_encrypted)).decode()


def _fernet() -> Fernet:
    return Fernet(settings.ENCRYPTION_KEY)
