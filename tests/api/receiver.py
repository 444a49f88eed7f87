"""A real HTTP server of this machine that receives webhooks, and answers as configured."""

import http.server
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Received:
    """A request as it came."""

    path: str
    headers: dict
    body: bytes


@dataclass
class Receiver:
    """`status` and `headers` are those of its answers; `drip` seconds lie between their bytes.

    Of an answer that drips `beginning` comes at once.
    """

    status: int = 204
    headers: dict = field(default_factory=dict)
    answer: bytes = b""
    drip: float = 0
    beginning: bytes = b"HTTP/1.0 2"
    requests: list[Received] = field(default_factory=list)

    def __enter__(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(Received(self.path, dict(self.headers), body))
                if receiver.drip:
                    self._drip()
                    return
                self.send_response(receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(receiver.answer)

            def _drip(self):
                parts = [receiver.beginning, *(b"x" for _byte in range(100))]
                for part in parts:
                    try:
                        self.wfile.write(part)
                        self.wfile.flush()
                    except OSError:
                        return
                    time.sleep(receiver.drip)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(
            target=self.server.serve_forever, args=[0.05], daemon=True
        ).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook?to=team"
