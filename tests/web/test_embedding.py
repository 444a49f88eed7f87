"""Charts in a page of another site, as a browser sees them."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from runs.access.services import projects
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# A wiki of the public internet has no address of this machine; 127.0.0.1 is another site than
# localhost, where BenchLab answers.
PAGE = """<!doctype html><title>Wiki</title>
<img src="{lab}/campaigns/lab/chart.svg" id="svg">
<img src="{lab}/campaigns/lab/chart.png" id="png">
<img src="{lab}/campaigns/hidden/chart.svg" id="hidden">
<iframe src="{lab}/campaigns/lab/chart.svg" id="frame"></iframe>
<iframe src="{lab}/campaigns/lab/" id="page"></iframe>
"""
READ = """async address => {
  try { const answer = await fetch(address); return answer.status }
  catch (error) { return "refused" }
}"""


@contextlib.contextmanager
def wiki(lab):
    """A site of its own; its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.format(lab=lab).encode())

        def log_message(self, *_words):
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def lab(live_server):
    public = factories.campaign(
        "lab", project=projects.default(), factors={"clients": [1, 8]}
    )
    factories.finish_all(public)
    secret = projects.create(slug="secret", is_public=False)
    factories.finish_all(factories.campaign("hidden", project=secret))
    return live_server.url


def width_of(tab, name):
    return tab.eval_on_selector(f"#{name}", "image => image.naturalWidth")


def is_drawn(tab, name):
    """Whether the frame has the document, and not the browser's refusal."""
    frame = tab.query_selector(f"#{name}").content_frame()
    return frame.url.startswith("http://localhost")


@pytest.mark.parametrize("is_named", [False, True])
def test_an_image_is_shown_anywhere_and_the_rest_where_it_is_named(
    chromium, lab, settings, is_named
):
    with wiki(lab) as origin, contextlib.closing(chromium.new_page()) as tab:
        settings.EMBED_ORIGINS = (origin,) if is_named else ()
        tab.goto(origin)
        tab.wait_for_load_state("networkidle")

        assert width_of(tab, "svg") == 792
        assert width_of(tab, "png") == 2 * 792
        assert width_of(tab, "hidden") == 0
        assert is_drawn(tab, "frame") == is_named
        assert not is_drawn(tab, "page")
        expected = 200 if is_named else "refused"
        assert tab.evaluate(READ, f"{lab}/campaigns/lab/chart.svg") == expected
        assert tab.evaluate(READ, f"{lab}/api/v1/campaigns/") == expected
        assert tab.evaluate(READ, f"{lab}/campaigns/lab/") == "refused"
        assert tab.evaluate(READ, f"{lab}/api/v1/campaigns/hidden/") == "refused"
