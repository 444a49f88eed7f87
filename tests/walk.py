"""A walk over every page of a running instance, in every look and both languages, by hand.

    python -m tests.walk http://127.0.0.1:8000 OUT [address …] --user admin --password …

It follows links from the first page, takes some pages of each address's name (and those given),
and writes OUT/index.html: every picture, and what a machine finds on each: a page wider than its
window, text that is cut, a rule of axe, Latin words in Japanese, and fixed values that were
translated. The pictures are there to be looked at: most of what is ugly no rule knows. About a
second a picture.
"""

import argparse
import html
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, Error, Page, sync_playwright

from tests.web.looks import broken_rules

WIDTHS = (390, 768, 1440)
THEMES = ("light", "dark")
LANGUAGES = ("en", "ja")
SHOWN_CUT = 4
OF_A_NAME, OF_A_KIND = (
    3,
    2,
)  # pages of one name, and of one name with the same parameters
NO_PAGE = re.compile(
    r"/(api|static|logout|metrics|readyz|healthz)\b|\.(svg|csv|json|bib|py|sh)\b"
)

# Text that its own box, or one around it that does not scroll, hides in part.
CUT = """() => {
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
        const element = node.parentElement, text = node.data.trim();
        if (!text || element.closest(
            ".visually-hidden, script, style, progress, option, textarea, noscript," +
            "details:not([open])")) continue;
        if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const box = range.getBoundingClientRect();
        for (let around = element; around && around !== document.body;
             around = around.parentElement) {
            const style = getComputedStyle(around);
            if (/auto|scroll/.test(style.overflowX) || style.position === "fixed") break;
            const isDrawing = around.localName === "svg";
            if (!isDrawing && !/hidden|clip/.test(style.overflowX)) continue;
            const edge = around.getBoundingClientRect();
            const isHidden = edge.width <= 2;
            const play = isDrawing ? 6 : 2;  // a turned line's box is wider than its letters
            if (!isHidden && (box.right > edge.right + play || box.left < edge.left - play))
                found.add(text.slice(0, 60));
        }
    }
    return [...found];
}"""
# What is read as prose: no code, nothing that says that it is in another language.
WORDS = """() => {
    const found = [], none = "code, pre, kbd, samp, script, style, textarea, noscript," +
        " [translate=no], [lang]:not(html):not([lang=ja]), .mono, cite, q, blockquote";
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());)
        if (!node.parentElement.closest(none)) found.push(node.data);
    for (const each of document.querySelectorAll("[aria-label]"))
        if (!each.closest(none)) found.push(each.ariaLabel);
    return found;
}"""
# The fixed values of fields, with what is read beside each.
VALUES = """() => [...document.querySelectorAll("option[value], [type=radio], [type=checkbox]")]
    .filter(each => each.value && (each.closest("select") || each.labels?.length))
    .map(each => [`${each.name || each.closest("select").name}=${each.value}`,
        (each.labels ? each.labels[0].innerText : each.text).trim()])"""
LINKS = """[...document.querySelectorAll('a[href]')]
    .map(each => new URL(each.getAttribute("href"), document.baseURI).href)"""

LATIN = re.compile(r"(?<![\w./@:=~+-])[A-Za-z][a-z]{2,}(?![\w./@:=~+-])")
# Names, units and words of the field that Japanese manuals write in Latin letters.
NAMES = frozenset(
    Path(__file__).with_name("samples").joinpath("latin_words.txt").read_text().split()
)

# Fields whose English words happen to be what is stored.
WORDED = frozenset({"decision", "kind", "origin", "role", "scopes"})


@dataclass
class Seen:
    """A page, its pictures and what was found on it."""

    name: str
    path: str
    pictures: list[Path] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


class Walk:
    """Looks at pages, and writes what was seen."""

    def __init__(self, browser: BrowserContext, base: str, out: Path) -> None:
        self.page: Page = browser.new_page()
        self.context, self.base, self.out = browser, base, out
        self.seen: list[Seen] = []

    def everything(self, given: list[str]) -> None:
        """Every page that links lead to, from the first page and those given."""
        queue, known = deque(["/", *given]), {"/", *given}
        names: Counter[object] = Counter()
        while queue:
            path = queue.popleft()
            name, kind = _name(path), _kind(path)
            if path not in given and (
                names[name] >= OF_A_NAME or names[kind] >= OF_A_KIND
            ):
                continue
            page = self.look_at(name, path)
            if page is None:
                continue
            names.update((name, kind))
            self.seen.append(page)
            print(f"{path}  ({name})", *page.findings, sep="\n    ", flush=True)
            self.write()
            for each in page.links:
                if each not in known and not NO_PAGE.search(each):
                    known.add(each)
                    queue.append(each)

    def look_at(self, name: str, path: str) -> "Opened | None":
        """A page in every look; none where the address answers with something else."""
        seen = Opened(name, path)
        for language in LANGUAGES:
            cookie = {"name": "django_language", "value": language, "url": self.base}
            self.context.add_cookies([cookie])  # type: ignore[list-item]
            try:
                answer = self.page.goto(self.base + path)
            except Error:  # a download
                return None
            if answer is None or "text/html" not in answer.headers.get(
                "content-type", ""
            ):
                return None
            if answer.status >= 400:
                seen.findings.append(f"answers {answer.status}")
            if language == "en":
                seen.links = list(_local(self.page.evaluate(LINKS), self.base))
            self._words(seen, language)
            for width in WIDTHS:
                self.page.set_viewport_size({"width": width, "height": 900})
                for theme in THEMES:
                    self._look(seen, language, width, theme)
        return seen

    def _look(self, seen: Seen, language: str, width: int, theme: str) -> None:
        self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        look = f"{language} {width} {theme}"
        if theme == "light":
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                seen.findings.append(f"{look}: {wide} px wide")
            if cut := self.page.evaluate(CUT):
                seen.findings.append(
                    f"{look}: {len(cut)} cut: {' | '.join(cut[:SHOWN_CUT])}"
                )
        if language == "en" and (width, theme) in ((390, "dark"), (1440, "light")):
            seen.findings += [
                f"{look}: axe: {each}" for each in broken_rules(self.page)
            ]
        picture = self.out / f"{len(self.seen):03}-{language}-{width}-{theme}.jpg"
        self.page.screenshot(path=picture, full_page=True, type="jpeg", quality=60)
        seen.pictures.append(picture)

    def _words(self, seen: Seen, language: str) -> None:
        values = dict(self.page.evaluate(VALUES))
        if language == "en":
            seen.values = values
            return
        for key, text in values.items():
            value = key.partition("=")[2]
            if (
                key.partition("=")[0] not in WORDED
                and seen.values.get(key) == value != text
            ):
                seen.findings.append(f"ja: the value {key} is called {text}")
        words = Counter(
            word
            for text in self.page.evaluate(WORDS)
            for word in LATIN.findall(text)
            if word not in NAMES
        )
        if words:
            seen.findings.append("ja: Latin: " + " ".join(sorted(words)))

    def write(self) -> None:
        """The page with all pictures."""
        rows = "".join(_row(page) for page in self.seen)
        (self.out / "index.html").write_text(
            "<!doctype html><meta charset=utf-8><style>img{height:420px;vertical-align:top;"
            f"object-fit:cover;object-position:top;margin:2px}}</style>{rows}"
        )


@dataclass
class Opened(Seen):
    """A page with the addresses that it links to."""

    links: list[str] = field(default_factory=list)


def _row(page: Seen) -> str:
    images = "".join(
        f"<a href={each.name}><img src={each.name}></a>" for each in page.pictures
    )
    said = "".join(f"<li>{html.escape(each)}" for each in page.findings)
    return f"<h2>{html.escape(page.path)}</h2><ul>{said}</ul>{images}"


def _local(links: list[str], base: str) -> Iterator[str]:
    for each in links:
        address = urlsplit(each)
        if each.startswith(base):
            yield address.path + (f"?{address.query}" if address.query else "")


def _name(path: str) -> str:
    from django.urls import Resolver404, resolve

    try:
        return resolve(urlsplit(path).path).view_name
    except Resolver404:
        return "none"


def _kind(path: str) -> tuple[str, frozenset[str]]:
    return _name(path), frozenset(parse_qs(urlsplit(path).query))


def _logged_in(page: Page, base: str, user: str, password: str) -> None:
    page.goto(f"{base}/login/")
    page.fill("[name=login]", user)
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "/login/" not in address)


def _unreached(seen: list[Seen]) -> list[str]:
    from tests.rights import ADDRESSES

    names = {each.name for each in seen}
    pages = (name for name, rules in ADDRESSES.items() if "GET" in rules)
    return sorted(
        each for each in pages if each not in names and not each.startswith("api:")
    )


def main() -> int:
    """Walk, and fail if a machine found anything."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")
    import django

    django.setup()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("out", type=Path)
    parser.add_argument("addresses", nargs="*")
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--only", action="store_true", help="only the addresses given")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        context = browser.new_context(bypass_csp=True)
        walk = Walk(context, asked.base.rstrip("/"), asked.out)
        if asked.user:
            _logged_in(walk.page, walk.base, asked.user, asked.password)
        if asked.only:
            for path in asked.addresses:
                if page := walk.look_at(_name(path), path):
                    walk.seen.append(page)
                    print(path, *page.findings, sep="\n    ", flush=True)
            walk.write()
        else:
            walk.everything(asked.addresses)
            print("not reached:", *_unreached(walk.seen), sep="\n    ")
        browser.close()
    return 1 if any(page.findings for page in walk.seen) else 0


if __name__ == "__main__":
    sys.exit(main())
