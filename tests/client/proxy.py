"""A server with configured answers, one per request, that records the requests."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Proxy:
    """`answers` are (status, headers, body); the last one is given again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                proxy.asked.append((self.path, dict(self.headers), self.rfile.read(length)))
                answers = proxy.answers
                status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_args):
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_exc):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
