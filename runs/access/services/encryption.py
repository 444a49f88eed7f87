"""Secrets at rest: encrypted with keys that come from the environment, never the database.

`BENCHLAB_ENCRYPTION_KEY` holds one or more Fernet keys, separated by commas. The first one
encrypts, all of them can decrypt. To change the key: put the new one first, run
`manage.py rotate_encryption_key`, and remove the old one.
"""

import hashlib
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model

from runs.models import Load, SSHKey, Webhook, WorkerHost

# From django-allauth: the secret of an authenticator app, and the seed of recovery codes.
FACTOR = ("secret", "seed")
# Whatever has secrets, in which column, and how a row is called.
_SECRETS: tuple[tuple[type[Model], str, str], ...] = (
    (SSHKey, "private_key_encrypted", "SSH key {0.name}"),
    (Webhook, "encrypted_secret", "webhook {0.pk}"),
    (Load, "key_encrypted", "load {0.slug}"),
    (Authenticator, "data", "second factor {0.pk}"),
    (WorkerHost, "key_encrypted", "host {0}"),
)


def encrypt(secret: str) -> bytes:
    """The secret, encrypted with the first key."""
    return _keys().encrypt(secret.encode())


def decrypt(encrypted: bytes) -> str:
    """The secret. Raises InvalidToken when it was encrypted with a key that is not configured."""
    return _keys().decrypt(encrypted).decode()


def hashed(secret: str) -> str:
    """What is stored of a random secret. A plain hash is enough: nobody guesses 192 bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@transaction.atomic
def rotate(*, also: str = "") -> tuple[int, list[str]]:
    """Encrypt everything again with the first key: (how many, names of what no key opens).

    `also` are keys that decrypt besides those of the settings.
    """
    keys = _keys(also)
    done, unreadable = 0, []
    # A backup of an older release is restored into the tables of that release.
    tables = set(connection.introspection.table_names())
    for model, column, name in _SECRETS:
        if model._meta.db_table not in tables:
            continue
        rows = model._default_manager.exclude(**{column: None})
        for row in rows.select_for_update().order_by("pk"):
            try:
                setattr(row, column, _rotated(getattr(row, column), keys))
            except InvalidToken:
                unreadable.append(name.format(row))
            else:
                row.save(update_fields=[column])
                done += 1
    return done, unreadable


def unreadable() -> list[str]:
    """Names of what no key can decrypt: SSH keys, webhooks, loads, second factors."""
    return [
        name.format(row)
        for model, column, name in _SECRETS
        for row in model._default_manager.exclude(**{column: None}).order_by("pk")
        if not _opens(getattr(row, column))
    ]


def _rotated(secret: Any, keys: MultiFernet) -> Any:
    """The same secret under the first key, in the form that its column has."""
    if isinstance(secret, dict):
        rotated_secrets = {
            name: _rotated(secret[name], keys) for name in FACTOR if secret.get(name)
        }
        return secret | rotated_secrets
    if isinstance(secret, str):
        return keys.rotate(secret.encode()).decode()
    return keys.rotate(bytes(secret))


def _opens(secret: Any) -> bool:
    try:
        _rotated(secret, _keys())
    except InvalidToken:
        return False
    return True


def _keys(also: str = "") -> MultiFernet:
    key_texts = f"{settings.ENCRYPTION_KEY},{also}".split(",")
    return MultiFernet(
        [Fernet(key_text.strip()) for key_text in key_texts if key_text.strip()]
    )
