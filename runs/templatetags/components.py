"""Components with a body of their own; those without are plain includes of `components/`."""

import re
import threading
from collections.abc import Hashable
from typing import Any

from django import template
from django.template.base import FilterExpression, Node, NodeList, Parser, Token
from django.template.context import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

register = template.Library()


@register.simple_block_tag
def card(content: str, title: str = "", **arguments: Any) -> SafeString:
    """`{% card title %}...{% endcard %}`; arguments: note, id, flush (no padding, for tables)."""
    return render_to_string(
        "components.html#card", {"content": content, "title": title, **arguments}
    )


@register.simple_block_tag
def tablewrap(content: str, label: str, **arguments: Any) -> SafeString:
    """A table that scrolls in itself; `label` names it for who cannot see it; `tall` limits it."""
    return render_to_string(
        "components.html#table", {"content": content, "label": label, **arguments}
    )


@register.simple_block_tag
def confirm(content: str, label: str, action: str, **arguments: Any) -> SafeString:
    """A button that asks before it posts to `action`; the body is the question.

    Arguments: button (its words), csrf_token, icon.
    """
    return render_to_string(
        "components.html#confirm",
        {"content": content, "label": label, "action": action, **arguments},
    )


# Of each `same`, in all languages together: a row has some hundred characters, a list thousands.
MOST_ROWS, MOST_CHARACTERS = 1024, 400_000
_INDENTS = re.compile(r"\n\s+")
# A message keeps its lines.
_BETWEEN = re.compile(r"(?<=>)\n\s+|\n[ \t]+")


def without_indents(written: str) -> SafeString:
    """HTML without indents and without empty lines after tags; `<pre>` needs its own."""
    return SafeString(_BETWEEN.sub("\n", written).strip())


@register.tag
def same(parser: Parser, token: Token) -> Node:
    """`{% same row of=rows.first %}...{% endsame %}`: written once for the same of these values.

    The body knows only them, and nothing else of the page. They are texts and whole numbers, or
    tuples and frozen dataclasses of those. Indents are left out: they are half of a large page.
    """
    # A variable keeps its name; a value with a path or a filter gets one.
    named = (each.rpartition("=") for each in token.split_contents()[1:])
    values = {name or value: parser.compile_filter(value) for name, _equals, value in named}
    body = parser.parse(("endsame",))
    parser.delete_first_token()
    return _Same(values, body)


class _Same(Node):
    """Rows that were written before. For all threads of a process; the oldest are forgotten."""

    child_nodelists = ("body",)

    def __init__(self, values: dict[str, FilterExpression], body: NodeList) -> None:
        self.values, self.body = values, body
        self._known: dict[Hashable, SafeString] = {}
        self._characters = 0
        self._lock = threading.Lock()

    def render(self, context: Context) -> SafeString:
        values = {name: each.resolve(context) for name, each in self.values.items()}
        key = (get_language(), context.autoescape, *values.values())
        found = self._known.get(key)
        if found is None:
            found = SafeString(_INDENTS.sub("\n", self.body.render(context.new(values)).strip()))
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, found: SafeString) -> None:
        with self._lock:
            # Another thread may have written the same.
            self._characters += len(found) - len(self._known.get(key, ""))
            self._known[key] = found
            while len(self._known) > MOST_ROWS or self._characters > MOST_CHARACTERS:
                self._characters -= len(self._known.pop(next(iter(self._known))))
