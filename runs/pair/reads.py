"""Reading the API of a BenchLab: bounded, and a token goes to that instance alone."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

API = "/api/v1/"
TIMEOUT_SECONDS = 60.0
# More is no answer to a question; a list comes in pages.
LARGEST_ANSWER = 32 * 1024 * 1024
LONGEST_PROBLEM = 2000
LOCAL = ("localhost", "127.0.0.1", "::1")

Query = Mapping[str, Any]


class ReadError(Exception):
    """An instance has no answer; the message says why, and what to do."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token elsewhere."""

    def redirect_request(self, *_given: Any, **_more: Any) -> None:
        """None: the redirect is an error of its own."""
        return


class Instance:
    """A BenchLab at an address, as nobody or by a token.

    Raises ReadError for what is no address of a web server, and for a token that would travel
    in clear text.
    """

    def __init__(self, url: str, *, token: str = "") -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ReadError(f"{url!r} is not an address http(s)://host")
        if token and parts.scheme == "http" and parts.hostname not in LOCAL:
            raise ReadError("A token is sent by https alone.")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.token = token
        self._opener = urllib.request.build_opener(_NoRedirects())

    def address(self, path: str, query: Query | None = None) -> str:
        """The address of a path; what is empty in the query is left out."""
        given_fields = {
            name: value
            for name, value in (query or {}).items()
            if value not in ("", [])
        }
        words = urllib.parse.urlencode(given_fields, doseq=True)
        return f"{self.origin}{path}{'?' if words else ''}{words}"

    def get(self, name: str, query: Query | None = None) -> Any:
        """What the API has at `name`, such as `campaigns/`. Raises ReadError."""
        return self.read(self.address(API + name, query))

    def read(self, url: str) -> Any:
        """The JSON at an address of this instance. Raises ReadError."""
        parts = urllib.parse.urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            raise ReadError(f"{url!r} is not at {self.origin}")
        headers = {"Accept": "application/json", "User-Agent": "benchlab-pair"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                content = response.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise ReadError(_said(error)) from error
        except (OSError, ValueError) as error:
            raise ReadError(f"{self.origin} does not answer: {error}") from error
        if len(content) > LARGEST_ANSWER:
            raise ReadError("The answer is larger than 32 MB: ask for less.")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"{url} has no JSON: is it a BenchLab?") from error


def token_for(url: str) -> str:
    """BENCHLAB_TOKEN, where the address is that of BENCHLAB_URL; else none."""
    own_address, asked = (
        urllib.parse.urlsplit(text)[:2]
        for text in (os.environ.get("BENCHLAB_URL", ""), url)
    )
    return os.environ.get("BENCHLAB_TOKEN", "") if own_address == asked else ""


def _said(error: urllib.error.HTTPError) -> str:
    """What the instance says is wrong, in its own words."""
    location = error.headers.get("Location", "")
    if location:
        return f"{error.code}: it is at {location[:LONGEST_PROBLEM]}"
    try:
        problem = json.loads(error.read(LARGEST_ANSWER))
        faults = [fault["message"] for fault in problem.get("errors", ())]
        words = " ".join([problem["detail"], problem.get("remedy", ""), *faults])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"{error.code} {error.reason}"
    return f"{error.code}: {' '.join(words.split())}"[:LONGEST_PROBLEM]
