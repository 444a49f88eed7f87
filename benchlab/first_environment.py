"""Makes the secrets of a deployment, once: `python -m benchlab.first_environment VAR [SECRETS]`.

VAR/environment is what settings read where the environment says nothing; SECRETS gets the password
of PostgreSQL, the settings of Redis with its password, and a certificate of our own making for the
proxy. What is there already stays.
"""

import ipaddress
import os
import secrets
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchlab.embedded.places import kept_secret, write_private

# Where the composition's Redis was before it had a password.
REDIS_OF_BEFORE = "redis://redis:6379/0"
# Messages have no time to live; answers of the cache have, and make room.
MEMORY = "maxmemory 256mb\nmaxmemory-policy volatile-lru\n"
# Browsers refuse certificates for longer.
CERTIFICATE_DAYS = 397


def main() -> int:
    """Make what is missing; the exit status."""
    if not 2 <= len(sys.argv) <= 3:
        print(f"BenchLab: {__doc__.splitlines()[0]}", file=sys.stderr)
        return 2
    var, folder = Path(sys.argv[1]), Path(sys.argv[-1])
    try:
        _environment(var, folder)
        _certificate(folder)
    except OSError as error:
        print(f"BenchLab: the secrets cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


def _environment(var: Path, folder: Path) -> None:
    for path in (var, folder):
        path.mkdir(parents=True, exist_ok=True)
    given_password = os.environ.get("POSTGRES_PASSWORD", "").strip()
    password = kept_secret(
        folder / "postgresql-password",
        lambda: given_password or secrets.token_urlsafe(24),
    )
    redis = _redis(folder)
    if (var / "environment").exists():
        _protect_redis(var / "environment", redis)
        return
    defaults = {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "DATABASE_URL": f"postgresql://benchlab:{password}@postgresql:5432/benchlab",
        "REDIS_URL": redis,
    }
    # What somebody has set stays in force when it is not set any more.
    lines = [
        f"{name}={os.environ.get(name) or value}\n" for name, value in defaults.items()
    ]
    write_private(var / "environment", "".join(lines))


def _redis(folder: Path) -> str:
    password = kept_secret(folder / "redis-password", lambda: secrets.token_urlsafe(24))
    # Nothing in it has to outlive a restart: queues are in PostgreSQL.
    settings = f'requirepass {password}\nsave ""\nappendonly no\n{MEMORY}'
    write_private(folder / "redis.conf", settings)
    # Redis is an account of its own.
    (folder / "redis.conf").chmod(0o644)
    return f"redis://:{password}@redis:6379/0"


def _protect_redis(environment: Path, address: str) -> None:
    """Give the password to an instance that was made before there was one."""
    lines = environment.read_text().splitlines(keepends=True)
    before = f"REDIS_URL={REDIS_OF_BEFORE}\n"
    if before in lines:
        after = f"REDIS_URL={address}\n"
        write_private(
            environment, "".join(after if line == before else line for line in lines)
        )


def _certificate(folder: Path) -> None:
    if (folder / "tls.crt").exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    hosts = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1").split(",")
    names = [_general_name(host.strip()) for host in hosts if host.strip()]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "BenchLab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(folder / "tls.key", private.decode())
    # The proxy is an account of its own, and the folder is for proxy and database only.
    (folder / "tls.key").chmod(0o644)
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    write_private(folder / "tls.crt", public)
    (folder / "tls.crt").chmod(0o644)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host.lstrip("."))


if __name__ == "__main__":
    sys.exit(main())
