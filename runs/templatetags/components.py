"""Components with a body of their own; those without are plain includes of `components/`."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from django import template
from django.core.serializers.json import DjangoJSONEncoder
from django.template.base import (
    FilterExpression,
    NodeList,
    Parser,
    Token,
    render_value_in_context,
    token_kwargs,
)
from django.template.context import Context
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import (
    conditional_escape,
    format_html,
    format_html_join,
    json_script,
)
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from runs.charts import looks, svg
from runs.charts.figure import Figure
from runs.shared import glossary
from runs.shared.urls import path_if_there

register = template.Library()

# The three that lists have hundreds of are tags without a template.
_ICON = '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>'


@register.simple_tag
def icon(name: str) -> SafeString:
    """A sign of the sprite."""
    return format_html(_ICON, _sprite(), name)


@register.simple_tag
def badge(
    tone: str, label: object, *, large: bool = False, plain: bool = False
) -> SafeString:
    """A state in a word, a colour and a sign; `tone` names colour and sign."""
    shape = f"{' badge--large' if large else ''}{' badge--plain' if plain else ''}"
    return format_html(
        '<span class="badge tone--{}{}">{}{}</span>', tone, shape, icon(tone), label
    )


@register.simple_tag
def mark(tone: str, label: object, href: str) -> SafeString:
    """A state as a small linked sign; `label` is its meaning."""
    return format_html(
        '<a class="mark tone--{}" href="{}" title="{}">{}'
        '<span class="visually-hidden">{}</span></a>',
        tone,
        href,
        label,
        icon(tone),
        label,
    )


@cache
def _sprite() -> str:
    return static("icons/sprite.svg")


@register.simple_block_tag
def card(content: str, title: str = "", **arguments: Any) -> SafeString:
    """`{% card title %}...{% endcard %}`; arguments: note, id, flush (no padding, for tables)."""
    return render_to_string(
        "components.html#card", {"content": content, "title": title, **arguments}
    )


@register.simple_block_tag
def pagehead(content: str, title: str, **arguments: Any) -> SafeString:
    """`{% pagehead title %}buttons{% endpagehead %}`; arguments: subtitle, up, up_title, parent."""
    return render_to_string(
        "components.html#head", {"content": content, "title": title, **arguments}
    )


@register.simple_block_tag
def tablewrap(content: str, label: str, **arguments: Any) -> SafeString:
    """A table that scrolls in itself; `label` names it for who cannot see it; `tall` limits it."""
    return render_to_string(
        "components.html#table", {"content": content, "label": label, **arguments}
    )


@register.simple_block_tag
def confirm(content: str, label: str, action: str, **arguments: Any) -> SafeString:
    """A button that asks before it posts to `action`. Arguments: button, csrf_token, icon."""
    return render_to_string(
        "components.html#confirm",
        {"content": content, "label": label, "action": action, **arguments},
    )


IS_HEAD, TITLES = "listing_is_head", "listing_titles"
FLAGS = frozenset({"header", "labelled", "number"})


class ListingNode(template.Node):
    """A table: what is between its tags is rendered once as its head, and for each row."""

    def __init__(
        self,
        names: Sequence[str],
        rows: FilterExpression,
        options: dict[str, FilterExpression],
        nodelist: NodeList,
    ) -> None:
        self.names, self.rows, self.nodelist = names, rows, nodelist
        self.look, self.options = options.pop("row_class", None), options

    def render(self, context: Context) -> SafeString:
        """The table within a frame that scrolls."""
        arguments: dict[str, Any] = {
            name: expression.resolve(context)
            for name, expression in self.options.items()
        }
        with context.push(**{IS_HEAD: True, TITLES: {}}):
            arguments["head"] = self.nodelist.render(context)
            rows = [self._row(context, row) for row in self.rows.resolve(context)]
        arguments["body"] = SafeString("".join(rows))
        return render_to_string("components.html#listing", arguments)

    def _row(self, context: Context, row: Any) -> str:
        values = (row,) if len(self.names) == 1 else row
        with context.push(
            dict(zip(self.names, values, strict=True), **{IS_HEAD: False})
        ):
            classes = _classes(self.look.resolve(context)) if self.look else ""
            return f"<tr{classes}>{self.nodelist.render(context)}</tr>\n"


class ColumnNode(template.Node):
    """The head of a column, or its cell in a row."""

    def __init__(
        self,
        title: FilterExpression,
        flags: set[str],
        look: FilterExpression | None,
        nodelist: NodeList,
    ) -> None:
        self.title, self.nodelist = title, nodelist
        self.number = "is-number" if "number" in flags else ""
        self.is_labelled = "labelled" in flags
        self.start, self.end = (
            ('<th scope="row"', "</th>") if "header" in flags else ("<td", "</td>")
        )
        # Most classes are a word, and not asked of each row.
        self.look = look if look and look.is_var else None
        self.fixed = look.resolve(Context()) if look and not self.look else ""
        self.plain = f"{self.start}{_classes(self.number, self.fixed)}>"

    def render(self, context: Context) -> SafeString:
        """Either, as the listing asks for."""
        if context[IS_HEAD]:
            return self._head(context)
        content = self.nodelist.render(context).strip()
        if self.look is None and not self.is_labelled:
            return SafeString(self.plain + content + self.end)
        label, absent = "", ""
        if self.is_labelled and content:
            label = f' data-label="{context[TITLES][self]}"'
        elif self.is_labelled:
            content, absent = "–", "is-none"
        look = self.look.resolve(context) if self.look else self.fixed
        classes = _classes(self.number, look, absent)
        return SafeString(f"{self.start}{classes}{label}>{content}{self.end}")

    def _head(self, context: Context) -> SafeString:
        # As `translate` does: what `_("...")` looks up has its percent signs twice.
        title = render_value_in_context(self.title.resolve(context), context).replace(
            "%%", "%"
        )
        context[TITLES][self] = title
        return SafeString(f'<th scope="col"{_classes(self.number)}>{title}</th>')


@lru_cache(maxsize=1024)
def _classes(*names: str) -> str:
    class_names = " ".join(filter(None, names))
    return f' class="{conditional_escape(class_names)}"' if class_names else ""


@register.tag
def listing(parser: Parser, token: Token) -> ListingNode:
    """`{% listing row in rows label=_("Servers") %}{% column %}...{% endcolumn %}{% endlisting %}`.

    A row may be unpacked: `name, value in rows`. Arguments: class, row_class (may ask the row),
    id, caption, tall. The columns may be within `if` and `with`.
    """
    names, _in, rows_and_options = token.contents.partition(" ")[2].partition(" in ")
    rows, *bits = Token(token.token_type, rows_and_options).split_contents()
    nodelist = parser.parse(["endlisting"])
    parser.delete_first_token()
    variables = [name.strip() for name in names.split(",")]
    return ListingNode(
        variables, parser.compile_filter(rows), _options(bits, parser), nodelist
    )


@register.tag
def column(parser: Parser, token: Token) -> ColumnNode:
    """`{% column _("Name") %}the cell{% endcolumn %}`. Argument: class (may ask the row).

    Flags: `number` is set to the right; `header` names the row; `labelled` has the title before it
    on a phone, and takes no line there if it is empty.
    """
    _name, title, *bits = token.split_contents()
    flags = {bit for bit in bits if bit in FLAGS}
    options = _options([bit for bit in bits if bit not in FLAGS], parser)
    nodelist = parser.parse(["endcolumn"])
    parser.delete_first_token()
    return ColumnNode(
        parser.compile_filter(title), flags, options.pop("class", None), nodelist
    )


def _options(bits: list[str], parser: Parser) -> dict[str, FilterExpression]:
    """Arguments by name. Raises TemplateSyntaxError for anything else."""
    options = token_kwargs(bits, parser)
    if bits:
        raise template.TemplateSyntaxError(f"This is no argument: {bits[0]}")
    return options


@register.simple_tag
def words(*slugs: str) -> SafeString:
    """What this page's words mean: each as a definition, with its sentence behind it."""
    address = path_if_there("help")
    terms = [glossary.term(slug) for slug in slugs]
    items = format_html_join(
        " · ",
        '<dfn title="{}">{}</dfn>',
        (
            (
                term.meaning,
                format_html('<a href="{}#{}">{}</a>', address, term.slug, term.word)
                if address
                else term.word,
            )
            for term in terms
        ),
    )
    return format_html('<p class="words">{} {}</p>', _("Words here:"), items)


@register.simple_tag
def still(figure: Figure, label: str) -> SafeString:
    """The figure as two pictures, of which a style sheet shows the one that fits the screen."""
    wide = svg.render(figure, title=label, look=looks.PAGE)
    narrow = svg.render(figure, title=label, look=looks.PHONE)
    # The renderer escapes every text of the figure.
    drawn = f'<div class="chart__wide">{wide}</div><div class="chart__narrow">{narrow}</div>'
    return mark_safe(drawn)  # noqa: S308


# As precise as a picture can show, and without the spaces of Django's own writing.
DIGITS = 7


class _Compact(DjangoJSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"separators": (",", ":")})


@register.simple_tag
def explored(figure: Figure) -> SafeString:
    """The figure's data, which a script reads when a reader asks to zoom."""
    return json_script(_rounded(figure), encoder=_Compact)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, dict):
        return {name: _rounded(member) for name, member in value.items()}
    return (
        [_rounded(element) for element in value]
        if isinstance(value, list | tuple)
        else value
    )


# A message keeps its lines.
_BETWEEN = re.compile(r"(?<=>)\n\s+|\n[ \t]+")


def strip_indents(written: str) -> SafeString:
    """HTML without indents and without empty lines after tags; `<pre>` needs its own."""
    return SafeString(_BETWEEN.sub("\n", written).strip())
