"""A flame graph: folded stacks as an SVG document of its own.

A line of folded stacks is "OUTER;...;INNER N"; see https://www.brendangregg.com/flamegraphs.html.
The width of a box is its share of the samples; a box is called by the one below it. Tooltips show
each box's samples.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from runs.charts.stacks import Frame, tree_of

WIDTH, ROW, MARGIN, HEAD = 1200, 17, 10, 44
LETTER = 6.6
# Boxes narrower than this (in pixels) are left out, with everything above them.
NARROWEST = 0.6
KERNEL = "_[k]"
# What XML 1.0 cannot contain.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Box:
    """A frame at its place: `left` in samples, `row` from the bottom."""

    frame: Frame
    left: int
    row: int


def render(folded: str, *, title: str) -> str:
    """The graph with `title` above it. Lines that are not folded stacks are left out.

    Raises ValueError if there is no sample at all.
    """
    root = tree_of(folded)
    if not root.samples:
        raise ValueError("there are no folded stacks")
    boxes = list(_boxes(root))
    rows = max(box.row for box in boxes) + 1
    height = HEAD + rows * ROW + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="monospace" font-size="11"'
        f" aria-label={quoteattr(clean(title))}>"
    )
    return "\n".join(
        [
            head,
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            (
                f'<text x="{WIDTH / 2:g}" y="26" text-anchor="middle" font-size="15" '
                f'font-family="sans-serif" fill="#121820">{escape(clean(title))}</text>'
            ),
            *(_drawn(box, root.samples, height) for box in boxes),
            "</svg>\n",
        ]
    )


def _boxes(root: Frame) -> Iterator[_Box]:
    """Every box that is wide enough, with the functions of each in the order of their names."""
    narrowest = NARROWEST / (WIDTH - 2 * MARGIN) * root.samples
    waiting = [_Box(root, 0, 0)]
    while waiting:
        box = waiting.pop()
        yield box
        left = box.left
        for name in sorted(box.frame.called):
            frame = box.frame.called[name]
            if frame.samples >= narrowest:
                waiting.append(_Box(frame, left, box.row + 1))
            left += frame.samples


def _drawn(box: _Box, all_samples: int, height: int) -> str:
    scale = (WIDTH - 2 * MARGIN) / all_samples
    x, width = MARGIN + box.left * scale, box.frame.samples * scale
    y = height - MARGIN - (box.row + 1) * ROW
    name = clean(box.frame.name)
    share = 100 * box.frame.samples / all_samples
    told = f"{name}: {box.frame.samples:,} samples, {share:.2f} %"
    parts = [
        f"<g><title>{escape(told)}</title>",
        (
            f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.4, 0.3):.1f}" height="{ROW - 1}" '
            f'rx="1" fill="{colour(box.frame.name)}"/>'
        ),
    ]
    room = int((width - 6) / LETTER)
    if room >= 3:
        shown = name if len(name) <= room else f"{name[: room - 2]}.."
        parts.append(f'<text x="{x + 3:.1f}" y="{y + 12}" fill="#121820">{escape(shown)}</text>')
    return "".join([*parts, "</g>"])


def colour(name: str) -> str:
    """Always the same for a name: blue for the kernel, warm colours for everything else."""
    shade = zlib.crc32(name.encode(errors="replace"))
    hue, lightness = shade % 30, 68 + (shade >> 8) % 14
    if name == "all":
        return "hsl(210,10%,85%)"
    return (
        f"hsl({205 + hue // 2},70%,{lightness}%)"
        if KERNEL in name
        else f"hsl({20 + hue},85%,{lightness}%)"
    )


def clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
