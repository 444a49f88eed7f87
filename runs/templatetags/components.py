"""Components with a body of their own; those without are plain includes of `components/`."""

import re
from functools import cache
from typing import Any

from django import template
from django.core.serializers.json import DjangoJSONEncoder
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString, mark_safe

from runs.charts import looks, svg
from runs.charts.figure import Figure

register = template.Library()

# The three that lists have hundreds of are tags without a template.
_ICON = '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>'


@register.simple_tag
def icon(name: str) -> SafeString:
    """A sign of the sprite."""
    return format_html(_ICON, _sprite(), name)


@register.simple_tag
def badge(tone: str, label: object, *, large: bool = False, plain: bool = False) -> SafeString:
    """A state in a word, a colour and a sign; `tone` names colour and sign."""
    shape = f"{' badge--large' if large else ''}{' badge--plain' if plain else ''}"
    return format_html('<span class="badge tone--{}{}">{}{}</span>', tone, shape, icon(tone), label)


@register.simple_tag
def mark(tone: str, label: object, href: str) -> SafeString:
    """A state as a small linked sign; `label` is its meaning."""
    return format_html(
        '<a class="mark tone--{}" href="{}" title="{}">{}'
        '<span class="visually-hidden">{}</span></a>',
        *(tone, href, label, icon(tone), label),
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
    """A button that asks before it posts to `action`; the body is the question.

    Arguments: button (its words), csrf_token, icon.
    """
    return render_to_string(
        "components.html#confirm",
        {"content": content, "label": label, "action": action, **arguments},
    )


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
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


# A message keeps its lines.
_BETWEEN = re.compile(r"(?<=>)\n\s+|\n[ \t]+")


def without_indents(written: str) -> SafeString:
    """HTML without indents and without empty lines after tags; `<pre>` needs its own."""
    return SafeString(_BETWEEN.sub("\n", written).strip())
