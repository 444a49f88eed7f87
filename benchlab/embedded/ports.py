"""TCP ports of this machine."""

import socket

FIRST_OPEN_PORT = 1024  # those below are root's


def listening(port: int, address: str) -> socket.socket:
    """A socket that listens there, for a server that may not open the port itself."""
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((address, port), family=family, backlog=2048)


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now."""
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError:
        return False
    return True


def free_port(wanted: int = 0) -> int:
    """The wanted port when it is free on 127.0.0.1, else one that the kernel picks.

    Somebody else may take it before our server does: the caller starts again with another.
    """
    if wanted and is_free(wanted):
        return wanted
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
