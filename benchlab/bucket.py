"""The S3-compatible store that BENCHLAB_ARTIFACTS names, by django-storages.

Its packages, of the extra s3, take 30 MB of a process and are imported with the first use. Every
function raises FileNotFoundError for what is not there, `StoreError` with one line for the rest.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import IO, Any
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.core.files import File

from benchlab import extras

# Requests wait for the next bytes of a store for QUICK_SECONDS, those that wait for nobody longer.
CONNECT_SECONDS, QUICK_SECONDS, PATIENT_SECONDS = 2, 4, 20
MEMORY_BYTES = 4 * 2**20
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"\A(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*")
_REGION = re.compile(r"[a-z0-9-]+")
REFUSED = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403"}
)

ABSENT = frozenset({"NoSuchKey", "404"})
TOO_SHORT = frozenset({"InvalidRange", "416"})


class StoreError(OSError):
    """The store does not do what it was asked for; the text is one line."""


class ContentChanged(StoreError):
    """A file is there, and its content is not what was stored; the text is one line."""


@dataclass(frozen=True)
class Address:
    """A bucket, the beginning of our keys in it, and where it is; empty for Amazon's own."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""


@dataclass(frozen=True)
class Stored:
    """A file, here or in the bucket: its bytes, and seconds since 1970 when it was stored."""

    key: str
    size: int
    changed_at: float
    remove: Callable[[], None]


def address(text: str) -> Address:
    """Of s3://bucket/prefix?endpoint=https://host&region=name. Raises ValueError for all else.

    Keys and passwords have variables of their own: what holds them here is refused.
    """
    url = urlsplit(text)
    prefix = f"{url.path.strip('/')}/".lstrip("/")
    options = dict(
        parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query))
    )
    endpoint, region = options.pop("endpoint", ""), options.pop("region", "")
    endpoint_url = urlsplit(endpoint)
    if (
        url.scheme != "s3"
        or not _NAME.fullmatch(url.netloc)
        or not _PREFIX.fullmatch(prefix)
        or options
        or url.fragment
        or (
            endpoint
            and (
                endpoint_url.scheme not in {"http", "https"}
                or not endpoint_url.hostname
                or endpoint_url.port == 0
            )
        )
        or endpoint_url.username is not None
        or endpoint_url.path.strip("/")
        or endpoint_url.query
        or (region and not _REGION.fullmatch(region))
    ):
        raise ValueError
    return Address(url.netloc, prefix, endpoint.rstrip("/"), region)


def is_set() -> bool:
    """Whether files go to a bucket."""
    return settings.ARTIFACTS_BUCKET is not None


def described() -> str:
    """As an operator knows it."""
    address = _address_of_url()
    return f"s3://{address.bucket}/{address.prefix}" + (
        f" at {address.endpoint}" if address.endpoint else ""
    )


def exists(key: str) -> bool:
    """Whether there is such an object. One request, and a second one where there is none."""
    with _translated_errors():
        is_there = bool(_storage(_address_of_url()).exists(key))
    if not is_there:
        ask()  # without the bucket the first answer is the same
    return is_there


def read(key: str) -> IO[bytes]:
    """The whole object, which has been received: large ones are in a temporary file."""
    try:
        with _translated_errors():
            return _received(_storage(_address_of_url()).open(key, "rb"))
    except FileNotFoundError:
        ask()
        raise


def _received(content: Any) -> IO[bytes]:
    try:
        received: IO[bytes] = content.file
    except BaseException:
        content.close()
        raise
    return received


def write(key: str, content: IO[bytes], *, seconds: int = PATIENT_SECONDS) -> None:
    """Store it, in one piece for every reader; what is there is replaced.

    `seconds` is how long it waits for an answer.
    """
    with _translated_errors():
        _storage(_address_of_url(), seconds).save(key, File(content, name=key))


def remove(key: str) -> None:
    """Remove an object, which need not be there."""
    with _translated_errors():
        _storage(_address_of_url(), PATIENT_SECONDS).delete(key)


def stored() -> Iterator[Stored]:
    """All objects below the prefix, 1,000 a request."""
    prefix = _address_of_url().prefix
    with _translated_errors():
        objects = _storage(_address_of_url(), PATIENT_SECONDS).bucket.objects
        for stored_file in objects.filter(Prefix=prefix):
            key = stored_file.key.removeprefix(prefix)
            changed_at = stored_file.last_modified.timestamp()
            yield Stored(key, stored_file.size, changed_at, partial(remove, key))


def ask() -> None:
    """Whether the bucket answers and shows what it has. One request."""
    address = _address_of_url()
    with _translated_errors():
        client = _storage(address).connection.meta.client
        client.list_objects_v2(Bucket=address.bucket, Prefix=address.prefix, MaxKeys=1)


def _address_of_url() -> Address:
    address: Address | None = settings.ARTIFACTS_BUCKET
    if address is None:
        raise StoreError("BENCHLAB_ARTIFACTS names no bucket")
    return address


@cache
def _storage(address: Address, seconds: int = QUICK_SECONDS) -> Any:
    """Of each thread a connection of its own; the keys are in the settings."""
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 -- see above
    from botocore.config import Config  # noqa: PLC0415
    from storages.backends.s3 import S3Storage  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=seconds,
        retries={"total_max_attempts": 1, "mode": "standard"},
        signature_version="s3v4",
        s3={"addressing_style": "path" if address.endpoint else "auto"},
        # Not every store knows the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return S3Storage(
        bucket_name=address.bucket,
        location=address.prefix.rstrip("/"),
        endpoint_url=address.endpoint or None,
        region_name=address.region or None,
        client_config=config,
        transfer_config=TransferConfig(use_threads=False),
        max_memory_size=MEMORY_BYTES,
        file_overwrite=True,
        default_acl=None,
        object_parameters={"ContentType": "application/gzip"},
    )


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        from boto3.exceptions import Boto3Error  # noqa: PLC0415 -- see above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError as error:
        text = f"packages for a bucket are missing. Run {extras.command('s3')}, and start again."
        raise StoreError(text) from error
    try:
        yield
    except ClientError as error:
        problem = error.response.get("Error", {})
        if problem.get("Code") in ABSENT:
            raise FileNotFoundError(described()) from error
        if problem.get("Code") in TOO_SHORT:
            raise ContentChanged(
                f"{described()}: an object is shorter than it was"
            ) from error
        raise StoreError(_reason(problem)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise StoreError(f"{described()}: {str(error).splitlines()[0]}") from error


def _reason(error: dict[str, str]) -> str:
    code = error.get("Code", "")
    if code in REFUSED:
        return f"{described()} refuses the key in AWS_ACCESS_KEY_ID ({code})"
    if code == "NoSuchBucket":
        return f"{described()}: there is no such bucket"
    return f"{described()}: {code} {error.get('Message', '')}".strip()
