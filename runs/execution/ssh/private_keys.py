"""Private keys made elsewhere: PEM, PKCS#8 or OpenSSH, with or without a passphrase."""

import asyncssh

from runs.wording import gettext_noop as _

LONGEST_BYTES = 20_000
SMALLEST_RSA_BITS = 2048


class PrivateKeyRefused(Exception):
    """The text is not a usable private key. `field`: private_key or passphrase."""

    def __init__(
        self, code: str, message: str, remedy: str, field: str = "private_key"
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.field = field


def read(text: str, passphrase: str = "") -> tuple[str, str]:
    """(private key in OpenSSH form without passphrase, public key line). Raises PrivateKeyRefused.

    The text may come from a form, with carriage returns and without a final newline.
    """
    text = "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
    if len(text) > LONGEST_BYTES or "PRIVATE KEY" not in text.partition("\n")[0]:
        raise _no_private_key(text)
    key = _imported(text, passphrase)
    if key.algorithm == b"ssh-rsa" and _bits(key) < SMALLEST_RSA_BITS:
        raise PrivateKeyRefused(
            "ssh_key_too_weak",
            _("This RSA key is shorter than 2048 bits."),
            _("Generate an ed25519 key here, or with ssh-keygen -t ed25519."),
        )
    key.set_comment(key.get_comment() or "benchlab")
    try:
        return (
            key.export_private_key().decode(),
            key.export_public_key().decode().strip(),
        )
    except asyncssh.KeyExportError as error:
        raise _unreadable() from error


def _imported(text: str, passphrase: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(text, passphrase or None)
    except ValueError as error:
        raise _refusal(str(error).lower(), passphrase) from error


def _refusal(message: str, passphrase: str) -> PrivateKeyRefused:
    """Decides by asyncssh's message, since both cases raise the same exception."""
    if not passphrase and "passphrase must be specified" in message:
        return PrivateKeyRefused(
            "passphrase_missing",
            _("This private key has a passphrase."),
            _("Give it; it is used once and not kept."),
            "passphrase",
        )
    if passphrase and ("passphrase" in message or "unable to decrypt" in message):
        return PrivateKeyRefused(
            "wrong_passphrase",
            _("The passphrase does not open this private key."),
            _("Give the passphrase that ssh-keygen asks for with this key."),
            "passphrase",
        )
    return _unreadable()


def _bits(key: asyncssh.SSHKey) -> int:
    modulus = key.convert_to_public().pyca_key
    return int(getattr(modulus, "key_size", 0))


def _no_private_key(text: str) -> PrivateKeyRefused:
    is_public = text.startswith(("ssh-", "ecdsa-")) or "PUBLIC KEY" in text
    return PrivateKeyRefused(
        "not_a_private_key",
        _("This is the public half of a key.")
        if is_public
        else _("This is not a private key."),
        _("Give the whole file, from -----BEGIN ... PRIVATE KEY----- to its END line."),
    )


def _unreadable() -> PrivateKeyRefused:
    return PrivateKeyRefused(
        "private_key_unreadable",
        _("This private key cannot be read."),
        _(
            "Give the whole file in OpenSSH or PEM form; ssh-keygen -y -f FILE must accept it."
        ),
    )
