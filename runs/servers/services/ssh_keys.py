"""The keys with which BenchLab logs in; private keys are encrypted at rest."""

from django.db import transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from runs.access.services import audit, encryption, host_secrets
from runs.execution.ssh import hosts
from runs.models import SSHKey
from runs.shared.errors import ServiceError

DEFAULT = "benchlab"


@transaction.atomic
def default() -> SSHKey:
    """This BenchLab's own key, generated at first use."""
    key = SSHKey.objects.filter(name=DEFAULT).first()
    if key is not None:
        return key
    private, public = _generated()
    key, created = SSHKey.objects.get_or_create(
        name=DEFAULT,
        defaults={
            "public_key": public,
            "private_key_encrypted": encryption.encrypt(private),
        },
    )
    if created:
        host_secrets.share_key(key, private)
    return key


@transaction.atomic
def generate(*, name: str) -> SSHKey:
    """Make an ed25519 key. Raises ServiceError `ssh_key_exists` if the name is taken."""
    _check_name(name)
    return _store(name, *_generated())


@transaction.atomic
def upload(*, name: str, private_key: str, passphrase: str = "") -> SSHKey:
    """Store a key that was made elsewhere; the passphrase is used once and not stored.

    Raises ServiceError `ssh_key_exists`, and the codes of PrivateKeyRefused.
    """
    from runs.execution.ssh import private_keys  # noqa: PLC0415 - takes 0.2 s, and most processes log in nowhere

    _check_name(name)
    try:
        private, public = private_keys.read(private_key, passphrase)
    except private_keys.PrivateKeyRefused as refused:
        raise ServiceError(
            refused.code,
            _(refused.message),
            remedy=_(refused.remedy),
            field=refused.field,
        ) from refused
    if stored_key := SSHKey.objects.filter(
        public_key__startswith=" ".join(public.split()[:2])
    ).first():
        message = _("This key is already stored, as “%(name)s”.") % {
            "name": stored_key.name
        }
        remedy = _("Choose it when you register a server.")
        raise ServiceError(
            "ssh_key_exists", message, remedy=remedy, field="private_key"
        )
    return _store(name, private, public)


@transaction.atomic
def delete(*, key: SSHKey) -> None:
    """Delete a key. Raises ServiceError `ssh_key_in_use` while a server uses it."""
    details = {"fingerprint": hosts.fingerprint(key.public_key)}
    try:
        key.delete()
    except ProtectedError as error:
        names = ", ".join(key.servers.order_by("name").values_list("name", flat=True))
        words = {"name": key.name, "servers": names}
        message = _("The key “%(name)s” is used for %(servers)s.") % words
        remedy = _("Choose another key for these servers first.")
        raise ServiceError("ssh_key_in_use", message, remedy=remedy) from error
    audit.record("ssh_key_deleted", f"SSH key {key.name}", before=details)


def private_key(key: SSHKey) -> str:
    """The private key in OpenSSH form.

    Raises InvalidToken under another encryption key, NotShared on a host that may not have it.
    """
    return host_secrets.decrypt_private_key(key)


def _generated() -> tuple[str, str]:
    from runs.execution.ssh import ssh  # noqa: PLC0415 - takes 0.2 s, and most processes log in nowhere

    return ssh.generate_private_key()


def _check_name(name: str) -> None:
    if SSHKey.objects.filter(name=name).exists():
        message = _("There is a key “%(name)s” already.") % {"name": name}
        remedy = _("Give another name.")
        raise ServiceError("ssh_key_exists", message, remedy=remedy, field="name")


def _store(name: str, private: str, public: str) -> SSHKey:
    ssh_key = SSHKey.objects.create(
        name=name, public_key=public, private_key_encrypted=encryption.encrypt(private)
    )
    host_secrets.share_key(ssh_key, private)
    details = {"fingerprint": hosts.fingerprint(public)}
    audit.record("ssh_key_made", f"SSH key {name}", after=details)
    return ssh_key
