"""No text in any field that somebody may fill keeps pages from others: `/healthz` answers still.

Forms and fields are found on the pages, bodies of the API in its description; a form that no page
of `test_injections.pages` has fails there.
"""

import json
import re
import threading
import time
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import Client

from runs.access.services import projects, tokens
from tests.each import some
from tests.patterns import slowness
from tests.web.test_injections import (  # noqa: F401 (fixtures)
    TEXT,
    everything,
    filled,
    forms,
    operations,
    others,
    pages,
    shown,
)

pytestmark = pytest.mark.django_db
SIZE = 40_000
UNITS = (
    "\\",
    "[",
    "'\\",
    " ",
    "0.",
    ":a ",
    '{"a":',
    "password='",
    "\\ shell",
    "$1$a",
    "a-",
    "\n",
)
SECONDS = 1.0
# Each field meets so many of them, other ones each time; what has several lines meets more.
# Each pattern by itself meets all kinds in tests/unit/test_patterns.py.
MOST, MOST_OF_LINES = 1, 3


def texts(number, most=MOST):
    chosen = (UNITS[(number + place) % len(UNITS)] for place in range(most))
    return [(unit, (unit * SIZE)[:SIZE]) for unit in chosen]


class Others:
    """Somebody else, who asks `/healthz` all the time: the longest wait for an answer."""

    def __init__(self):
        self.longest = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self):
        client = Client()
        while not self._ended.wait(0.02):
            began = time.monotonic()
            assert client.get("/healthz").status_code == 200
            self.longest = max(self.longest, time.monotonic() - began)

    @contextmanager
    def waiting(self):
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()


def seconds_of(send):
    """The processor time of a request, the least of two where it is too much."""
    least = float("inf")
    # A request that locked leases gave the transaction of this test a limit as well.
    connection.cursor().execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
    for _try in range(2):
        began = time.process_time()
        assert send().status_code < 500
        least = min(least, time.process_time() - began)
        if least < SECONDS / 2:
            return least
    return least / slowness()


def plain(fields, page):
    """The fields as the page has them; those that must not be empty get a word."""
    found = filled(fields, "") | {
        name: given for name, kind, given in fields if kind in TEXT
    }
    must = {name for name in found if re.search(rf'name="{name}"[^>]*\srequired', page)}
    return {
        name: given or ("1" if name in must else "") for name, given in found.items()
    }


def every_form(client, campaign):
    """(address, method, fields, name, how many texts) of each text that a page takes."""
    found = {}
    for page in pages(campaign):
        text = client.get(page, follow=True).content.decode()
        for action, method, fields in forms(client, page):
            key = action.partition("?")[0], method, tuple(name for name, *_ in fields)
            taking = {name: kind for name, kind, _given in fields if kind in TEXT}
            found[key] = (action, method, plain(fields, text), taking)
    for address, given in others(campaign).values():
        sent = {name: text.replace("VALUE", "1") for name, text in given.items()}
        taking = {name: "text" for name, text in given.items() if "VALUE" in text}
        found[address, "post", tuple(given)] = (address, "post", sent, taking)
    for action, method, sent, taking in found.values():
        for name, kind in taking.items():
            yield (
                action,
                method,
                sent,
                name,
                MOST_OF_LINES if kind == "textarea" else MOST,
            )


def every_body(client, campaign):
    """(address, method, function that makes a body, name of the field) of each text of the API."""
    for address, method, body_of in operations(client, campaign):
        names = {}
        body_of(lambda name: names.setdefault(name, "x"))  # noqa: B023
        yield from ((address, method, body_of, name) for name in names)


def test_no_long_text_in_any_field_of_a_form_keeps_others_waiting(client, shown):  # noqa: F811
    fields = list(every_form(client, shown))
    assert len(fields) > 60
    slow = {}
    with Others().waiting() as somebody:
        for number, (action, method, sent, name, most) in enumerate(some(fields, 3)):
            send = client.post if method == "post" else client.get
            size = (
                SIZE if method == "post" else 4000
            )  # longer addresses are refused before
            for unit, text in texts(number, most):
                given = sent | {name: text[:size]}
                seconds = seconds_of(lambda: send(action, given))  # noqa: B023
                if seconds >= SECONDS:
                    slow[action, name, unit] = seconds
    assert slow == {}
    # Others share the processor as well; what a request keeps it busy for is counted above.
    assert somebody.longest < 5 * SECONDS


def test_no_long_text_in_any_field_of_the_api_keeps_others_waiting(client, shown):  # noqa: F811
    token = tokens.create(name="t", scopes=["admin"], project=projects.default()).text
    header = {"Authorization": f"Bearer {token}"}
    fields = list(every_body(client, shown))
    assert len(fields) > 80
    slow = {}
    with Others().waiting() as somebody:
        for number, (address, method, body_of, name) in enumerate(some(fields, 3)):
            for unit, text in texts(number):
                made = body_of(lambda each: text if each == name else "x")  # noqa: B023
                content = json.dumps(made)
                send = getattr(client, method)
                seconds = seconds_of(
                    lambda: send(address, content, "application/json", headers=header)  # noqa: B023
                )
                if seconds >= SECONDS:
                    slow[address, name, unit] = seconds
    assert slow == {}
    # Others share the processor as well; what a request keeps it busy for is counted above.
    assert somebody.longest < 5 * SECONDS
