"""Servers with answers of ours: a forge with the calls that benchlab-comment makes, and a proxy."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# A small server that speaks the few calls of GitHub and GitLab that benchlab-comment makes.
#
# Shapes are those of their documentation (GitHub REST 2022-11-28: issues/comments, checks/runs,
# pulls; GitLab REST v4: user, notes, commit statuses). It is no GitHub and no GitLab.


BOT = {"login": "github-actions[bot]", "type": "Bot"}


class Forge:
    """Keeps comments (of everybody) and checks; `calls` are the methods and paths asked for."""

    def __init__(self) -> None:
        self.comments = [
            {
                "id": number,
                "body": "<!-- benchlab: demo -->\nmine",
                "user": {"login": "somebody"},
                "author": {"id": 5},
            }
            for number in range(1, 121)
        ]
        self.checks: list[dict] = []
        self.pulls: list[dict] = []
        self.calls: list[tuple[str, str]] = []
        self.is_broken = False

    def __enter__(self) -> "Forge":
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                parts = urlsplit(self.path)
                forge.calls.append((self.command, parts.path))
                is_known = "secret" in "".join(map(str, self.headers.values()))
                status, found = (401, {"message": "Bad credentials"})
                if forge.is_broken:
                    status, found = (502, {})
                elif is_known:
                    query = {
                        name: values[0]
                        for name, values in parse_qs(parts.query).items()
                    }
                    status, found = forge.reply(self.command, parts.path, query, body)
                content = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = answer  # noqa: N815  the names of the library
            do_POST = answer  # noqa: N815
            do_PATCH = answer  # noqa: N815
            do_PUT = answer  # noqa: N815

            def log_message(self, *_of) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_of) -> None:
        self.server.shutdown()
        self.server.server_close()

    def own(self) -> list[dict]:
        return [each for each in self.comments if each["id"] > 120]

    def reply(self, method, path, query, body):
        hub = re.fullmatch(r"/repos/o/r/(.*)", path)
        lab = re.fullmatch(r"/api/v4/(.*)", path)
        if hub:
            return self._github(method, hub[1], query, body)
        return self._gitlab(method, lab[1], query, body) if lab else (404, {})

    def _github(self, method, path, query, body):
        if path == "issues/7/comments":
            return self._listed(method, query, body)
        if method == "PATCH" and (
            found := re.fullmatch(r"issues/comments/(\d+)", path)
        ):
            return self._edited(int(found[1]), body)
        if (method, path) == ("POST", "check-runs"):
            assert {"name", "head_sha", "status", "conclusion", "output"} <= body.keys()
            self.checks.append(body)
            return 201, {"id": len(self.checks), **body}
        if (method, path) == ("GET", "pulls"):
            owner, _colon, branch = query["head"].partition(":")
            return 200, [
                each
                for each in self.pulls
                if each["head"]["ref"] == branch
                and each["head"]["user"]["login"] == owner
            ]
        found = re.fullmatch(r"pulls/(\d+)", path)
        return (200, self.pulls[0]) if found else (404, {"message": "Not Found"})

    def _gitlab(self, method, path, query, body):
        if path == "user":
            return 200, {"id": 9, "username": "project_1_bot"}
        if path == "projects/3/merge_requests/7/notes":
            return self._listed(method, query, body)
        if method == "PUT" and (found := re.fullmatch(r".*/notes/(\d+)", path)):
            return self._edited(int(found[1]), body)
        if method == "POST" and (
            found := re.fullmatch(r"projects/3/statuses/(\w{40})", path)
        ):
            assert body["state"] in (
                "pending",
                "running",
                "success",
                "failed",
                "canceled",
            )
            self.checks.append(
                {**body, "head_sha": found[1], "conclusion": body["state"]}
            )
            return 201, {}
        return 404, {"message": "404 Not Found"}

    def _listed(self, method, query, body):
        if method == "POST":
            made = {
                "id": len(self.comments) + 1,
                "user": BOT,
                "author": {"id": 9},
                **body,
            }
            self.comments.append(made)
            return 201, made
        size, page = int(query["per_page"]), int(query["page"])
        return 200, self.comments[size * (page - 1) : size * page]

    def _edited(self, number, body):
        (found,) = [each for each in self.comments if each["id"] == number]
        found |= body
        return 200, found


# A server with configured answers, one per request, that records the requests.


class Proxy:
    """`answers` are (status, headers, body); the last one is given again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                proxy.asked.append(
                    (self.path, dict(self.headers), self.rfile.read(length))
                )
                answers = proxy.answers
                status, headers, body = (
                    answers.pop(0) if len(answers) > 1 else answers[0]
                )
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
