"""POST to a user-supplied address: only to public machines, and with a strict time limit.

Uses the standard library: `http.client` can connect to the very address that was checked, which
requests and httpx cannot without a transport of our own.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

TIMEOUT_SECONDS = 10.0
MOST_BYTES = 4096
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Undeliverable(Exception):
    """The report did not arrive; the message gives the reason."""


@dataclass(frozen=True)
class Answer:
    """The receiver's answer: the status, and the beginning of the body."""

    status: int
    text: str


class _PinnedHTTP(http.client.HTTPConnection):
    """Connects to the address that was checked, whatever the name resolves to now."""

    def __init__(self, parts: SplitResult, address: str) -> None:
        super().__init__(str(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS)
        self.address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self.address, self.port), TIMEOUT_SECONDS)


class _PinnedHTTPS(http.client.HTTPSConnection):
    """The same over TLS; the certificate must match the name."""

    def __init__(self, parts: SplitResult, address: str) -> None:
        self.tls = ssl.create_default_context()
        super().__init__(str(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS, context=self.tls)
        self.address = address

    def connect(self) -> None:
        plain = socket.create_connection((self.address, self.port), TIMEOUT_SECONDS)
        self.sock = self.tls.wrap_socket(plain, server_hostname=self.host)


def post(url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool) -> Answer:
    """Send the body, and return the answer, whatever its status. Redirects are not followed.

    Raises Undeliverable: the name has no address, or one that is not public; nobody answers
    within TIMEOUT_SECONDS; or the answer does not come from a web server.
    """
    parts = urlsplit(url)
    address = resolve(parts, allow_private=allow_private)
    kind = _PinnedHTTPS if parts.scheme == "https" else _PinnedHTTP
    connection = kind(parts, address)
    # A receiver that sends a byte now and then would never hit the timeout of the socket.
    deadline = threading.Timer(TIMEOUT_SECONDS, _break_off, [connection])
    deadline.daemon = True
    deadline.start()
    try:
        connection.request("POST", _target(parts), body, dict(headers))
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(MOST_BYTES).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Undeliverable(f"{type(error).__name__}: {error}") from error
    finally:
        deadline.cancel()
        connection.close()


def resolve(parts: SplitResult, *, allow_private: bool) -> str:
    """The address to connect to. If one address is not public, the name is refused.

    Raises Undeliverable.
    """
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undeliverable(f"{host} has no address: {error}") from error
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not allow_private and not is_public(address):
            raise Undeliverable(
                f"{host} is {address}, which is not a public address. To allow addresses of your"
                " own network, set BENCHLAB_WEBHOOK_ALLOW_PRIVATE=1."
            )
    return addresses[0]


def is_public(text: str) -> bool:
    """Whether an address is a public internet address: not loopback, private, multicast ..."""
    address = _embedded(ipaddress.ip_address(text.partition("%")[0]))
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False  # fec0::/10, which Python takes for global
    return address.is_global and not address.is_multicast and not address.is_reserved


def _embedded(address: Address) -> Address:
    """The IPv4 address that is embedded in an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _target(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _break_off(connection: http.client.HTTPConnection) -> None:
    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # It has already ended.
