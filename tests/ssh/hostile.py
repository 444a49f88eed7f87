"""An SSH server that means harm: it lets anybody in and answers every command in one bad way.

    python -m tests.ssh.hostile BEHAVIOUR [ADDRESS]

It prints its port and its public host key, and ends with its standard input.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

BEGIN = b"benchlab-begin\n"
CHUNK = b"\x1b]0;owned\x07" + b"x" * 65_000
# What they say of a step, and what they have written to both streams of it.
LIES = {
    "nan": b"benchlab-step 0 nan inf -\n",
    "huge": b"benchlab-step 0 1" + b"0" * 400 + b" 2 -\n",
    "more": b"benchlab-step 0 1.0 2.0 0m0s extra words\n",
    "less": b"benchlab-step 0 1.0 2.0\n",
    "digits": "benchlab-step 0 \u0661.0 2.0 -\n".encode(),
    "status": b"benchlab-step 4000000000 1.0 2.0 -\n",
    "nothing": b"",
    "binary": bytes(range(256)) * 8,
}
ROOT = Path(__file__).parents[2]


class Anybody(asyncssh.SSHServer):
    """No key is required."""

    def begin_auth(self, username: str) -> bool:
        return False


async def _flood(process: "asyncssh.SSHServerProcess[bytes]") -> None:
    process.stdout.write(BEGIN)
    while not process.is_closing():
        process.stdout.write(CHUNK)
        process.stderr.write(CHUNK)
        await process.stdout.drain()
        await process.stderr.drain()


async def behave(process: "asyncssh.SSHServerProcess[bytes]", how: str) -> None:
    """Answer one command."""
    if how == "stall":
        await asyncio.sleep(3600)
    elif how == "flood":
        with contextlib.suppress(OSError, asyncssh.Error):
            await _flood(process)
    elif how == "close":
        process.stdout.write(BEGIN + b"half a li")
        process.get_extra_info("connection").abort()
    else:
        process.stdout.write(BEGIN + LIES[how])
        process.exit(0)


async def serve(how: str, address: str) -> None:
    """Serve until standard input ends."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        Anybody,
        address,
        0,
        server_host_keys=[key],
        process_factory=lambda process: behave(process, how),
        encoding=None,
    )
    print(server.get_port(), key.export_public_key().decode().strip(), flush=True)
    await asyncio.to_thread(sys.stdin.read)


@dataclass(frozen=True)
class Hostile:
    """Where it answers, and the key that it shows."""

    address: str
    port: int
    host_key: str


@contextlib.contextmanager
def hostile(how: str, address: str = "127.0.0.1") -> Iterator[Hostile]:
    """Such a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.ssh.hostile", how, address],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # asyncio's words on the connections that we cut
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            port, _blank, key = process.stdout.readline().strip().partition(" ")
            yield Hostile(address, int(port), key)
        finally:
            process.kill()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1], (*sys.argv, "127.0.0.1")[2]))
