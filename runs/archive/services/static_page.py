"""A page of this instance as one of a folder: its links are relative, what asks a server goes."""

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

# Of an address of this instance, as a page names it: where it is in the folder, seen from the page;
# None where it is not there.
Link = Callable[[str], str | None]

# Elements that ask the server: they go with all that is in them.
ASKING = frozenset({"form", "dialog"})
# Links that are nothing without what they lead to: others leave their words.
BARE = ("button", "nav__link", "places__link")
# Elements that are nothing without their file.
LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src"}
VOID = frozenset(
    {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
)
SPACE = re.compile(r"\s+")
# Words of a page for the search; more is not looked through.
MOST_WORDS = 6000


class StaticPage(HTMLParser):
    """Reads a page and writes it again. `addresses` are those of this instance that it names.

    `html` is the page, `title` its first heading and `words` the text of its content.
    """

    def __init__(self, address: str, link: Link, end: str) -> None:
        super().__init__(convert_charrefs=False)
        self.address = address
        self.addresses: list[str] = []
        self._link = link
        self._end = end
        self._parts: list[str] = []
        # The element that is left out, and how many of its kind are open within.
        self._left_out = ""
        self._depth = 0
        self._inside: list[str] = []
        self._title: list[str] = []
        self._words: list[str] = []

    @property
    def html(self) -> str:
        """The page."""
        return "".join(self._parts)

    @property
    def title(self) -> str:
        """Its first heading."""
        return _plain(self._title)

    @property
    def words(self) -> str:
        """The text of its content, as far as the search looks."""
        return _plain(self._words)[:MOST_WORDS]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write it with its links, or leave it out."""
        self._write(tag, attrs, is_closed=False)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """The same of one that has no end, as in pictures."""
        self._write(tag, attrs, is_closed=True)

    def handle_endtag(self, tag: str) -> None:
        """Write it; the end of the content has what is said of the page."""
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        if self._left_out:
            self._depth -= tag == self._left_out
            self._left_out = self._left_out if self._depth else ""
        else:
            if tag == "main":
                self._parts.append(self._end)
            self._parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Text, scripts and styles."""
        if self._left_out:
            return
        self._parts.append(data)
        if "main" in self._inside and not {"script", "style", "svg"} & set(
            self._inside
        ):
            self._words.append(data)
            if "h1" in self._inside:
                self._title.append(data)

    def handle_entityref(self, name: str) -> None:
        """A named character."""
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        """A numbered character."""
        self.handle_data(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        """The type of the document."""
        self._parts.append(f"<!{decl}>")

    def _write(
        self, tag: str, attrs: list[tuple[str, str | None]], *, is_closed: bool
    ) -> None:
        if not is_closed and tag not in VOID:
            self._inside.append(tag)
        if self._left_out:
            self._depth += tag == self._left_out and not is_closed
            return
        kept = [(name, value) for name, value in map(self._attribute, attrs) if name]
        if tag in ASKING or (tag == "a" and _is_bare(dict(attrs), dict(kept))):
            self._left_out = "" if is_closed else tag
            self._depth = 1
            return
        loads = LOADING.get(tag)
        if loads and dict(attrs).get(loads) and loads not in dict(kept):
            if tag not in VOID and not is_closed:
                # Its end is still to come: an empty element of the same name does nothing.
                self._parts.append(f"<{tag}>")
            return
        words = "".join(
            f" {name}" if value is None else f' {name}="{html.escape(value)}"'
            for name, value in kept
        )
        self._parts.append(f"<{tag}{words}{'/' if is_closed else ''}>")

    def _attribute(self, attribute: tuple[str, str | None]) -> tuple[str, str | None]:
        """The attribute as it is in the folder; without a name where it goes."""
        name, value = attribute
        if name.startswith(("hx-", "on")) or name in {"action", "formaction"}:
            return "", None
        if value is None or (name not in {"href", "src"} and not value.startswith("/")):
            return attribute
        if value.startswith(("#", "//")) or urlsplit(value).scheme:
            return attribute
        absolute = urljoin(self.address, value)
        self.addresses.append(absolute)
        place = self._link(absolute)
        return (name, place) if place is not None else ("", None)


def _is_bare(before: dict[str, str | None], after: dict[str, str | None]) -> bool:
    """Whether it was a button or a place of the menu, and leads nowhere now."""
    classes = (before.get("class") or "").split()
    return (
        "href" in before
        and "href" not in after
        and any(name in BARE for name in classes)
    )


def _plain(parts: list[str]) -> str:
    return SPACE.sub(" ", html.unescape(" ".join(parts))).strip()
