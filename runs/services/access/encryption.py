"""Secrets at rest: encrypted with keys that come from the environment, never the database.

`BENCHLAB_ENCRYPTION_KEY` holds one or more Fernet keys, separated by commas. The first one
encrypts, all of them can decrypt. To change the key: put the new one first, run
`manage.py rotate_encryption_key`, and remove the old one.
"""

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import transaction

from runs.models import SSHKey, Webhook

# From django-allauth: the secret of an authenticator app, and the seed of recovery codes.
FACTOR = ("secret", "seed")


def encrypt(secret: str) -> bytes:
    """The secret, encrypted with the first key."""
    return _keys().encrypt(secret.encode())


def decrypt(encrypted: bytes) -> str:
    """The secret. Raises InvalidToken when it was encrypted with a key that is not configured."""
    return _keys().decrypt(encrypted).decode()


@transaction.atomic
def rotate(*, also: str = "") -> tuple[int, list[str]]:
    """Encrypt everything again with the first key: (how many, names of what no key opens).

    `also` are keys that decrypt besides those of the settings.
    """
    keys = _keys(also)
    done, unreadable = 0, []
    for key in SSHKey.objects.select_for_update().order_by("pk"):
        try:
            key.private_key_encrypted = keys.rotate(bytes(key.private_key_encrypted))
        except InvalidToken:
            unreadable.append(f"SSH key {key.name}")
            continue
        key.save(update_fields=["private_key_encrypted"])
        done += 1
    for webhook in Webhook.objects.select_for_update().order_by("pk"):
        try:
            webhook.encrypted_secret = keys.rotate(webhook.encrypted_secret.encode()).decode()
        except InvalidToken:
            unreadable.append(f"webhook {webhook.pk}")
            continue
        webhook.save(update_fields=["encrypted_secret"])
        done += 1
    for factor in Authenticator.objects.select_for_update().order_by("pk"):
        try:
            factor.data |= {
                name: keys.rotate(factor.data[name].encode()).decode()
                for name in FACTOR
                if factor.data.get(name)
            }
        except InvalidToken:
            unreadable.append(f"second factor {factor.pk}")
            continue
        factor.save(update_fields=["data"])
        done += 1
    return done, unreadable


def unreadable() -> list[str]:
    """Names of what no key can decrypt: SSH keys, webhooks, second factors."""
    stored: dict[str, bytes | str] = {}
    for key in SSHKey.objects.all():
        stored[f"SSH key {key.name}"] = bytes(key.private_key_encrypted)
    for webhook in Webhook.objects.all():
        stored[f"webhook {webhook.pk}"] = webhook.encrypted_secret
    for factor in Authenticator.objects.all():
        for name in filter(factor.data.get, FACTOR):
            stored[f"second factor {factor.pk}"] = factor.data[name]
    return [name for name, secret in stored.items() if not _opens(secret)]


def _opens(secret: bytes | str) -> bool:
    try:
        _keys().decrypt(secret)
    except (InvalidToken, ValueError):
        return False
    return True


def _keys(also: str = "") -> MultiFernet:
    given = f"{settings.ENCRYPTION_KEY},{also}".split(",")
    return MultiFernet([Fernet(each.strip()) for each in given if each.strip()])
