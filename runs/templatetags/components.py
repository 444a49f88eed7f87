"""Components with a body of their own; those without are plain includes of `components/`."""

import re
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from runs.charts import looks, svg
from runs.charts.figure import Figure

register = template.Library()


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


# A message keeps its lines.
_BETWEEN = re.compile(r"(?<=>)\n\s+|\n[ \t]+")


def without_indents(written: str) -> SafeString:
    """HTML without indents and without empty lines after tags; `<pre>` needs its own."""
    return SafeString(_BETWEEN.sub("\n", written).strip())
