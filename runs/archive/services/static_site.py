"""The archive as a folder of static files, for any web host.

The instance is asked as a stranger asks it, in both languages: what strangers may not see cannot
get in. Of its pages those are taken that the first ones lead to and that need no server: topics,
publications, versions, published tables and the campaigns that somebody chose.
"""

import functools
import json
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from runs.archive.selectors.version_line import MAJORS, READ, UPDATE
from runs.archive.services.static_page import StaticPage
from runs.models import PublishedTable
from runs.shared.errors import ServiceError

LANGUAGES = ("en", "ja")
FIRST = ("/topics/", "/archive/", "/versions/", f"/versions/?theme={UPDATE}")
PAGE = re.compile(r"/(?:topics/(?:[\w-]+/)?|archive/(?:[\w-]+/)?|versions/)")
CAMPAIGN = re.compile(r"/campaigns/([\w-]+)/")
FILE = re.compile(r"/archive/(?:data\.zip|(?:tables/)?[\w-]+/citation\.\w+)")
# What a link to the page of versions may ask for.
OF_VERSIONS = ("theme", "from", "to")
# Names the folder as one of ours, which may be replaced.
MARK = "benchlab-site.json"
INDEX, SEARCH = "search-index.js", "search.html"
MOST_WAITS = 10


@dataclass(frozen=True)
class Written:
    """What is in the folder: pages of both languages, and all files."""

    pages: int
    files: int


@dataclass
class _Site:
    """The folder while it is written. `places` are the files by the address that they come from."""

    folder: Path
    campaigns: frozenset[str]
    instance: str
    written_at: str
    places: dict[str, str] = field(default_factory=dict)
    found: dict[str, list[dict[str, str]]] = field(default_factory=dict)


def publish(
    folder: Path, *, campaigns: Sequence[str] = (), instance: str = ""
) -> Written:
    """Write the site to a folder, which must be new, empty or one of ours.

    `campaigns` are the slugs of campaigns executed here that strangers may see. `instance` is named
    on each page; without one it is the address of this instance.

    Raises ServiceError for a folder of somebody else's, and for what strangers may not see.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ServiceError(
            "folder_not_empty",
            f"{folder} has files that are not of a published site.",
            remedy="Name a new folder, or empty this one.",
        )
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    printed = PublishedTable.objects.values_list("campaign__slug", flat=True)
    site = _Site(
        fresh,
        frozenset((*printed, *campaigns)),
        instance or urlsplit(settings.PUBLIC_URL).netloc or "BenchLab",
        timezone.now().strftime("%Y-%m-%d %H:%M UTC"),
    )
    seeds = [
        *FIRST,
        *_version_questions(),
        *(f"/campaigns/{slug}/" for slug in campaigns),
    ]
    for language in LANGUAGES:
        _write_language(site, language, seeds)
    _write(fresh / "index.html", _choice(site).encode())
    pages = sum(map(len, site.found.values()))
    mark = {"instance": site.instance, "written_at": site.written_at, "pages": pages}
    _write(fresh / MARK, json.dumps(mark, indent=1).encode())
    files = sum(path.is_file() for path in fresh.rglob("*"))
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return Written(pages, files)


def _version_questions() -> Iterator[str]:
    """From each version to the next, and to the two newest."""
    newest = [
        (base, head) for head in MAJORS[-2:] for base in MAJORS[: MAJORS.index(head)]
    ]
    for base, head in dict.fromkeys([*pairwise(MAJORS), *newest]):
        for theme in (READ, UPDATE):
            yield _version_address({"theme": theme, "from": base, "to": head})


def _version_address(question: dict[str, str]) -> str:
    version_question = {
        name: question[name] for name in OF_VERSIONS if question.get(name)
    }
    if version_question.get("theme") == READ:
        del version_question["theme"]
    return "/versions/" + (
        f"?{urlencode(version_question)}" if version_question else ""
    )


def _write_language(site: _Site, language: str, seeds: Sequence[str]) -> None:
    """All pages that the first ones lead to; each is read once to find these, and once to write."""
    waiting = deque(dict.fromkeys(seeds))
    bodies: dict[str, bytes] = {}
    while waiting:
        address = waiting.popleft()
        if address in bodies:
            continue
        bodies[address] = _ask(address, language)
        page = StaticPage(address, lambda _address: None, "")
        page.feed(bodies[address].decode())
        wanted = (_known(site, named) for named in page.addresses)
        waiting.extend(named for named in wanted if named and named not in bodies)
    rows = []
    for address, body in bodies.items():
        path = _place(language, address)
        files = list(_write_data(site, language, address, path))
        questions = _questions(language, address, path, bodies)
        end = _end(site, language, address, path, files, questions)
        page = StaticPage(address, _Links(site, language, path, bodies), end)
        page.feed(body.decode())
        page.close()
        _write(site.folder / path, page.html.encode())
        inside = _relative(path, f"{language}/{SEARCH}")
        rows.append({"title": page.title, "address": inside, "words": page.words})
    site.found[language] = rows
    index = json.dumps(rows, ensure_ascii=False)
    _write(
        site.folder / language / INDEX, f"window.benchlabIndex = {index};\n".encode()
    )
    _write(site.folder / language / SEARCH, _search(site, language, bodies).encode())


@dataclass(frozen=True)
class _Links:
    """Where what a page names is in the folder, seen from it; None where it is not."""

    site: _Site
    language: str
    page: str
    pages: dict[str, bytes]

    def __call__(self, address: str) -> str | None:
        parts = urlsplit(address)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if parts.path.startswith(f"/{settings.STATIC_URL.strip('/')}/"):
            place = _asset(self.site, parts.path)
        elif parts.path == "/":
            place = f"{self.language}/{SEARCH}"
        elif FILE.fullmatch(parts.path) and not parts.query:
            place = _file(self.site, self.language, parts.path)
        else:
            page_address = _known(self.site, address)
            place = (
                _place(self.language, page_address)
                if page_address in self.pages
                else None
            )
        return None if place is None else _relative(place, self.page) + fragment


def _known(site: _Site, address: str) -> str | None:
    """The address of a page that gets into the folder, in one spelling; None of any other."""
    parts = urlsplit(address)
    if parts.path == "/versions/":
        question = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return _version_address(question) if set(question) <= set(OF_VERSIONS) else None
    if parts.query:
        return None
    campaign = CAMPAIGN.fullmatch(parts.path)
    if campaign:
        return parts.path if campaign[1] in site.campaigns else None
    return parts.path if PAGE.fullmatch(parts.path) else None


def _place(language: str, address: str) -> str:
    """The file of a page."""
    parts = urlsplit(address)
    question = "-".join(
        value for values in parse_qs(parts.query).values() for value in values
    )
    folder = parts.path.strip("/") + (f"/{question}" if question else "")
    return f"{language}/{folder}/index.html"


def _relative(place: str, page: str) -> str:
    return quote(os.path.relpath(place, Path(page).parent))


def _asset(site: _Site, path: str) -> str | None:
    """A file of the interface, copied when it is first named."""
    name = unquote(path).removeprefix(f"/{settings.STATIC_URL.strip('/')}/")
    place = f"assets/{name}"
    if place not in site.places.values():
        source = finders.find(name)
        if source:
            content = Path(str(source)).read_bytes()
        elif staticfiles_storage.exists(name):
            with staticfiles_storage.open(name) as file:
                content = file.read()
        else:
            return None
        _write(site.folder / place, content)
        site.places[path] = place
    return place


def _file(site: _Site, language: str, path: str) -> str:
    """A file that a page offers, such as a citation."""
    place = f"files/{language}{path}" if "citation" in path else f"files{path}"
    if place not in site.places.values():
        _write(site.folder / place, _ask(path, language))
        site.places[place] = place
    return place


def _write_data(
    site: _Site, language: str, address: str, page: str
) -> Iterator[tuple[str, str]]:
    """The figures of a page as JSON and CSV beside it: names with their places."""
    parts = urlsplit(address)
    campaign = CAMPAIGN.fullmatch(parts.path)
    sources: dict[str, str] = {}
    if campaign:
        sources = {
            "data.json": f"/api/v1/campaigns/{campaign[1]}/",
            "data.csv": f"/api/v1/measurements/?campaign={campaign[1]}&format=csv",
        }
    elif parts.path == "/versions/":
        sources = {"data.json": f"/api/v1/versions/?{parts.query}"}
    elif parts.path.startswith("/archive/") and PAGE.fullmatch(parts.path):
        slug = parts.path.removeprefix("/archive/").strip("/")
        if slug and slug not in {"later", "discrepancies"}:
            sources = {"data.json": f"/api/v1/sources/{slug}/"}
    for name, source_address in sources.items():
        place = str(Path(page).with_name(name))
        _write(site.folder / place, _ask(source_address, language))
        yield name.removeprefix("data.").upper(), place


def _questions(
    language: str, address: str, page: str, pages: dict[str, bytes]
) -> list[tuple[str, str]]:
    """Of a page of versions the other questions of its load: the form that asks them is gone."""
    if urlsplit(address).path != "/versions/":
        return []
    theme = parse_qs(urlsplit(address).query).get("theme")
    questions = []
    for other in pages:
        parts = urlsplit(other)
        question = parse_qs(parts.query)
        if (
            parts.path == "/versions/"
            and question.get("theme") == theme
            and "to" in question
        ):
            name = f"{question['from'][0]} → {question['to'][0]}"
            questions.append((name, _relative(_place(language, other), page)))
    return questions


def _end(
    site: _Site,
    language: str,
    address: str,
    page: str,
    files: Sequence[tuple[str, str]],
    questions: Sequence[tuple[str, str]],
) -> str:
    """What each page says of itself: instance, date, data, the other language, the search."""
    other = next(code for code in LANGUAGES if code != language)
    with translation.override(language):
        return render_to_string(
            "archive/static_end.html",
            {
                "instance": site.instance,
                "written_at": site.written_at,
                "files": [(name, _relative(place, page)) for name, place in files],
                "questions": questions,
                "search": _relative(f"{language}/{SEARCH}", page),
                "other": _relative(_place(other, address), page),
                "other_language": other,
            },
        )


def _search(site: _Site, language: str, pages: dict[str, bytes]) -> str:
    """The page of the search, which looks into one file."""
    links = _Links(site, language, f"{language}/{SEARCH}", pages)
    with translation.override(language):
        return render_to_string(
            "archive/static_search.html",
            {
                "language": language,
                "instance": site.instance,
                "written_at": site.written_at,
                "styles": [
                    links(f"/static/css/{name}.css")
                    for name in ("tokens", "base", "layout", "components")
                ],
                "script": links("/static/js/static-search.js"),
                "index": INDEX,
                "first": [
                    {"place": links(address), "title": rows_title}
                    for address, rows_title in _first_titles(
                        pages, site.found[language], language
                    )
                ],
            },
        )


def _first_titles(
    pages: dict[str, bytes], rows: Sequence[dict[str, str]], language: str
) -> Iterator[tuple[str, str]]:
    """The pages that everything else is found from, and the chosen campaigns, with their titles."""
    title_of = {row["address"]: row["title"] for row in rows}
    printed = set(PublishedTable.objects.values_list("campaign__slug", flat=True))
    for address in pages:
        campaign = CAMPAIGN.fullmatch(address)
        if address in FIRST or (campaign and campaign[1] not in printed):
            place = _relative(_place(language, address), f"{language}/{SEARCH}")
            yield address, title_of[place]


def _choice(site: _Site) -> str:
    """The first page: one link for each language."""
    return render_to_string(
        "archive/static_first.html",
        {
            "languages": [(code, f"{code}/{SEARCH}") for code in LANGUAGES],
            "instance": site.instance,
            "written_at": site.written_at,
        },
    )


def _ask(address: str, language: str) -> bytes:
    """What the instance answers a stranger. Raises ServiceError if it is no page."""
    for _wait in range(MOST_WAITS):
        status, headers, body = _answer(address, language)
        if status != 429:
            break
        time.sleep(float(headers.get("retry-after", "1")))
    if status != 200:
        raise ServiceError(
            "not_public",
            f"{address} answers a stranger with {status}.",
            remedy="Only what everybody may see is published: check the name, and the project.",
        )
    return body


def _answer(address: str, language: str) -> tuple[int, dict[str, str], bytes]:
    path, _mark, query = address.partition("?")
    environ: dict[str, Any] = {
        "PATH_INFO": unquote(path),
        "QUERY_STRING": query,
        "HTTP_HOST": _host(),
        "HTTP_ACCEPT_LANGUAGE": language,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "https" if settings.SECURE_SSL_REDIRECT else "http",
        "wsgi.input": BytesIO(),
    }
    setup_testing_defaults(environ)
    # Not ended as a request is: that closes the connection in which this command works.
    answer = _handler().get_response(WSGIRequest(environ))
    headers = {name.lower(): value for name, value in answer.items()}
    return answer.status_code, headers, b"".join(_parts(answer))


def _parts(answer: Any) -> Iterable[bytes]:
    return answer.streaming_content if answer.streaming else [answer.content]


@functools.cache
def _handler() -> BaseHandler:
    handler = BaseHandler()
    handler.load_middleware()
    return handler


def _host() -> str:
    public_name: str = urlsplit(settings.PUBLIC_URL).netloc
    if public_name:
        return public_name
    names = [name for name in settings.ALLOWED_HOSTS if name != "*"]
    return str(names[0]).lstrip(".") if names else "localhost"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
