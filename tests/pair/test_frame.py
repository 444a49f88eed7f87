"""`frame`: what a BenchLab has measured as a table, read over HTTP."""

import contextlib
import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import pandas as pd
import polars as pl
import pytest

from runs.pair import frame as module
from runs.pair.frame import frame, read_rows
from runs.pair.reads import Instance, ReadError, token_for
from tests.api.web_server import ROOT
from tests.release import build_pair

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_history_is_a_table_by_the_address_of_its_page(lab):
    table = frame(f"{lab.url}/campaigns/nightly/history/?metric=tps&level=clients=8")

    assert isinstance(table, pd.DataFrame)
    assert len(table) == 60
    assert set(table["levels.clients"]) == {8}
    first, last = table["median"].iloc[0], table["median"].iloc[-1]
    assert last / first == pytest.approx(0.9, abs=0.03)


def test_a_campaign_is_a_table_of_its_measurements(lab):
    table = frame(f"{lab.url}/campaigns/lab/", kind="polars")

    assert isinstance(table, pl.DataFrame)
    assert set(table["metric"]) == {"tps"}
    assert len(table) == 12


def test_a_list_is_read_to_its_end(lab):
    rows = frame(
        f"{lab.url}/api/v1/measurements/?campaign=lab&page_size=5", kind="rows"
    )

    assert (
        len(rows) == len({row["id"] if "id" in row else str(row) for row in rows}) == 12
    )


def test_a_comparison_has_a_row_for_each_condition(lab):
    rows = read_rows(
        f"{lab.url}/api/v1/compare/?head=campaign:lab~version=17.9"
        "&base=campaign:lab~version=16.14&metric=tps"
    )

    assert [round(row["ratio"], 2) for row in rows] == [1.1, 1.1]


def test_more_rows_than_wanted_are_refused(lab):
    with pytest.raises(ReadError, match="more than 5 rows"):
        frame(f"{lab.url}/api/v1/measurements/?campaign=lab&page_size=5", most=5)


def test_without_a_library_it_is_a_list(lab, monkeypatch):
    monkeypatch.setattr(module, "_installed", lambda _name: None)

    assert isinstance(frame(f"{lab.url}/api/v1/campaigns/"), list)
    with pytest.raises(ReadError, match="polars is not installed"):
        frame(f"{lab.url}/api/v1/campaigns/", kind="polars")


def test_the_tokens_rights_hold(lab):
    address = f"{lab.url}/api/v1/measurements/?campaign=hidden"

    assert len(read_rows(address, token=lab.members_token)) == 18
    for token in ("", lab.strangers_token):
        with pytest.raises(ReadError, match="Nothing has this name"):
            read_rows(address, token=token)


def test_a_fault_is_told_in_the_words_of_the_instance(lab):
    with pytest.raises(ReadError, match="did you mean metric"):
        frame(f"{lab.url}/api/v1/measurements/?metrics=tps")


def test_an_address_that_is_no_read_is_refused(lab):
    for path in ("/login/", "/", "/campaigns/"):
        with pytest.raises(ReadError, match="no read of the API"):
            frame(f"{lab.url}{path}")
    for address in ("file:///etc/passwd", "ftp://a.example/", "lab.example"):
        with pytest.raises(ReadError, match="is not an address"):
            frame(address)


# Where a token may go


class _Thief(BaseHTTPRequestHandler):
    """Leads elsewhere, and notes what it was sent."""

    def do_GET(self):
        self.server.tokens.append(self.headers.get("Authorization"))
        if self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        body = json.dumps(self.server.body).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        """Say nothing."""


@contextlib.contextmanager
def serving(elsewhere="", body=None):
    server = HTTPServer(("127.0.0.1", 0), _Thief)
    server.tokens, server.elsewhere, server.body = [], elsewhere, body
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_follows_no_redirect():
    with (
        serving() as (other, elsewhere),
        serving(f"{elsewhere}/api/v1/x/") as (_own, url),
        pytest.raises(ReadError, match="302: it is at"),
    ):
        read_rows(f"{url}/api/v1/campaigns/", token="secret")

    assert other.tokens == []


def test_a_next_page_elsewhere_is_not_followed():
    pages = {"results": [{"a": 1}], "next": ""}
    with serving() as (other, elsewhere), serving(body=pages) as (own, url):
        pages["next"] = f"{elsewhere}/api/v1/campaigns/?cursor=1"
        with pytest.raises(ReadError, match=r"same page|more than"):
            read_rows(f"{url}/api/v1/campaigns/", token="secret", most=3)

    assert other.tokens == []
    assert set(own.tokens) == {"Bearer secret"}


def test_a_token_is_not_sent_in_clear_text():
    with pytest.raises(ReadError, match="https alone"):
        Instance("http://lab.example", token="secret")


def test_the_token_of_the_environment_is_for_its_own_instance(monkeypatch):
    monkeypatch.setenv("BENCHLAB_URL", "https://lab.example")
    monkeypatch.setenv("BENCHLAB_TOKEN", "secret")

    assert token_for("https://lab.example/campaigns/a/") == "secret"
    for other in (
        "https://lab.example.evil.example/",
        "http://lab.example/",
        "https://lab.example:444/",
    ):
        assert token_for(other) == ""


def test_what_is_no_benchlab_says_so():
    with serving(body="x") as (_own, url):
        pass
    with pytest.raises(ReadError, match="does not answer"):
        read_rows(f"{url}/api/v1/campaigns/")


def test_the_wheel_has_it_and_puts_nothing_else_in_the_way(lab, tmp_path):
    """A notebook may have modules of its own by the name of ours."""
    with zipfile.ZipFile(build_pair(tmp_path)) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "import sys; sys.modules['django'] = None; from benchlab_pair import frame;"
        f"print(len(frame('{lab.url}/campaigns/nightly/history/')));"
        "assert 'runs' not in sys.modules and 'numpy' in sys.modules"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "installed",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr


def test_the_page_about_tables_is_true(lab):
    """docs/notebooks.md: each block of Python, one after the other."""
    text = (ROOT / "docs/notebooks.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    program = "\n".join(blocks).replace("https://benchlab.example", lab.url)
    program = program.replace(
        "from benchlab_pair import", "from runs.pair.frame import"
    )
    said = io.StringIO()

    with contextlib.redirect_stdout(said):
        exec(compile(program, "notebooks.md", "exec"), {})

    assert "0.9" in said.getvalue()
