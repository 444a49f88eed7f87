"""Files under a passphrase, encrypted and authenticated in chunks: the STREAM construction.

After Hoang, Reyhanitabar, Rogaway and Vizar, "Online Authenticated-Encryption and its Nonce-Reuse
Misuse-Resistance" (2015), as age and Tink use it: each chunk is sealed by ChaCha20-Poly1305 with
its number and whether it is the last one as the nonce, so that none can be changed, moved, left out
or cut off. The key is of this file alone: scrypt of the passphrase and a salt.

    magic, 16 bytes of salt, 16 bytes that tell a wrong passphrase; then the chunks
"""

import base64
import io
import os
from pathlib import Path
from typing import IO

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"BenchLab encrypted 1\n"
SALT_BYTES = 16
KEY_BYTES = 32
CHECK_BYTES = 16
TAG_BYTES = 16
HEADER_BYTES = len(MAGIC) + SALT_BYTES + CHECK_BYTES
CHUNK_BYTES = 1024 * 1024
# What guessing a passphrase costs: 64 MB and a tenth of a second each.
COST = {"n": 2**16, "r": 8, "p": 1}


class NotEncrypted(ValueError):
    """The file is not of this format."""


class WrongPassphrase(ValueError):
    """The file was written with another passphrase."""


def _derived(passphrase: str, salt: bytes, length: int) -> bytes:
    return Scrypt(salt=salt, length=length, **COST).derive(passphrase.encode())


def plain_key(passphrase: str, salt: bytes) -> bytes:
    """The key of the secrets within a plain backup of 0.2, as Fernet has it."""
    return base64.urlsafe_b64encode(_derived(passphrase, salt, KEY_BYTES))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


class EncryptedWriter(io.RawIOBase):
    """Encrypts what is written to it; `finish` writes the last chunk. Holds one chunk in memory."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        salt = os.urandom(SALT_BYTES)
        derived = _derived(passphrase, salt, KEY_BYTES + CHECK_BYTES)
        self._cipher = ChaCha20Poly1305(derived[:KEY_BYTES])
        self._header = MAGIC + salt + derived[KEY_BYTES:]
        self._file, self._waiting, self._number = file, bytearray(), 0
        self._store(self._header)

    def writable(self) -> bool:
        """Yes; it cannot be read, nor go back."""
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        """Take these bytes."""
        self._waiting += data
        # The last chunk is written by `finish`, so that one is always left for it.
        while len(self._waiting) > CHUNK_BYTES:
            self._seal(bytes(self._waiting[:CHUNK_BYTES]), is_last=False)
            del self._waiting[:CHUNK_BYTES]
        return len(data)

    def finish(self) -> None:
        """Write what is left, as the last chunk. Without it the file authenticates nowhere."""
        self._seal(bytes(self._waiting), is_last=True)
        self._waiting.clear()

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._store(self._cipher.encrypt(nonce, chunk, self._header))
        self._number += 1

    def _store(self, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[self._file.write(remaining) :]


class EncryptedReader(io.RawIOBase):
    """The content of an encrypted file, at any place. Holds one chunk in memory.

    Raises NotEncrypted and WrongPassphrase at once, InvalidTag when it comes to a chunk that is not
    what was written. The last chunk of the file is opened as the last one, so that a file that was
    cut off does not open.
    """

    def __init__(self, path: Path, passphrase: str) -> None:
        self._file = path.open("rb")
        try:
            self._begin(passphrase)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, passphrase: str) -> None:
        self._header = self._file.read(HEADER_BYTES)
        if not self._header.startswith(MAGIC) or len(self._header) < HEADER_BYTES:
            raise NotEncrypted("not an encrypted file")
        salt, check = (
            self._header[len(MAGIC) : -CHECK_BYTES],
            self._header[-CHECK_BYTES:],
        )
        derived = _derived(passphrase, salt, KEY_BYTES + CHECK_BYTES)
        if derived[KEY_BYTES:] != check:
            raise WrongPassphrase("another passphrase")
        self._cipher = ChaCha20Poly1305(derived[:KEY_BYTES])
        sealed = self._file.seek(0, os.SEEK_END) - HEADER_BYTES
        self._chunks = max(1, -(-sealed // (CHUNK_BYTES + TAG_BYTES)))
        self._size = max(0, sealed - self._chunks * TAG_BYTES)
        self._place, self._number, self._chunk = 0, -1, b""
        self._open(self._chunks - 1)

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes: each chunk has its place."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place of the content."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[
            whence
        ]
        if start + offset < 0:
            raise ValueError("before the beginning")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        """The place in the content."""
        return self._place

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Up to as many bytes, of one chunk. Raises InvalidTag."""
        if self._place >= self._size:
            return 0
        number, begin = divmod(self._place, CHUNK_BYTES)
        self._open(number)
        piece = self._chunk[begin : begin + len(buffer)]
        buffer[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)

    def close(self) -> None:
        """Close the file as well."""
        self._file.close()
        super().close()

    def _open(self, number: int) -> None:
        if number == self._number:
            return
        self._file.seek(HEADER_BYTES + number * (CHUNK_BYTES + TAG_BYTES))
        sealed = self._file.read(CHUNK_BYTES + TAG_BYTES)
        nonce = _nonce(number, is_last=number == self._chunks - 1)
        self._chunk, self._number = (
            self._cipher.decrypt(nonce, sealed, self._header),
            number,
        )
