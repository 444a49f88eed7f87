"""A line that is slow, loses packets or stands still: all arrives, in order, and late."""

import socket
import threading
import time
from contextlib import closing, suppress

import pytest

from benchmarks.cut_line import CutLine

SENT = [bytes([number]) * 1000 for number in range(20)]


@pytest.fixture
def echo():
    """The port of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _address = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while data := connection.recv(65536):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def line(echo):
    with closing(CutLine(echo)) as made:
        yield made


def answer_of(line: CutLine) -> bytes:
    with socket.create_connection(("127.0.0.1", line.port), timeout=20) as connection:
        for piece in SENT:
            connection.sendall(piece)
        received = b""
        while len(received) < sum(map(len, SENT)):
            received += connection.recv(65536)
        return received


def test_a_line_that_is_slow_and_loses_packets_delivers_all_in_order_and_late(line):
    line.delay_seconds, line.loss = 0.2, 0.3
    began = time.monotonic()
    assert answer_of(line) == b"".join(SENT)
    # There and back.
    assert time.monotonic() - began >= 0.4


def test_nothing_passes_a_line_that_stands_still_until_it_is_mended(line):
    answer_of(line)
    line.stall()
    received = []
    reader = threading.Thread(target=lambda: received.append(answer_of(line)))
    reader.start()
    reader.join(0.5)
    assert received == []
    line.mend()
    reader.join(20)
    assert received == [b"".join(SENT)]


def test_a_reset_ends_what_is_open_and_lets_new_connections_pass(line):
    with socket.create_connection(("127.0.0.1", line.port), timeout=20) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
        line.reset()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    assert line.broken
    assert answer_of(line) == b"".join(SENT)
